"""pause, limit, cancel, replay: what operators change."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlane.core.flow import Flow, writes
from fairlane.core.lanes import Controls, checked_concurrency, checked_rate
from fairlane.core.machine import Verb, allows
from fairlane.core.model import Cancelled, Replayed
from fairlane.core.states import TERMINAL, State
from fairlane.core.tally import replay_keys
from fairlane.engines.files import statements
from fairlane.engines.sqlite.context import SQL as CATALOGUE
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.driver import WAKE, Execute
from fairlane.engines.sqlite.finish import End, finish
from fairlane.engines.sqlite.ledger import Ledger
from fairlane.engines.sqlite.rows import Row

SQL = statements(__package__, "control")


@writes
def pause(
    self: Context, paused: bool, *, queue: str | None = None, type: str | None = None
) -> Flow[Controls]:
    if queue is not None:
        yield Execute(SQL["pause_queue" if paused else "resume_queue"], (queue,))
    if type is not None:
        yield Execute(SQL["pause_type"], (type, paused))
    if queue is None and type is None:
        yield Execute(SQL["pause_everything"], (paused,))
    yield Execute(CATALOGUE["bump"])
    if not paused:
        yield WAKE
    return (yield from self.catalogue.controls())


@writes
def limit(
    self: Context,
    type: str | None,
    *,
    rate: float | None = None,
    concurrency: int | None = None,
) -> Flow[Controls]:
    rate = None if rate is None else checked_rate(rate)
    concurrency = None if concurrency is None else checked_concurrency(concurrency)
    if type is not None:
        yield Execute(SQL["limit_type"], (type, rate, concurrency))
    elif rate is not None:
        yield Execute(SQL["rate_everything"], (rate,))
    yield Execute(CATALOGUE["bump"])
    yield WAKE
    return (yield from self.catalogue.controls())


@writes
def cancel(self: Context, task_ids: Sequence[str]) -> Flow[list[Cancelled]]:
    now = self.clock()
    found = yield from _standing(task_ids)
    ledger = Ledger()
    ends = []
    for task_id, code, attempt, _, _, worker_id, _ in found.values():
        state = State.of(code)
        if allows(Verb.CANCEL, state):
            held = state is State.EXECUTING
            ends.append(
                End(
                    Verb.CANCEL,
                    task_id,
                    attempt,
                    worker_id or "",
                    state,
                    State.CANCELLED,
                    outcome="cancelled" if held else None,
                    linger=held,
                )
            )
    applied = (yield from finish(ends, now, ledger)) if ends else set()
    ended = {task_id for task_id, _ in applied}
    yield from ledger.post(now)
    return [_cancelled(task_id, found.get(task_id), task_id in ended) for task_id in task_ids]


def _cancelled(task_id: str, row: Row | None, applied: bool) -> Cancelled:
    if row is None:
        return Cancelled(task_id, applied=False, state=None)
    state = State.of(row[1])
    held = state is State.EXECUTING
    return Cancelled(task_id, applied, state, row[5] if held else None)


@writes
def replay(
    self: Context,
    task_ids: Sequence[str],
    *,
    reset_retry_count: bool = True,
    level: int | None = None,
) -> Flow[list[Replayed]]:
    now = self.clock()
    found = yield from _standing(task_ids)
    ledger = Ledger()
    applied = set()
    for task_id, code, attempt, lane, old_level, _, _ in found.values():
        state = State.of(code)
        if not allows(Verb.REPLAY, state):
            continue
        values = (task_id, now, level, reset_retry_count)
        if state in TERMINAL:
            yield Execute(SQL["revive"], values)
            yield Execute(SQL["unfinish"], (task_id,))
        else:
            yield Execute(SQL["requeue"], values)
        new_level = old_level if level is None else level
        ledger.add_alike(
            [(Verb.REPLAY.value, task_id, lane, new_level, attempt, None, None)],
            *replay_keys(lane, old_level, new_level, code),
        )
        applied.add(task_id)
    yield from ledger.post(now)
    if applied:
        yield WAKE
    return [
        Replayed(task_id, task_id in applied, State.of(found[task_id][1]))
        if task_id in found
        else Replayed(task_id, applied=False, state=None)
        for task_id in task_ids
    ]


def _standing(task_ids: Sequence[str]) -> Flow[dict[str, Row]]:
    rows = yield Execute(SQL["standing"], (json.dumps(list(task_ids)),))
    return {row[0]: row for row in rows}
