"""Records: what an engine stored, as a user sees it."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from fairlane.core.inputs import Input, TaskInput
from fairlane.core.lanes import Lane
from fairlane.core.model import (
    Cause,
    Claimed,
    Progress,
    Spec,
    TaskError,
    WorkerStatus,
    moment,
)
from fairlane.core.priority import Aging
from fairlane.core.records import (
    COUNTED,
    TaskRecord,
    WorkerRecord,
    attempt_of,
    claimed_of,
    error_of,
    head_of,
    names_of,
    overdue_of,
    stored_error,
    stored_names,
    stored_seconds,
)
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from tests.unit.make import TASK_ID

LANE = Lane(7, "bulk", "email", ("gpu",))
NOW = 1_772_366_400_000_000
SECOND = 1_000_000


def record(state: State, **changes: Any) -> TaskRecord:
    plain = TaskRecord(
        task_id=TASK_ID,
        level=2,
        state=state.code,
        ready_at=NOW - 700 * SECOND,
        due_at=None,
        created_at=NOW - 700 * SECOND,
        run_at=NOW - 700 * SECOND,
        expires_at=None,
        attempt=2,
        retry_count=1,
        max_retries=3,
        returns=0,
        timeout=30.0,
        updated_at=NOW,
        version=4,
        payload=b"{}",
        spec=None,
        idempotency_key=None,
        worker_id="w1",
        claimed_at=NOW - 2 * SECOND,
        started_at=NOW - SECOND,
        completed_at=None,
        error=None,
        result=None,
        trail=None,
    )
    return msgspec.structs.replace(plain, **changes)


FAILED_RUN = attempt_of(1, "w0", None, NOW - 60 * SECOND, "failed", b'{"message":"no"}')


def test_a_completed_task_tells_of_its_last_run_itself() -> None:
    stored = record(State.COMPLETED, completed_at=NOW, result=b"1")
    task = stored.task(LANE, [FAILED_RUN], None, Aging(), NOW)
    assert (task.type, task.queue, task.required_capabilities) == ("email", "bulk", ("gpu",))
    assert (task.status, task.result, task.completed_at) == (State.COMPLETED, b"1", moment(NOW))
    first, last = task.attempts
    assert first == FAILED_RUN
    assert (last.number, last.worker_id, last.outcome, last.error) == (2, "w1", "completed", None)
    assert last.ended_at - (last.started_at or last.ended_at) == timedelta(seconds=1)


def test_other_states_have_only_the_runs_that_are_stored() -> None:
    task = record(State.EXECUTING).task(LANE, [FAILED_RUN], None, Aging(), NOW)
    assert task.attempts == (FAILED_RUN,)
    assert task.attempts[0].error == TaskError("no")


@pytest.mark.parametrize(("state", "counts_as"), [(State.QUEUED, 5), (State.EXECUTING, 2)])
def test_age_raises_only_what_is_queued(state: State, counts_as: int) -> None:
    task = record(state).task(LANE, [], None, Aging(), NOW)
    assert (task.priority, task.effective_priority) == (2, counts_as)


@pytest.mark.parametrize(
    ("state", "next_retry_at"), [(State.RETRYING, moment(NOW)), (State.SCHEDULED, None)]
)
def test_only_a_retry_has_a_next_retry(state: State, next_retry_at: object) -> None:
    task = record(state, due_at=NOW).task(LANE, [], None, Aging(), NOW)
    assert task.next_retry_at == next_retry_at


def test_what_was_submitted_with_it_comes_back() -> None:
    spec = Spec(tags={"team": "blue"}, trace_id="abc", traceparent="00-1-2-01")
    progress = Progress(50.0, "half", moment(NOW))
    stored = record(State.EXECUTING, spec=spec.encode(), error=b'{"message":"x"}')
    task = stored.task(LANE, [], progress, Aging(), NOW)
    assert (task.tags, task.trace_id, task.traceparent) == ({"team": "blue"}, "abc", "00-1-2-01")
    assert (task.progress, task.error) == (progress, TaskError("x"))
    plain = record(State.EXECUTING).task(LANE, [], None, Aging(), NOW)
    assert (plain.depends_on, plain.tolerant) == ((), False)
    assert (plain.trace_id, plain.error) == (TASK_ID.replace("-", ""), None)


def test_what_it_depends_on_and_belongs_to_comes_back() -> None:
    spec = Spec(workflow_id="w", schedule_id="s", depends_on=(TASK_ID,), tolerant=True, owner="o")
    task = record(State.SCHEDULED, spec=spec.encode()).task(LANE, [], None, Aging(), NOW)
    assert (task.workflow_id, task.schedule_id, task.owner) == ("w", "s", "o")
    assert (task.depends_on, task.tolerant, task.inputs) == ((TASK_ID,), True, {})


def test_its_inputs_come_back_with_the_ids_of_their_parents() -> None:
    spec = Spec(depends_on=(TASK_ID,), inputs={"order": Input((0,), path=("id",))})
    task = record(State.SCHEDULED, spec=spec.encode()).task(LANE, [], None, Aging(), NOW)
    assert task.inputs == {"order": TaskInput((TASK_ID,), path=("id",))}


def worker(**changes: Any) -> WorkerRecord:
    plain = WorkerRecord(
        "w1",
        "active",
        10,
        3,
        '["gpu"]',
        None,
        '["a","b"]',
        "h",
        "1",
        None,
        30 * SECOND,
        None,
        NOW,
        NOW,
    )
    return msgspec.structs.replace(plain, **changes)


def test_a_worker_as_it_is_stored() -> None:
    seen = worker(health='{"cpu":0.5}').worker(["t1"], NOW + SECOND)
    assert (seen.status, seen.capacity, seen.load, seen.lease) == (WorkerStatus.ACTIVE, 10, 3, 30)
    assert seen.capabilities == frozenset({"gpu"})
    assert seen.queues is None
    assert seen.types == frozenset({"a", "b"})
    assert (seen.current_tasks, seen.health, seen.lost) == (("t1",), {"cpu": 0.5}, False)
    assert worker().worker([], NOW).health is None
    assert worker().worker([], NOW).start_within is None
    assert worker(load=COUNTED).worker(["t1", "t2"], NOW).load == 2
    assert worker(start_within=30 * SECOND).worker([], NOW).start_within == 30.0


@pytest.mark.parametrize(
    ("status", "silent_for", "lost"),
    [("active", 29, False), ("active", 30, True), ("draining", 31, True), ("dead", 99, False)],
)
def test_a_worker_is_lost_when_its_lease_has_run_out(
    status: str, silent_for: int, lost: bool
) -> None:
    assert worker(status=status).worker([], NOW + silent_for * SECOND).lost is lost


@pytest.mark.parametrize("names", [None, frozenset(), frozenset({"b", "a"})])
def test_names_come_back_as_they_were(names: frozenset[str] | None) -> None:
    assert names_of(stored_names(names)) == names


def test_no_error_is_none() -> None:
    assert error_of(None) is None
    assert error_of(b"") is None
    assert stored_error(None) is None
    assert error_of(stored_error(TaskError("x", "E"))) == TaskError("x", "E")


def test_a_claimed_row() -> None:
    lane = Lane(7, "q", "mail", ())
    counters = (1, 3, 2, 30.0)
    row = (TASK_ID, 4, 7, 5, b"{}", *counters, 10, 20, None)
    plain = claimed_of(row, {7: lane}.__getitem__, "w")
    assert plain == Claimed(TASK_ID, 4, "w", "mail", "q", 5, b"{}", *counters, 10, 20)
    spec = Spec(tags={"a": "b"})
    tagged = claimed_of((*row[:-1], spec.encode()), {7: lane}.__getitem__, "w")
    assert tagged.spec == spec


def test_an_overdue_row() -> None:
    row = (TASK_ID, 2, "w", "mail", "timeout", 1, 1, 3, 0, 30.0, None)
    found = overdue_of(row)
    assert (found.task_id, found.attempt, found.worker_id) == (TASK_ID, 2, "w")
    assert found.type == "mail"
    assert (found.cause, found.started, found.retry) == (Cause.TIMEOUT, True, RetryPolicy())
    assert (found.retry_count, found.max_retries, found.returns, found.timeout) == (1, 3, 0, 30.0)


def test_durations_are_stored_in_microseconds() -> None:
    assert stored_seconds(None) is None
    assert stored_seconds(1.5) == 1_500_000


def test_a_head_has_nothing_large() -> None:
    stored = record(State.COMPLETED, completed_at=NOW, result=b"1")
    task = stored.task(LANE, [FAILED_RUN], None, Aging(), NOW)
    head = head_of(task)
    assert (head.payload, head.result) == (b"", None)
    assert [run.outcome for run in head.attempts] == ["completed"]
    assert (
        msgspec.structs.replace(
            head, payload=task.payload, result=task.result, attempts=task.attempts
        )
        == task
    )
