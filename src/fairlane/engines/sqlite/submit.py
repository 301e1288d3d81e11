"""submit: tasks enter."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge, IdempotencyConflict, InvalidTaskId
from fairlane.core.flow import Flow, writes
from fairlane.core.journal import Passage
from fairlane.core.machine import Verb
from fairlane.core.model import PLAIN, Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import NOWHERE, State
from fairlane.core.tally import UNTIMED
from fairlane.engines.files import statements
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.driver import WAKE, Execute, ExecuteMany
from fairlane.engines.sqlite.ledger import Ledger

SQL = statements(__package__, "submit")

_SCHEDULED, _QUEUED = State.SCHEDULED.code, State.QUEUED.code


@writes
def submit(self: Context, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    if len(tasks) > limits.SUBMIT_BATCH:
        raise BatchTooLarge(
            f"At most {limits.SUBMIT_BATCH:,} tasks are stored at once, not {len(tasks):,}."
        )
    now = self.clock()
    ((newest_number, newest_id),) = yield Execute(SQL["newest"])
    known = yield from _known_ids(tasks, newest_id)
    keyed = [task for task in tasks if task.idempotency_key and task.task_id not in known]
    if keyed:
        known |= yield from _known_keys(keyed, now)
    fresh = [task for task in tasks if task.task_id not in known] if known else tasks
    if len({task.task_id for task in fresh}) != len(fresh):
        raise InvalidTaskId("A task id occurs twice in one batch: every task needs its own.")
    lanes = yield from self.catalogue.lanes_for(
        (task.queue, task.type, task.capabilities) for task in fresh
    )
    content, waiting, expiries = [], [], []
    groups: dict[tuple[int, int, int], list[str]] = {}
    newest_number = newest_number or 0
    for number, task in enumerate(fresh, start=newest_number + 1):
        task_id, level = task.task_id, task.level
        lane = lanes[(task.queue, task.type, task.capabilities)]
        run_at, state = (now, _QUEUED) if _at_once(task) else _schedule(task, now)
        ready_at = run_at if run_at > now else now
        spec = None if task.spec is PLAIN else task.spec.encode()
        content.append(
            (
                number,
                task_id,
                lane,
                level,
                now,
                run_at,
                ready_at,
                task.expires_at or 0,
                task.max_retries,
                task.timeout or 0,
                bytearray(task.payload),
                "" if spec is None else bytearray(spec),
                task.idempotency_key or "",
            )
        )
        if state == _SCHEDULED:
            waiting.append((number, now, run_at))
        if task.expires_at is not None:
            expiries.append((task.expires_at, number))
        groups.setdefault((lane, level, state), []).append(task_id)
    yield ExecuteMany(SQL["content"], content)
    yield Execute(SQL["ready"], (newest_number, now))
    if waiting:
        yield ExecuteMany(SQL["waiting"], waiting)
    if expiries:
        yield ExecuteMany(SQL["expiry"], expiries)
    ledger = Ledger()
    for (lane, level, state), task_ids in groups.items():
        ledger.mention(Passage(Verb.SUBMIT, None, lane, level, task_ids))
        ledger.count((lane, level, NOWHERE, state, "", UNTIMED), len(task_ids))
    yield from ledger.post(now)
    if any(state == _QUEUED for _, _, state in groups):
        yield WAKE
    waits = {row[0] for row in waiting}
    stored = {
        row[1]: Accepted(row[1], State.SCHEDULED if row[0] in waits else State.QUEUED, now)
        for row in content
    }
    return [known.get(task.task_id) or stored[task.task_id] for task in tasks]


def _known_ids(tasks: Sequence[NewTask], newest: str | None) -> Flow[dict[str, Accepted]]:
    """Tasks that are stored already: their submission was repeated because its answer got lost."""
    # Ids grow with time, so most batches lie beyond everything that is stored.
    if newest is None or all(task.task_id > newest for task in tasks):
        return {}
    return (yield from _stored([task.task_id for task in tasks]))


def _known_keys(tasks: list[NewTask], now: int) -> Flow[dict[str, Accepted]]:
    """Answers for tasks whose idempotency key is taken; the other keys are taken for them."""
    keys = json.dumps([task.idempotency_key for task in tasks])
    rows = yield Execute(SQL["keys"], (keys, now))
    holders = {key: (task_id, bytes(fingerprint)) for key, task_id, fingerprint in rows}
    stored = yield from _stored([task_id for task_id, _ in holders.values()])
    taken: dict[str, NewTask] = {}
    found: dict[str, Accepted] = {}
    for task in tasks:
        key = task.idempotency_key
        assert key is not None
        holder, fingerprint = holders.get(key, (None, None))
        if holder in stored:
            earlier = stored[holder]
        elif key in taken:
            fingerprint = taken[key].fingerprint
            earlier = Accepted(taken[key].task_id, State.of(_schedule(taken[key], now)[1]), now)
        else:
            taken[key] = task
            continue
        if fingerprint != task.fingerprint:
            raise IdempotencyConflict
        found[task.task_id] = Accepted(
            earlier.task_id, earlier.state, earlier.created_at, known=True
        )
    expires_at = now + limits.IDEMPOTENCY_SECONDS * MICROSECONDS
    yield ExecuteMany(
        SQL["take_key"],
        [(key, task.task_id, task.fingerprint, expires_at) for key, task in taken.items()],
    )
    return found


def _stored(task_ids: list[str]) -> Flow[dict[str, Accepted]]:
    if not task_ids:
        return {}
    rows = yield Execute(SQL["stored"], (json.dumps(task_ids),))
    return {
        task_id: Accepted(task_id, State.of(state), created_at, known=True)
        for task_id, state, created_at in rows
    }


def _at_once(task: NewTask) -> bool:
    return task.run_at is None and not task.delay


def _schedule(task: NewTask, now: int) -> tuple[int, int]:
    """(run_at, state) of a task that may have to wait."""
    run_at = task.run_at if task.run_at is not None else now + int(task.delay * MICROSECONDS)
    return run_at, _SCHEDULED if run_at > now else _QUEUED
