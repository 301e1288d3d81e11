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
from fairlane.core.model import Attempt, Past, TaskError
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


def claimed(number: int, claimed: float, due: float | None = None, ready: float = 0) -> Past:
    """What the trail has of a run."""
    return Past(
        attempt=number,
        version=None,
        state=None,
        ready_at=at(ready),
        happened_at=at(claimed),
        next_at=None if due is None else at(due),
    )


def replayed(
    then: float, state: State, version: int, ended: float | None, ready: float = 0
) -> Past:
    """What the trail has of a replay."""
    return Past(
        attempt=None,
        version=version,
        state=state,
        ready_at=at(ready),
        happened_at=None if ended is None else at(ended),
        next_at=at(then),
    )


def test_every_step_of_a_long_life() -> None:
    runs = (
        run(1, 11, 12, "failed"),
        run(2, None, 24, "returned"),
        run(3, 31, 32, "snoozed"),
        run(4, 61, 62, "failed", RETRIES_EXHAUSTED),
        run(5, 71, 72, "completed"),
    )
    trail = (
        claimed(1, 11, 20, ready=10),
        claimed(2, 23, ready=10),
        claimed(3, 30, 60, ready=10),
        claimed(4, 61, ready=60),
        replayed(70, State.DEAD_LETTER, 12, 62, ready=60),
    )
    done = told(
        state=State.COMPLETED,
        run_at=at(60),
        ready_at=at(70),
        claimed_at=at(71),
        completed_at=at(72),
        version=15,
        attempt=5,
        attempts=runs,
        trail=trail,
    )
    assert done == [
        ("scheduled", 0, None),
        ("queued", 10, None),
        ("executing", 11, None),
        ("retrying", 12, "failed"),
        ("queued", 20, None),
        ("executing", 23, None),
        ("queued", 24, "returned"),
        ("executing", 30, None),
        ("scheduled", 32, "snoozed"),
        ("queued", 60, None),
        ("executing", 61, None),
        ("dead_letter", 62, RETRIES_EXHAUSTED),
        ("queued", 70, "replayed"),
        ("executing", 71, None),
        ("completed", 72, None),
    ]


def test_a_retry_that_did_not_become_due() -> None:
    failed = {"attempts": (run(1, 1, 2, "failed"),), "trail": (claimed(1, 1, 9),), "attempt": 1}
    start = [("queued", 0, None), ("executing", 1, None), ("retrying", 2, "failed")]
    assert told(**failed, state=State.RETRYING, version=3) == start
    queued = {"state": State.QUEUED, "updated_at": at(10), "version": 4}
    assert told(**failed, **queued) == [*start, ("queued", 9, None)]
    running = {"state": State.EXECUTING, "claimed_at": at(11), "version": 5}
    assert told(**failed, **running)[3:] == [("queued", 9, None), ("executing", 11, None)]
    # It was cancelled after its time, but before anybody moved it: its version tells.
    ended = {"state": State.CANCELLED, "completed_at": at(11)}
    assert told(**failed, **ended, version=4) == [*start, ("cancelled", 11, None)]
    assert told(**failed, **ended, version=5)[3:] == [("queued", 9, None), ("cancelled", 11, None)]
    early = {"state": State.CANCELLED, "completed_at": at(5), "version": 4}
    assert told(**failed, **early) == [*start, ("cancelled", 5, None)]


def test_a_lost_run_whose_retry_came_later() -> None:
    lost = {"attempts": (run(1, 1, 2, "lost"),), "trail": (claimed(1, 1, 9),), "attempt": 1}
    start = [("queued", 0, None), ("executing", 1, None), ("retrying", 2, "lost")]
    assert told(**lost, state=State.RETRYING, version=3) == start
    running = {"state": State.EXECUTING, "claimed_at": at(11), "version": 5}
    assert told(**lost, **running) == [*start, ("queued", 9, None), ("executing", 11, None)]
    lost["trail"] = (claimed(1, 1),)
    assert told(**lost, state=State.QUEUED, updated_at=at(2), version=3) == [
        *start[:2],
        ("queued", 2, "lost"),
    ]


