"""How a task came to be as it is: derived from what is stored of it, not stored twice.

The newest 100 earlier runs and replays have all their times (see `trail`). Of older runs it is
missing when the task became queued again (and that a lost one was retried later, not at once),
and runs that never began have no state `executing`.
Missing too: why a task that waited was cancelled or expired, once it is replayed; and whether a
task with parents was ready at once, if it ended before it ran. A retry counts as
queued from the time it was due, even if it was moved a little later.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from fairlane.core.machine import (
    NOT_RETRIABLE,
    NOT_STARTED,
    RETRIES_EXHAUSTED,
    TIMED_OUT,
    WORKER_LOST,
)
from fairlane.core.model import Attempt, Past, Task
from fairlane.core.states import TERMINAL, State


class Step(msgspec.Struct, frozen=True):
    """A state that a task entered."""

    state: State
    at: datetime
    worker_id: str | None = None
    attempt: int | None = None
    reason: str | None = None


def history_of(task: Task) -> list[Step]:
    """Return the states that a task went through, oldest first."""
    runs = {each.attempt: each for each in task.trail if each.attempt is not None}
    replays = [each for each in task.trail if each.state is not None]
    steps, due = _beginning(task)
    waited = _waited(task)
    for run in task.attempts:
        past = runs.get(run.number)
        claimed = _claimed_at(task, run, past)
        begun = claimed or run.ended_at
        while replays and (replays[0].next_at or begun) <= begun:
            replay = replays.pop(0)
            _add_replay(steps, replay, due, waits=replay in waited)
            due = waited.get(replay)
        _add_due(steps, due, begun)
        if claimed is not None:
            steps.append(Step(State.EXECUTING, claimed, run.worker_id, run.number))
        steps.append(_end_of(run, past))
        due = None if past is None else past.next_at
    for each in replays:
        _add_replay(steps, each, due, waits=each in waited)
        due = waited.get(each)
    _add_present(steps, task, due)
    if task.depends_on and steps[0].state is State.QUEUED and task.version == len(steps) + 1:
        # The end of a parent came with the submission: its version tells that it waited for it.
        steps.insert(0, Step(State.SCHEDULED, task.created_at))
    return _in_order(steps)


def _in_order(steps: list[Step]) -> list[Step]:
    """Return the steps with times that never go back: a run's start is its worker's word."""
    at = steps[0].at
    ordered = []
    for step in steps:
        at = max(at, step.at)
        ordered.append(msgspec.structs.replace(step, at=at))
    return ordered


def _beginning(task: Task) -> tuple[list[Step], datetime | None]:
    """Return the first state of a task, and when it became queued if it had to wait."""
    claimed = _first_claim(task)
    ready = _first_ready(task, claimed)
    if ready > task.created_at:
        return [Step(State.SCHEDULED, task.created_at)], ready
    # While it waits for its parents, its place tells nothing.
    if task.trail:
        queued = task.trail[0].attempt is not None
    else:
        queued = claimed is not None or task.state is State.QUEUED
    first = State.SCHEDULED if task.depends_on and not queued else State.QUEUED
    return [Step(first, task.created_at)], None


def _first_ready(task: Task, claimed: datetime | None) -> datetime:
    """Return the place in the queue that a task had at first."""
    if task.trail:
        return task.trail[0].ready_at
    # A snooze or a replay in an earlier version left no trail, and made it ready once more.
    if not task.depends_on and task.run_at <= task.created_at:
        return task.created_at
    return task.ready_at if claimed is None or task.ready_at <= claimed else task.run_at


def _first_claim(task: Task) -> datetime | None:
    if not task.attempts:
        return task.claimed_at
    first = task.attempts[0]
    past = next((each for each in task.trail if each.attempt == first.number), None)
    return _claimed_at(task, first, past)


def _claimed_at(task: Task, run: Attempt, past: Past | None) -> datetime | None:
    """Return when a worker got a task, or else when it began to run it, if that is known."""
    claimed = None if past is None else past.happened_at
    if past is None and run.number == task.attempt:
        claimed = task.claimed_at
    return claimed or run.started_at


def _add_due(
    steps: list[Step], due: datetime | None, until: datetime, version: int | None = None
) -> None:
    """Add that a task became queued when it was due, if nothing came before.

    `version`: of the task after the next step. It counts the steps, and tells if this was one.
    """
    if due is not None and due <= until and version != len(steps) + 1:
        steps.append(Step(State.QUEUED, due))


def _waited(task: Task) -> dict[Past, datetime | None]:
    """Return the replays after which a task waited for its parents, and until when. None: it still
    does."""
    if not task.depends_on or not task.trail:
        return {}
    found: dict[Past, datetime | None] = {}
    places = [*(each.ready_at for each in task.trail[1:]), task.ready_at]
    for each, ready in zip(task.trail, places, strict=True):
        if each.state is None or each.next_at is None:
            continue
        if ready > each.next_at:
            found[each] = ready
        elif each is task.trail[-1] and task.state is State.SCHEDULED:
            found[each] = None
    return found


def _add_replay(steps: list[Step], replay: Past, due: datetime | None, *, waits: bool) -> None:
    assert replay.state is not None
    assert replay.next_at is not None
    ended = replay.happened_at
    if ended is not None and (steps[-1].state, steps[-1].at) != (replay.state, ended):
        _add_due(steps, due, ended, replay.version)
        steps.append(Step(replay.state, ended))
    state = State.SCHEDULED if waits else State.QUEUED
    steps.append(Step(state, replay.next_at, reason="replayed"))


def _end_of(run: Attempt, past: Past | None) -> Step:
    why = None if run.error is None else run.error.reason
    end = _ENDS.get(why or "")
    if end is None:
        # A lost run is retried at once, or later if the store spreads such retries.
        later = past is not None and past.next_at is not None
        end = _AFTER.get(run.outcome, State.RETRYING if later else State.QUEUED)
        why = None if end in TERMINAL else run.outcome
    return Step(end, run.ended_at, run.worker_id, run.number, why)


_ENDS: Final = {
    NOT_RETRIABLE: State.FAILED,
    RETRIES_EXHAUSTED: State.DEAD_LETTER,
    TIMED_OUT: State.DEAD_LETTER,
    WORKER_LOST: State.DEAD_LETTER,
    NOT_STARTED: State.DEAD_LETTER,
}
_AFTER: Final = {
    "completed": State.COMPLETED,
    "cancelled": State.CANCELLED,
    "snoozed": State.SCHEDULED,
    "failed": State.RETRYING,
    "timed_out": State.RETRYING,
}


def _add_present(steps: list[Step], task: Task, due: datetime | None) -> None:
    """Add what happened since the last run or replay."""
    last = steps[-1]
    if task.state is State.EXECUTING:
        since = task.claimed_at or task.updated_at
        _add_due(steps, due, since)
        steps.append(Step(task.state, since, task.worker_id, task.attempt))
    elif task.state in TERMINAL:
        ended = task.completed_at or task.updated_at
        if last.state is not task.state or last.at < ended:
            _add_due(steps, due, ended, task.version)
            reason = None if task.error is None else task.error.reason
            steps.append(Step(task.state, ended, reason=reason))
    elif last.state is not task.state:
        steps.append(Step(task.state, due or task.updated_at))
