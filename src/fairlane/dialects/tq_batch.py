"""`process_batch`: run ready tasks one after the other, without a worker process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from fairlane.client.app import Fairlane
from fairlane.core.filters import Filter
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, NewWorker
from fairlane.core.outcomes import Outcome, TimedOut
from fairlane.core.states import State
from fairlane.runtime.execution import raised, returned, settlement_of
from fairlane.runtime.task import TaskFunction
from fairlane.worker.config import Config
from fairlane.worker.heartbeat import Heartbeat
from fairlane.worker.loading import check_keys
from fairlane.worker.runners import Threads

Tasks = Mapping[str, TaskFunction[..., Any]]


async def hurry_retries(app: Fairlane, tasks: Tasks) -> None:
    """Make tasks ready that wait for a retry."""
    waiting = Filter(states=frozenset({State.RETRYING}), types=frozenset(tasks))
    cursor, more = None, True
    while more:
        op = app.backend.ops.replay_where(waiting, cursor, reset_retry_count=False)
        cursor = (await app.run(op)).cursor
        more = cursor is not None


async def run_batch(app: Fairlane, tasks: Tasks, most: int) -> int:
    """Run up to `most` tasks and return how many ran. To the store this is a short-lived worker."""
    await check_keys(app, app.run)
    new = Config(concurrency=1).new_worker(frozenset(tasks))
    ops = app.backend.ops
    worker_id = await app.run(ops.register(new))
    worker = msgspec.structs.replace(new, worker_id=worker_id)
    heartbeat = Heartbeat(app.backend, worker.worker_id, worker.lease, dict, _nothing, _nothing)
    heartbeat.start()
    threads = Threads()
    done = 0
    try:
        while done < most and await _run_next(app, tasks, worker, threads):
            done += 1
    finally:
        threads.stop()
        await asyncio.to_thread(heartbeat.stop)
        await app.run(ops.forget(worker.worker_id))
    return done


async def _run_next(app: Fairlane, tasks: Tasks, worker: NewWorker, threads: Threads) -> bool:
    ask = Ask(worker.worker_id, new_id(), slots=1, types=worker.types)
    grant = await app.run(app.backend.ops.claim(ask))
    for task in grant.tasks:
        began = time.monotonic()
        outcome = await _outcome(tasks[task.type], task, threads)
        settlement = settlement_of(task, outcome, time.monotonic() - began)
        await app.run(app.backend.ops.settle([settlement]))
    return bool(grant.tasks)


async def _outcome(definition: TaskFunction[..., Any], task: Claimed, threads: Threads) -> Outcome:
    handler = definition.handler
    limit = asyncio.timeout(task.timeout)
    try:
        values = definition.arguments.decode(task.payload)
        async with limit:
            if definition.is_async:
                return returned(await handler(**values))
            return returned(await threads.run(task.type, lambda: handler(**values)))
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (whatever a handler raises is its outcome)
        return TimedOut() if limit.expired() else raised(error, definition.terms)


def _nothing(*_: object) -> None:
    """A batch does not react to heartbeats."""
