"""How a move is applied to one task.

The caller has read the task's row in the same transaction. Claims and completions, the hot path,
have statements of their own for whole batches: see claim.py and apply.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.flow import Flow
from fairlane.core.journal import Passage
from fairlane.core.machine import REVIVALS, Clears, Move, Place, Slot, allows
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import stored_error
from fairlane.core.states import State
from fairlane.core.tally import keys_of
from fairlane.core.trail import replay_entry, run_entry
from fairlane.engines.files import statements
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.calls import Execute

SQL = statements(__package__, "moves")

_SCHEDULED, _QUEUED, _EXECUTING, _RETRYING = (
    State.SCHEDULED.code,
    State.QUEUED.code,
    State.EXECUTING.code,
    State.RETRYING.code,
)


class TaskRow(NamedTuple):
    """What a move needs of a task's row. The defaults are those of a submission."""

    number: int
    task_id: str
    lane: int
    level: int
    ready_at: int
    state: int = State.SCHEDULED.code
    attempt: int = 0
    retry_count: int = 0
    version: int = 1
    worker_id: str | None = None
    claimed_at: int | None = None
    started_at: int | None = None
    completed_at: int | None = None


def standing(task_ids: Sequence[str]) -> Flow[list[TaskRow]]:
    """Return the rows of these tasks."""
    rows = yield Execute(SQL["standing"], (json.dumps(list(task_ids)),))
    return [TaskRow._make(row) for row in rows]


def standing_by_number(number: int) -> Flow[TaskRow | None]:
    """Return the row of the task with this number."""
    row = (yield Execute(SQL["standing_by_number"], (number,))).fetchone()
    return None if row is None else TaskRow._make(row)


def leave(task: TaskRow) -> Flow[None]:
    """Delete the row that puts the task into its state."""
    if task.state == _QUEUED:
        yield Execute(SQL["leave_ready"], (task.lane, task.level, task.ready_at, task.task_id))
    elif task.state == _EXECUTING:
        yield Execute(SQL["leave_held"], (task.task_id,))
    elif task.state in {_SCHEDULED, _RETRYING}:
        yield Execute(SQL["leave_waiting"], (task.number,))
    else:
        yield Execute(SQL["leave_outcome"], (task.number,))


def apply_move(
    task: TaskRow,
    move: Move,
    now: int,
    accounts: Accounts,
    *,
    seconds: float | None = None,
) -> Flow[None]:
    """Move one task. `seconds`: how long the run took that ends with this, if its worker knows.

    `dependents` handles the ends that `accounts` collects.
    """
    assert allows(move.verb, State.of(task.state)), (move.verb, task)
    error = stored_error(move.error)
    due_at = now + int(move.after * MICROSECONDS)
    after = task._replace(
        level=task.level if move.level is None else move.level,
        ready_at=task.ready_at if move.place is Place.KEEP else due_at,
        retry_count=task.retry_count if move.retry_count is None else move.retry_count,
        version=task.version + 1,
        started_at=task.started_at if seconds is None else now - int(seconds * MICROSECONDS),
    )
    yield from leave(task)
    if move.ends:
        yield from _enter_outcome(after, move.state, now)
        accounts.ends(move.state, [task.task_id])
        if error is not None or task.attempt:  # only a task that ran before can have an old one
            yield Execute(SQL["note_error"], (error, task.number))
    else:
        yield from _enter_again(after, move.state, due_at, now)
        yield from _note_rerun(task, after, move, error, due_at, now)
    held = task.state == _EXECUTING
    entry = Passage(
        move.verb,
        task.worker_id if held else None,
        task.lane,
        after.level,
        [task.task_id],
        [task.attempt],
        [seconds],
    )
    accounts.mention(entry)
    for key in keys_of(move, task.lane, task.level, task.state, seconds):
        accounts.count(key, 1, seconds or 0.0)
    if held and move.run is not None:
        yield from _record_run(after, move, now, error)


def _enter_outcome(task: TaskRow, state: State, now: int) -> Flow[None]:
    counters = (task.number, task.attempt, task.retry_count, task.version, state.code)
    times = (task.worker_id, task.claimed_at, task.started_at, now, task.task_id)
    yield Execute(SQL["enter_outcome"], (*counters, *times))


def _enter_again(task: TaskRow, state: State, due_at: int, now: int) -> Flow[None]:
    """Queue the task at its place, or let it wait until it is due."""
    counters = (task.number, task.attempt, task.retry_count, task.version, now)
    if state is State.QUEUED:
        place = (task.lane, task.level, task.ready_at, task.task_id)
        yield Execute(SQL["enter_ready"], (*place, *counters))
    else:
        stream = (task.lane, task.level)
        yield Execute(SQL["enter_waiting"], (*counters, state.code, due_at, task.task_id, *stream))


def _note_rerun(
    before: TaskRow, task: TaskRow, move: Move, error: bytes | None, due_at: int, now: int
) -> Flow[None]:
    """Write what changes about a task that can run (again), apart from its state."""
    number = task.number
    if (task.level, task.ready_at) != (before.level, before.ready_at):
        yield Execute(SQL["note_place"], (task.level, task.ready_at, number))
    if move.state is State.SCHEDULED:
        yield Execute(SQL["note_run_at"], (due_at, number))
    if not move.clears:
        return
    passed = now if Clears.EXPIRY in move.clears else None
    if passed is not None:
        yield Execute(SQL["forget_expiry"], (number,))
    trail = _trail(before, move, due_at, now)
    values = (move.returns, move.timeout, error, passed, trail, number)
    yield Execute(SQL["note_rerun"], values)
    yield Execute(SQL["expire_again"], (number,))


def _trail(task: TaskRow, move: Move, due_at: int, now: int) -> bytes:
    """Return what a move by which a task runs again adds to its trail."""
    replayed = move.verb in REVIVALS
    trail = b""
    if task.claimed_at is not None:
        due = None if replayed or move.state is State.QUEUED else due_at
        trail = run_entry(task.attempt, task.ready_at, task.claimed_at, due)
    if replayed:
        state = State.of(task.state)
        trail += replay_entry(task.version, state, task.ready_at, task.completed_at, now)
    return trail


def _record_run(task: TaskRow, move: Move, now: int, error: bytes | None) -> Flow[None]:
    """Add the run that ended to the task's history; its slot may stay taken."""
    fence = (task.task_id, task.attempt, task.worker_id)
    yield Execute(SQL["record_attempt"], (*fence, task.started_at, now, move.run, error))
    if task.attempt > limits.FIRST_RUNS + limits.LAST_RUNS:
        yield Execute(SQL["drop_middle_attempts"], (task.task_id, task.attempt))
    if move.slot is Slot.LINGER:
        yield Execute(SQL["linger"], (task.worker_id, task.task_id, task.attempt, task.lane))
