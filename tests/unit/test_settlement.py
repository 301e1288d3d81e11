"""Runs end: outcomes are decided in one place, and what comes late is judged."""

from collections.abc import Sequence
from typing import Any

import pytest

from fairlane.core.flow import Flow, Op, perform, reads, writes
from fairlane.core.ids import numbered
from fairlane.core.machine import COMPLETE, decide
from fairlane.core.model import (
    Attempt,
    Cancelled,
    Cause,
    Membership,
    OnFailure,
    Overdue,
    Spec,
    Task,
    TaskError,
    Verdict,
)
from fairlane.core.outcomes import Completed, Failed, Lost, Outcome, TimedOut, Unstarted
from fairlane.core.retry import DEFAULT
from fairlane.core.settlement import FencedMove, Settled, Settlement, judge_late, reaped, settle
from fairlane.core.states import State
from tests.unit.make import NOON, TASK_ID, claimed, stored

FATAL = Failed(TaskError("x", retriable=False))
OVERDUE: Any = (TASK_ID, 1, "w1", "t", Cause.TIMEOUT, True, 0, 0, 0, None, DEFAULT)
SEALED_ONCE = b'{"$sealed":"k1.AbCdEfGh.AAAA"}'
SEALED_AGAIN = b'{"$sealed":"k1.AbCdEfGh.BBBB"}'


