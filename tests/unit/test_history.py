"""The history of a task, derived from what is stored of it."""

from datetime import timedelta
from typing import Any

from fairlane.core.history import Step, history_of
from fairlane.core.machine import (
    NOT_RETRIABLE,
    REPLACE,
    RETRIES_EXHAUSTED,
    TIMED_OUT,
    WORKER_LOST,
)
from fairlane.core.model import Attempt, TaskError
from fairlane.core.states import State
from tests.unit.make import NOON, TASK_ID, stored


def at(seconds: float) -> Any:
    return NOON + timedelta(seconds=seconds)


def run(number: int, begin: float | None, end: float, outcome: str, reason: str = "") -> Attempt:
    error = TaskError("no", reason=reason) if reason else None
    return Attempt(number, "w", None if begin is None else at(begin), at(end), outcome, error)


def told(**task: Any) -> list[tuple[str, float, str | None]]:
    """States, when, and why."""
    steps = history_of(stored(**task))
    return [(str(step.state), (step.at - NOON).total_seconds(), step.reason) for step in steps]


def test_a_new_task() -> None:
    assert history_of(stored()) == [Step(State.QUEUED, NOON)]
    scheduled = {"state": State.SCHEDULED, "run_at": at(60), "ready_at": at(60)}
    assert told(**scheduled) == [("scheduled", 0, None)]


def test_a_task_that_runs() -> None:
    steps = history_of(stored(state=State.EXECUTING, claimed_at=at(5), worker_id="w", attempt=1))
    assert steps == [Step(State.QUEUED, NOON), Step(State.EXECUTING, at(5), "w", 1)]


def test_a_task_that_was_due_before_it_ran() -> None:
    due = {"run_at": at(60), "ready_at": at(60), "state": State.EXECUTING, "claimed_at": at(61)}
    assert told(**due) == [("scheduled", 0, None), ("queued", 60, None), ("executing", 61, None)]
    child = {"depends_on": (TASK_ID,), "ready_at": at(9), "updated_at": at(9)}
    assert told(**child) == [("scheduled", 0, None), ("queued", 9, None)]
    runs = (run(1, 61, 62, "snoozed"),)
    snoozed = {**due, "state": State.SCHEDULED, "ready_at": at(99), "attempts": runs}
    assert told(**snoozed) == [
        ("scheduled", 0, None),
        ("queued", 60, None),
        ("executing", 61, None),
        ("scheduled", 62, "snoozed"),
    ]


def test_failures_on_the_way_to_the_dead_letters() -> None:
    runs = (
        run(1, 1, 2, "failed"),
        run(2, 3, 4, "timed_out"),
        run(3, 5, 6, "lost"),
        run(4, None, 7, "returned"),
        run(5, None, 8, "released"),
        run(6, 9, 10, "failed", RETRIES_EXHAUSTED),
    )
    dead = told(state=State.DEAD_LETTER, attempts=runs, completed_at=at(10), updated_at=at(10))
    assert dead == [
        ("queued", 0, None),
        ("executing", 1, None),
        ("retrying", 2, "failed"),
        ("executing", 3, None),
        ("retrying", 4, "timed_out"),
        ("executing", 5, None),
        ("queued", 6, "lost"),
        ("queued", 7, "returned"),
        ("queued", 8, "released"),
        ("executing", 9, None),
        ("dead_letter", 10, RETRIES_EXHAUSTED),
    ]


def test_every_way_to_end() -> None:
    ends = [
        ("failed", NOT_RETRIABLE, State.FAILED),
        ("timed_out", TIMED_OUT, State.DEAD_LETTER),
        ("lost", WORKER_LOST, State.DEAD_LETTER),
        ("returned", WORKER_LOST, State.DEAD_LETTER),
    ]
    for outcome, reason, state in ends:
        ended = told(state=state, attempts=(run(1, 1, 2, outcome, reason),), completed_at=at(2))
        assert ended[-1] == (state, 2, reason)
    for outcome, state in [("completed", State.COMPLETED), ("cancelled", State.CANCELLED)]:
        ended = told(state=state, attempts=(run(1, 1, 2, outcome),), completed_at=at(2))
        assert ended[-1] == (state, 2, None)


def test_what_happened_after_the_last_run() -> None:
    cancelled = {"state": State.CANCELLED, "completed_at": at(3), "error": REPLACE.error}
    assert told(**cancelled) == [("queued", 0, None), ("cancelled", 3, "replaced")]
    runs = (run(1, 1, 2, "failed", RETRIES_EXHAUSTED),)
    replayed = told(state=State.QUEUED, attempts=runs, updated_at=at(8), ready_at=at(8))
    assert replayed[-2:] == [("dead_letter", 2, RETRIES_EXHAUSTED), ("queued", 8, None)]
    again = told(state=State.CANCELLED, attempts=(run(1, 1, 2, "cancelled"),), completed_at=at(9))
    assert again[-2:] == [("cancelled", 2, None), ("cancelled", 9, None)]


def test_nothing_is_told_before_what_led_to_it() -> None:
    early = (run(1, -5, 1, "completed"),)
    ended = told(state=State.COMPLETED, attempts=early, completed_at=at(1))
    assert ended == [("queued", 0, None), ("executing", 0, None), ("completed", 1, None)]