def test_replays_of_what_never_ran() -> None:
    trail = (
        replayed(4, State.CANCELLED, 2, 3, ready=60),
        replayed(8, State.FAILED, 4, 7, ready=4),
    )
    waited = {"run_at": at(60), "ready_at": at(8), "updated_at": at(8), "version": 5}
    assert told(trail=trail, **waited) == [
        ("scheduled", 0, None),
        ("cancelled", 3, None),
        ("queued", 4, "replayed"),
        ("failed", 7, None),
        ("queued", 8, "replayed"),
    ]
    early = (replayed(4, State.SCHEDULED, 1, None, ready=60),)
    assert told(trail=early, run_at=at(60), ready_at=at(4), version=2) == [
        ("scheduled", 0, None),
        ("queued", 4, "replayed"),
    ]


def test_a_task_that_waited_for_its_parents_again() -> None:
    child = {"depends_on": (TASK_ID,), "trail": (replayed(5, State.CANCELLED, 2, 3),)}
    start = [("scheduled", 0, None), ("cancelled", 3, None), ("scheduled", 5, "replayed")]
    assert told(**child, state=State.SCHEDULED, ready_at=at(5), version=3) == start
    ready = {"ready_at": at(8), "updated_at": at(8), "version": 4}
    assert told(**child, **ready) == [*start, ("queued", 8, None)]
    ran = {"state": State.COMPLETED, "attempts": (run(1, 9, 10, "completed"),), "attempt": 1}
    ran |= {"claimed_at": at(9), "completed_at": at(10), "ready_at": at(8), "version": 6}
    assert told(**child, **ran) == [
        *start,
        ("queued", 8, None),
        ("executing", 9, None),
        ("completed", 10, None),
    ]
    at_once = {"ready_at": at(5), "updated_at": at(5), "version": 3}
    assert told(**child, **at_once) == [*start[:2], ("queued", 5, "replayed")]
    again = (replayed(5, State.CANCELLED, 2, 3), claimed(1, 6, 7, ready=5))
    retried = {"depends_on": (TASK_ID,), "trail": again, "attempts": (run(1, 6, 7, "failed"),)}
    assert told(**retried, state=State.RETRYING, ready_at=at(5), attempt=1)[2:] == [
        ("queued", 5, "replayed"),
        ("executing", 6, None),
        ("retrying", 7, "failed"),
    ]


def test_a_task_whose_parents_had_ended() -> None:
    child = {"depends_on": (TASK_ID,), "ready_at": NOON, "updated_at": NOON}
    assert told(**child, version=1) == [("queued", 0, None)]
    # The submission itself replaced its parent, and so released it.
    assert told(**child, version=2) == [("scheduled", 0, None), ("queued", 0, None)]
    ran = {"state": State.EXECUTING, "claimed_at": at(2), "attempt": 1}
    assert told(**child, **ran, version=2) == [("queued", 0, None), ("executing", 2, None)]


def test_what_ended_with_its_first_move_was_never_queued() -> None:
    child = {"depends_on": (TASK_ID,), "run_at": at(5), "ready_at": at(5), "completed_at": at(9)}
    doomed = told(**child, state=State.CANCELLED, version=2)
    assert doomed == [("scheduled", 0, None), ("cancelled", 9, None)]
    queued = told(**child, state=State.CANCELLED, version=3)
    assert queued == [("scheduled", 0, None), ("queued", 5, None), ("cancelled", 9, None)]


def test_nothing_is_told_before_what_led_to_it() -> None:
    early = (run(1, -5, 1, "completed"),)
    ended = told(state=State.COMPLETED, attempts=early, completed_at=at(1))
    assert ended == [("queued", 0, None), ("executing", 0, None), ("completed", 1, None)]
