"""Claiming tasks for workers that use HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from fairlane.backoff import Backoff, warn
from fairlane.client.parent_results import Results, pages, read, size_of
from fairlane.core import limits
from fairlane.core.errors import KeyMissing, SealBroken, StoreError
from fairlane.core.flow import Op
from fairlane.core.merging import merged, too_large, wanted
from fairlane.core.model import Ask, Claimed, Grant, Start, Task
from fairlane.core.outcomes import Outcome, Released
from fairlane.core.sealing import check_open
from fairlane.core.settlement import Settlement
from fairlane.runtime.execution import put_off, settlement_of, unmerged, unreadable
from fairlane.server.store_guard import StoreGuard
from fairlane.telemetry.notices import Notices

logger = logging.getLogger("fairlane.server")


class Claims:
    """Claims tasks for workers, and gives them back."""

    def __init__(self, store: StoreGuard) -> None:
        self._store = store
        self._notices = Notices(logger)

    async def claim(self, ask: Ask) -> Grant:
        """Claim tasks for a worker."""
        grant = await self._store.run(self._store.ops.claim(ask))
        if not grant.tasks:
            return grant
        tasks = await self._with_inputs(await self._take_readable(grant.tasks))
        # Tasks that could not be read may have kept others from being claimed: ask again.
        due_in = grant.next_due_in if tasks else 0.0
        return msgspec.structs.replace(grant, tasks=tasks, next_due_in=due_in)

    async def begin(self, tasks: Sequence[Claimed]) -> None:
        """Record that tasks run, for workers that do not report it. Repeats until it is done."""
        starts = [Start(task.task_id, task.attempt) for task in tasks]
        await self._persist(self._store.ops.start(tasks[0].worker_id, starts))

    async def release(self, tasks: Sequence[Claimed]) -> None:
        """Give back tasks that did not reach their worker; that costs no retry. Repeats until it is
        done."""
        settlements = [settlement_of(task, Released(), None) for task in tasks]
        await self._persist(self._store.ops.settle(settlements))

    async def _persist(self, op: Op[Any]) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._store.run(op)
            except Exception as error:  # noqa: BLE001 (repeated until it works)
                warn(logger, "Claimed tasks cannot be updated yet", error)
                await asyncio.sleep(backoff.next())
            else:
                return

    async def _take_readable(self, tasks: list[Claimed]) -> list[Claimed]:
        """Return the tasks whose payload could be decrypted. Settle the others: no worker could run
        them."""
        opened: list[Claimed] = []
        sealed: list[Settlement] = []
        for task in tasks:
            failure = _sealed_outcome(task, self._notices)
            if failure is None:
                opened.append(task)
            else:
                sealed.append(settlement_of(task, failure, None))
        if sealed:
            await self._store.run(self._store.ops.settle(sealed))
        return opened

    async def _with_inputs(self, tasks: list[Claimed]) -> list[Claimed]:
        """Return the tasks, with the results that they take from others. Settle those whose results
        are gone, and give those back that are too much for one answer."""
        taking = [task for task in tasks if task.spec.inputs]
        if not taking:
            return tasks
        results, asked = await self._read_results([wanted(task.spec) for task in taking])
        whole: dict[str, Claimed] = {}
        ended: list[Settlement] = []
        room = limits.PAGE_BYTES
        for place, task in enumerate(taking):
            known = asked.issuperset(wanted(task.spec))
            filled: Claimed | Outcome = Released()
            if place == 0 or (known and room > 0):
                filled = _filled(task, results if known else None, self._notices)
            if isinstance(filled, Claimed):
                whole[task.task_id] = filled
                room -= len(filled.payload)
            else:
                ended.append(settlement_of(task, filled, None))
        if ended:
            await self._store.run(self._store.ops.settle(ended))
        given = (whole.get(task.task_id) if task.spec.inputs else task for task in tasks)
        return [task for task in given if task is not None]

    async def _read_results(self, parents: Sequence[Sequence[str]]) -> tuple[Results, set[str]]:
        """Return results of parents, and the ids of those that were read: all of those of the first
        task, unless they are too large for any task."""
        found: Results = {}
        asked: set[str] = set()
        for page in pages(list(dict.fromkeys(chain.from_iterable(parents)))):
            found |= await read(self._get, page)
            asked.update(page)
            size = size_of(found)
            if size > limits.INPUT_BYTES or (
                size > limits.PAGE_BYTES and asked.issuperset(parents[0])
            ):
                break
        return found, asked

    async def _get(self, task_ids: Sequence[str]) -> list[Task | None]:
        return await self._store.run(self._store.ops.get(task_ids))


def _filled(task: Claimed, results: Results | None, notices: Notices) -> Claimed | Outcome:
    """Return a task with its inputs, or its outcome if they cannot be read. `results`: None if they
    are too large."""
    try:
        if results is None:
            raise too_large()
        payload = merged(task.payload, task.spec, results)
    except StoreError as error:
        return unmerged(error, task, notices)
    return msgspec.structs.replace(task, payload=payload)


def _sealed_outcome(task: Claimed, notices: Notices) -> Outcome | None:
    """Return the outcome of a task that cannot be decrypted; None for all others."""
    try:
        check_open(task.payload)
    except KeyMissing as error:
        return put_off(error, task, notices)
    except SealBroken as error:
        return unreadable(error)
    return None