class Engine:
    """Applies nothing, and keeps what it was asked to."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts = list(verdicts)
        self.moves: list[FencedMove] = []
        self.reaping: list[bool] = []
        self.tasks: dict[str, Task] = {}
        self.cancelled: list[str] = []

    @reads
    def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        yield
        return [self.tasks.get(each) for each in task_ids]

    @writes
    def cancel(self, task_ids: Sequence[str]) -> Flow[list[Cancelled]]:
        yield
        self.cancelled += task_ids
        return [Cancelled(each, applied=True, state=State.QUEUED) for each in task_ids]

    @writes
    def apply(self, moves: Sequence[FencedMove], *, reaping: bool) -> Flow[list[Verdict]]:
        self.moves += moves
        self.reaping.append(reaping)
        yield
        return self.verdicts


def perform_op(op: Op[Any]) -> Any:
    return perform(op.flow(), lambda _: None)


class TestSettle:
    DONE = Settlement(TASK_ID, 2, "w1", Completed(b"[1]"), claimed(), 0.5)
    FAILED = Settlement(TASK_ID, 3, "w1", Failed(TaskError("x")), claimed(retry_count=2), None, 0.9)

    def test_an_engine_is_given_the_moves_that_the_core_decides(self) -> None:
        engine = Engine(Verdict.APPLIED, Verdict.APPLIED)
        settled = perform_op(settle(engine, [self.DONE, self.FAILED]))
        retry = decide(claimed(retry_count=2), Failed(TaskError("x")), 0.9)
        assert engine.moves == [
            FencedMove(TASK_ID, 2, "w1", COMPLETE, 0.5, b"[1]"),
            FencedMove(TASK_ID, 3, "w1", retry),
        ]
        assert settled == [Settled(Verdict.APPLIED, COMPLETE), Settled(Verdict.APPLIED, retry)]

    @pytest.mark.parametrize("verdict", [Verdict.STALE, Verdict.MISSING])
    def test_what_is_refused_has_not_moved(self, verdict: Verdict) -> None:
        engine = Engine(verdict)
        assert perform_op(settle(engine, [self.DONE])) == [Settled(verdict, None)]

    def test_an_engine_hears_who_asks(self) -> None:
        engine = Engine(Verdict.APPLIED)
        perform_op(settle(engine, [self.DONE]))
        perform_op(settle(engine, [self.DONE], reaping=True))
        assert engine.reaping == [False, True]

    def test_a_settlement_and_its_move_are_under_one_fence(self) -> None:
        engine = Engine(Verdict.APPLIED)
        perform_op(settle(engine, [self.DONE]))
        assert engine.moves[0].fence == self.DONE.fence == (TASK_ID, 2, "w1")


class TestWorkflows:
    """A task that ends badly takes the rest of its workflow with it, if that says so."""

    WORKFLOW = numbered(TASK_ID, -1)

    def settled(
        self,
        *,
        policy: OnFailure = OnFailure.CANCEL,
        verdict: Verdict = Verdict.APPLIED,
        outcome: Outcome = FATAL,
        by_server: bool = False,
        there: bool = True,
    ) -> list[str]:
        place = Membership("a", 2, on_failure=policy)
        of: dict[str, Any] = {"workflow_id": self.WORKFLOW, "membership": place}
        engine = Engine(verdict)
        if there:
            other = numbered(TASK_ID, 1)
            engine.tasks = {
                TASK_ID: stored(state=State.FAILED, task_id=TASK_ID, **of),
                other: stored(state=State.QUEUED, task_id=other, **of),
            }
        standing: Any = stored(**of) if by_server else claimed(spec=Spec(**of))
        perform_op(settle(engine, [Settlement(TASK_ID, 1, "w1", outcome, standing)]))
        return engine.cancelled

    @pytest.mark.parametrize("by_server", [False, True])
    def test_a_failure_cancels_the_rest(self, by_server: bool) -> None:
        assert self.settled(by_server=by_server) == [numbered(TASK_ID, 1)]

    @pytest.mark.parametrize(
        "changes",
        [
            {"policy": OnFailure.CONTINUE},
            {"verdict": Verdict.STALE},
            {"outcome": Failed(TaskError("x"))},
            {"outcome": Completed(b"1")},
            {"there": False},
        ],
    )
    def test_nothing_else_does(self, changes: dict[str, Any]) -> None:
        assert self.settled(**changes) == []

    def test_it_takes_one_that_is_known_to_be_of_a_workflow(self) -> None:
        overdue = Overdue(*OVERDUE)
        for standing in (overdue, claimed(), stored()):
            engine = Engine(Verdict.APPLIED)
            perform_op(settle(engine, [Settlement(TASK_ID, 1, "w1", FATAL, standing)]))
            assert engine.cancelled == []


@pytest.mark.parametrize(
    ("cause", "started", "outcome"),
    [
        (Cause.LOST, True, Lost(started=True)),
        (Cause.LOST, False, Lost(started=False)),
        (Cause.TIMEOUT, True, TimedOut(running=True)),
        (Cause.UNSTARTED, False, Unstarted()),
    ],
)
def test_maintenance_ends_what_is_overdue(cause: Cause, started: bool, outcome: Outcome) -> None:
    item = Overdue(TASK_ID, 2, "w1", "email", cause, started, 0, 3, 0, 60.0, DEFAULT)
    assert reaped(item, 0.25) == Settlement(TASK_ID, 2, "w1", outcome, item, None, 0.25)


@pytest.mark.parametrize("started", [True, False])
def test_maintenance_passes_on_over_which_time_lost_tasks_come_back(started: bool) -> None:
    item = Overdue(TASK_ID, 2, "w1", "email", Cause.LOST, started, 0, 3, 0, 60.0, DEFAULT)
    assert reaped(item, 0.25, 60.0).outcome == Lost(started, spread=60.0)


class TestLateMoves:
    LATE = FencedMove(TASK_ID, 2, "w1", COMPLETE, seconds=0.5)

    def past(self, number: int, worker_id: str | None, outcome: str) -> Attempt:
        return Attempt(number, worker_id, NOON, NOON, outcome)

    def test_the_fence_is_task_attempt_and_worker(self) -> None:
        assert self.LATE.fence == (TASK_ID, 2, "w1")

    def test_a_task_that_is_gone_is_missing(self) -> None:
        assert judge_late(None, self.LATE) is Verdict.MISSING

    def test_a_report_that_was_applied_before_is_applied(self) -> None:
        task = stored(attempts=(self.past(1, "w0", "lost"), self.past(2, "w1", "completed")))
        assert judge_late(task, self.LATE) is Verdict.APPLIED

    @pytest.mark.parametrize(
        ("stored_result", "sent", "verdict"),
        [
            (None, b"null", Verdict.APPLIED),
            (b"null", None, Verdict.APPLIED),
            (b'{"a":1,"b":2}', b'{"b": 2, "a": 1}', Verdict.APPLIED),
            (b"1", b"2", Verdict.STALE),
            (b"1", b"true", Verdict.STALE),
            (b"[0]", b"[false]", Verdict.STALE),
            (b"1", None, Verdict.STALE),
            (b'{"$zstd":"', b"1", Verdict.STALE),
            (SEALED_ONCE, SEALED_AGAIN, Verdict.APPLIED),
            (b"1", SEALED_AGAIN, Verdict.APPLIED),
        ],
    )
    def test_a_completion_is_known_by_its_result(
        self, stored_result: bytes | None, sent: bytes | None, verdict: Verdict
    ) -> None:
        task = stored(attempts=(self.past(2, "w1", "completed"),), result=stored_result)
        late = FencedMove(TASK_ID, 2, "w1", COMPLETE, seconds=0.5, result=sent)
        assert judge_late(task, late) is verdict

    @pytest.mark.parametrize(("same", "verdict"), [(True, Verdict.APPLIED), (False, Verdict.STALE)])
    def test_who_sealed_a_result_knows_whether_it_is_the_stored_one(
        self, same: bool, verdict: Verdict
    ) -> None:
        task = stored(attempts=(self.past(2, "w1", "completed"),), result=SEALED_ONCE)
        asked: list[bytes] = []

        def matches(value: bytes) -> bool:
            asked.append(value)
            return same

        outcome = Completed(SEALED_AGAIN)
        told = Settlement(TASK_ID, 2, "w1", outcome, claimed(), matches=matches)
        engine = Engine(Verdict.APPLIED)
        perform_op(settle(engine, [told]))
        assert judge_late(task, engine.moves[0]) is verdict
        assert asked == [SEALED_ONCE]

    @pytest.mark.parametrize(
        ("number", "worker_id", "outcome"),
        [
            (1, "w1", "completed"),
            (3, "w1", "completed"),
            (2, "w2", "completed"),
            (2, None, "completed"),
            (2, "w1", "timed_out"),
            (2, "w1", "lost"),
            (2, "w1", "returned"),
        ],
    )
    def test_a_report_on_an_attempt_that_ended_otherwise_is_stale(
        self, number: int, worker_id: str | None, outcome: str
    ) -> None:
        task = stored(attempts=(self.past(number, worker_id, outcome),))
        assert judge_late(task, self.LATE) is Verdict.STALE

    def test_a_report_on_a_task_without_history_is_stale(self) -> None:
        assert judge_late(stored(attempts=()), self.LATE) is Verdict.STALE
