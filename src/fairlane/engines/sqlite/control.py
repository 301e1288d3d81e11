"""pause, limit, cancel, replay: what operators change."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.journal import Passage
from fairlane.core.lanes import Controls, checked_concurrency, checked_rate, checked_scope
from fairlane.core.machine import Verb, allows
from fairlane.core.model import Cancelled, Replayed
from fairlane.core.states import State
from fairlane.core.tally import replay_keys
from fairlane.engines.files import statements
from fairlane.engines.sqlite.context import SQL as CATALOGUE
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.driver import WAKE, Execute
from fairlane.engines.sqlite.ledger import Ledger
from fairlane.engines.sqlite.moves import SQL as MOVES
from fairlane.engines.sqlite.moves import End, end, enter_ready, leave, standing

SQL = statements(__package__, "control")


@writes
def pause(
    self: Context, paused: bool, *, queue: str | None = None, type: str | None = None
) -> Flow[Controls]:
    queue, type = checked_scope(queue), checked_scope(type)
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
    type = checked_scope(type)
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
    checked_all(task_ids)
    now = self.clock()
    found = yield from standing(task_ids)
    ledger = Ledger()
    answers: dict[str, Cancelled] = {}
    for task in found:
        state = State.of(task.state)
        held = state is State.EXECUTING
        allowed = allows(Verb.CANCEL, state)
        if allowed:
            outcome = "cancelled" if held else None
            how = End(Verb.CANCEL, State.CANCELLED, outcome=outcome, linger=held)
            yield from end(task, how, now, ledger)
        worker_id = task.worker_id if held else None
        answers[task.task_id] = Cancelled(task.task_id, allowed, state, worker_id)
    yield from ledger.post(now)
    return [
        answers.get(task_id) or Cancelled(task_id, applied=False, state=None)
        for task_id in task_ids
    ]


@writes
def replay(
    self: Context,
    task_ids: Sequence[str],
    *,
    reset_retry_count: bool = True,
    level: int | None = None,
) -> Flow[list[Replayed]]:
    checked_all(task_ids)
    now = self.clock()
    found = yield from standing(task_ids)
    ledger = Ledger()
    answers: dict[str, Replayed] = {}
    for task in found:
        state = State.of(task.state)
        allowed = allows(Verb.REPLAY, state)
        if allowed:
            new_level = task.level if level is None else level
            yield from leave(task)
            yield from enter_ready(
                task,
                now,
                level=new_level,
                ready_at=now,
                retry_count=0 if reset_retry_count else task.retry_count,
            )
            yield Execute(MOVES["note_replay"], (now, task.number))
            yield Execute(MOVES["expire_again"], (task.number,))
            ledger.mention(
                Passage(Verb.REPLAY, None, task.lane, new_level, [task.task_id], [task.attempt])
            )
            for key in replay_keys(task.lane, task.level, new_level, task.state):
                ledger.count(key, 1)
        answers[task.task_id] = Replayed(task.task_id, allowed, state)
    yield from ledger.post(now)
    if any(answer.applied for answer in answers.values()):
        yield WAKE
    return [
        answers.get(task_id) or Replayed(task_id, applied=False, state=None) for task_id in task_ids
    ]
