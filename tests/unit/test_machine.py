"""The state machine: every state, every outcome, and what they lead to."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.machine import (
    BIND_AGAIN,
    CANCEL,
    COMPLETE,
    DOOM,
    DUE,
    EXPIRE,
    FREE,
    FROM_START,
    REPLACE,
    TRANSITIONS,
    Clears,
    Move,
    Place,
    Slot,
    Verb,
    allows,
    decide,
    replay,
    sources_of,
)
from fairlane.core.model import Cause, Claimed, Overdue, Spec, TaskError
from fairlane.core.outcomes import (
    Completed,
    Disowned,
    Failed,
    Lost,
    Outcome,
    Released,
    Snoozed,
    TimedOut,
    Unstarted,
)
from fairlane.core.retry import DEFAULT, RetryPolicy
from fairlane.core.states import State
from tests.unit.make import TASK_ID, claimed, quick

BOOM = TaskError("boom", code="BOOM")
BROKEN = TaskError("cannot work", code="BROKEN", retriable=False)
SLOW_DOWN = TaskError("too many requests", code="RATE_LIMIT")
UNAVAILABLE = TaskError("try later", code="TEMPORARY_UNAVAILABLE")
LOST = TaskError("The worker died while it held the task.", code="WORKER_LOST")
DISOWNED = TaskError("The worker that held the task does not run it.", code="WORKER_LOST")
IDLE = TaskError("The worker did not start the task in time.", code="NOT_STARTED")
TOO_SLOW = TaskError(
    "The attempt took longer than its time limit of 600 s: give the task a longer `timeout`, or "
    "less to do in one run.",
    code="TIMEOUT",
)

OUTCOMES: list[Outcome] = [
    Completed(b'{"sent":true}'),
    Failed(BOOM),
    Failed(BOOM, after=7.0),
    Failed(BROKEN),
    Failed(BROKEN, after=7.0),
    Failed(SLOW_DOWN),
    TimedOut(),
    Lost(started=True),
    Lost(started=False),
    Lost(started=True, spread=60.0),
    Lost(started=False, spread=60.0),
    Unstarted(),
    Disowned(started=True),
    Disowned(started=False),
    Released(),
    Snoozed(30.0),
]

MIDDLE = 0.5  # the jitter that leaves a delay as it is


def again(
    verb: Verb, state: State, run: str, retry_count: int, returns: int, timeout: float, **more: Any
) -> Move:
    """The move of a run whose task is to run again."""
    counters = {"retry_count": retry_count, "returns": returns, "timeout": timeout}
    return Move(verb, state, run, **(AGAIN[verb] | counters | more))


def ended(verb: Verb, state: State, run: str, retry_count: int, **more: Any) -> Move:
    """The move of a run whose task has ended badly."""
    return Move(verb, state, run, clears=Clears.ERROR, retry_count=retry_count, **more)


AGAIN: dict[Verb, dict[str, Any]] = {
    Verb.RETRY: {"clears": Clears.ERROR | Clears.PROGRESS},
    Verb.RELEASE: {"clears": Clears.ERROR | Clears.PROGRESS, "wakes": True},
    Verb.SNOOZE: {"clears": Clears.ERROR | Clears.PROGRESS, "place": Place.RESET},
}


def move_of(task: Claimed, outcome: Outcome, jitter: float = MIDDLE) -> Move:
    return decide(task, outcome, jitter)


def after(task: Claimed, move: Move) -> Claimed:
    """The task on its next run, or as it stands at its end."""
    return replace(
        task,
        attempt=task.attempt + 1,
        retry_count=task.retry_count if move.retry_count is None else move.retry_count,
        returns=task.returns if move.returns is None else move.returns,
        timeout=task.timeout if move.timeout is None else move.timeout,
    )


class TestTransitions:
    """The table of SPEC section 1, written out again."""

    ARROWS = frozenset(
        {
            # submit
            (None, "scheduled"),
            (None, "queued"),
            # due, or dependencies completed
            ("scheduled", "queued"),
            ("retrying", "queued"),
            # claim
            ("queued", "executing"),
            # the end of an attempt
            ("executing", "completed"),
            ("executing", "retrying"),
            ("executing", "queued"),
            ("executing", "failed"),
            ("executing", "dead_letter"),
            ("executing", "cancelled"),
            ("executing", "scheduled"),
            # cancelled while waiting
            ("scheduled", "cancelled"),
            ("queued", "cancelled"),
            ("retrying", "cancelled"),
            # expired
            ("scheduled", "failed"),
            ("queued", "failed"),
            ("retrying", "failed"),
            # manual retry and replay; from scheduled and retrying as above
            ("failed", "queued"),
            ("dead_letter", "queued"),
            ("cancelled", "queued"),
            # a task of a workflow that is resumed
            ("completed", "queued"),
            ("completed", "scheduled"),
            ("failed", "scheduled"),
            ("dead_letter", "scheduled"),
            ("cancelled", "scheduled"),
        }
    )

    VERBS = (
        ("submit", (), ("scheduled", "queued")),
        ("due", ("scheduled", "retrying"), ("queued",)),
        ("claim", ("queued",), ("executing",)),
        ("complete", ("executing",), ("completed",)),
        ("retry", ("executing",), ("retrying",)),
        ("snooze", ("executing",), ("scheduled",)),
        ("release", ("executing",), ("queued",)),
        ("fail", ("executing",), ("failed",)),
        ("dead_letter", ("executing",), ("dead_letter",)),
        ("cancel", ("scheduled", "queued", "retrying", "executing"), ("cancelled",)),
        ("expire", ("scheduled", "queued", "retrying"), ("failed",)),
        (
            "replay",
            ("retrying", "scheduled", "failed", "dead_letter", "cancelled"),
            ("queued",),
        ),
        ("rerun", ("completed", "failed", "dead_letter", "cancelled"), ("queued",)),
        ("rebind", ("completed", "failed", "dead_letter", "cancelled"), ("scheduled",)),
        ("delete", ("completed", "failed", "dead_letter", "cancelled", "retrying"), ()),
    )

    def test_the_arrows_are_those_of_the_specification_and_no_others(self) -> None:
        arrows = {
            (source, target)
            for transition in TRANSITIONS.values()
            for source in transition.sources or {None}
            for target in transition.targets
        }
        assert arrows == self.ARROWS

    def test_the_verbs_are_those_of_the_specification_and_no_others(self) -> None:
        assert {verb: (t.sources, t.targets) for verb, t in TRANSITIONS.items()} == {
            verb: (frozenset(sources), frozenset(targets)) for verb, sources, targets in self.VERBS
        }
        assert set(TRANSITIONS) == set(Verb)

    @pytest.mark.parametrize(("verb", "sources"), [verb[:2] for verb in VERBS])
    def test_a_verb_is_allowed_from_its_sources_only(
        self, verb: str, sources: tuple[str, ...]
    ) -> None:
        assert {state for state in State if allows(Verb(verb), state)} == set(sources)

    def test_nothing_but_deletion_and_a_workflow_touches_what_is_completed(self) -> None:
        verbs = [verb for verb in Verb if allows(verb, State.COMPLETED)]
        assert verbs == [Verb.RERUN, Verb.REBIND, Verb.DELETE]

    def test_what_could_still_run_by_itself_or_is_running_is_not_deleted(self) -> None:
        kept = {state for state in State if not allows(Verb.DELETE, state)}
        assert kept == {State.SCHEDULED, State.QUEUED, State.EXECUTING}


class TestOutcomes:
    """`decide` for each outcome, field by field. The task: 1 of 3 retries and 1 return used."""

    TASK = claimed(retry_count=1, max_retries=3, returns=1, timeout=600.0)
    LAST = claimed(retry_count=3, max_retries=3, returns=1, timeout=600.0)

    @pytest.mark.parametrize(
        ("task", "outcome", "expected"),
        [
            pytest.param(
                TASK,
                Completed(b"[1]"),
                COMPLETE,
                id="completed",
            ),
            pytest.param(
                LAST,
                Completed(b"null"),
                COMPLETE,
                id="completed on the last run",
            ),
            pytest.param(
                TASK,
                Failed(BOOM),
                again(
                    Verb.RETRY,
                    State.RETRYING,
                    "failed",
                    2,
                    1,
                    600.0,
                    after=2.0,
                    label="error",
                    error=BOOM,
                ),
                id="failed, retries left",
            ),
            pytest.param(
                LAST,
                Failed(BOOM),
                ended(
                    Verb.DEAD_LETTER,
                    State.DEAD_LETTER,
                    "failed",
                    4,
                    label="max_retries_exceeded",
                    error=replace(BOOM, reason="max_retries_exceeded"),
                ),
                id="failed, retries exhausted",
            ),
            pytest.param(
                TASK,
                Failed(BROKEN),
                ended(
                    Verb.FAIL,
                    State.FAILED,
                    "failed",
                    2,
                    label="not_retriable",
                    error=replace(BROKEN, reason="not_retriable"),
                ),
                id="failed for good, retries left",
            ),
            pytest.param(
                LAST,
                Failed(BROKEN, after=5.0),
                ended(
                    Verb.FAIL,
                    State.FAILED,
                    "failed",
                    4,
                    label="not_retriable",
                    error=replace(BROKEN, reason="not_retriable"),
                ),
                id="failed for good on the last run",
            ),
            pytest.param(
                TASK,
                TimedOut(),
                again(
                    Verb.RETRY,
                    State.RETRYING,
                    "timed_out",
                    2,
                    1,
                    900.0,
                    after=2.0,
                    label="timeout",
                    error=TOO_SLOW,
                ),
                id="timed out, retries left",
            ),
            pytest.param(
                LAST,
                TimedOut(),
                ended(
                    Verb.DEAD_LETTER,
                    State.DEAD_LETTER,
                    "timed_out",
                    4,
                    label="timeout",
                    error=replace(TOO_SLOW, reason="timeout"),
                ),
                id="timed out, retries exhausted",
            ),
            pytest.param(
                TASK,
                Lost(started=True),
                again(
                    Verb.RELEASE, State.QUEUED, "lost", 2, 1, 600.0, label="worker_lost", error=LOST
                ),
                id="lost while it ran, retries left",
            ),
            pytest.param(
                TASK,
                Lost(started=True, spread=60.0),
                again(
                    Verb.RETRY,
                    State.RETRYING,
                    "lost",
                    2,
                    1,
                    600.0,
                    after=30.0,
                    label="worker_lost",
                    error=LOST,
                ),
                id="lost while it ran, retries are spread",
            ),
            pytest.param(
                LAST,
                Lost(started=True, spread=60.0),
                ended(
                    Verb.DEAD_LETTER,
                    State.DEAD_LETTER,
                    "lost",
                    4,
                    label="worker_lost",
                    error=replace(LOST, reason="worker_lost"),
                ),
                id="lost while it ran, retries are spread, but exhausted",
            ),
            pytest.param(
                TASK,
                Lost(started=False, spread=60.0),
                again(
                    Verb.RELEASE,
                    State.QUEUED,
                    "returned",
                    1,
                    2,
                    600.0,
                    label="worker_lost",
                    error=LOST,
                ),
                id="lost unstarted, retries are spread",
            ),
            pytest.param(
                LAST,
                Lost(started=True),
                ended(
                    Verb.DEAD_LETTER,
                    State.DEAD_LETTER,
                    "lost",
                    4,
                    label="worker_lost",
                    error=replace(LOST, reason="worker_lost"),
                ),
                id="lost while it ran, retries exhausted",
            ),
            pytest.param(
                TASK,
                Lost(started=False),
                again(
                    Verb.RELEASE,
                    State.QUEUED,
                    "returned",
                    1,
                    2,
                    600.0,
                    label="worker_lost",
                    error=LOST,
                ),
                id="lost unstarted, returns left",
            ),
            pytest.param(
                LAST,
                Lost(started=False),
                again(
                    Verb.RELEASE,
                    State.QUEUED,
                    "returned",
                    3,
                    2,
                    600.0,
                    label="worker_lost",
                    error=LOST,
                ),
                id="lost unstarted before the last run",
            ),
            pytest.param(
                claimed(returns=3),
                Lost(started=False),
                ended(
                    Verb.DEAD_LETTER,
                    State.DEAD_LETTER,
                    "returned",
                    0,
                    label="worker_lost",
                    error=replace(LOST, reason="worker_lost"),
                ),
                id="lost unstarted, returns exhausted",
            ),
            pytest.param(
                LAST,
                Unstarted(),
                again(
                    Verb.RELEASE,
                    State.QUEUED,
                    "returned",
                    3,
                    2,
                    600.0,
                    label="not_started",
                    error=IDLE,
                ),
                id="not started in time, returns left",
            ),
            pytest.param(
                claimed(returns=3),
                Unstarted(),
                ended(
                    Verb.DEAD_LETTER,
                    State.DEAD_LETTER,
                    "returned",
                    0,
                    label="not_started",
                    error=replace(IDLE, reason="not_started"),
                ),
                id="not started in time, returns exhausted",
            ),
            pytest.param(
                TASK,
                Disowned(started=True),
                again(
                    Verb.RELEASE,
                    State.QUEUED,
                    "lost",
                    2,
                    1,
                    600.0,
                    label="worker_lost",
                    error=DISOWNED,
                ),
                id="disowned after its start, retries left",
            ),
            pytest.param(
                LAST,
                Disowned(started=True),
                ended(
                    Verb.DEAD_LETTER,
                    State.DEAD_LETTER,
                    "lost",
                    4,
                    label="worker_lost",
                    error=replace(DISOWNED, reason="worker_lost"),
                ),
                id="disowned after its start, retries exhausted",
            ),
            pytest.param(
                LAST,
                Disowned(started=False),
                again(
                    Verb.RELEASE,
                    State.QUEUED,
                    "returned",
                    3,
                    2,
                    600.0,
                    label="worker_lost",
                    error=DISOWNED,
                ),
                id="disowned unstarted, returns left",
            ),
            pytest.param(
                LAST,
                Released(),
                again(Verb.RELEASE, State.QUEUED, "released", 3, 1, 600.0),
                id="released",
            ),
            pytest.param(
                LAST,
                Snoozed(30.0),
                again(Verb.SNOOZE, State.SCHEDULED, "snoozed", 3, 1, 600.0, after=30.0),
                id="snoozed",
            ),
            pytest.param(
                TASK,
                Snoozed(-1.0),
                again(Verb.SNOOZE, State.SCHEDULED, "snoozed", 1, 1, 600.0, after=0.0),
                id="snoozed into the past",
            ),
        ],
    )
    def test_an_outcome_leads_to_one_move(
        self, task: Claimed, outcome: Outcome, expected: Move
    ) -> None:
        assert decide(task, outcome, MIDDLE) == expected

    @pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
    def test_every_move_is_legal(self, outcome: Outcome) -> None:
        for retry_count, returns, timeout in product((0, 2, 3), (0, 2, 3), (None, 600.0)):
            task = claimed(retry_count=retry_count, returns=returns, timeout=timeout)
            move = move_of(task, outcome)
            assert allows(move.verb, State.EXECUTING)
            assert move.state in TRANSITIONS[move.verb].targets

    @pytest.mark.parametrize("cause", Cause)
    @pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
    def test_the_maintenance_decides_as_the_worker_would(
        self, outcome: Outcome, cause: Cause
    ) -> None:
        """A reaper that knows no more than the stored terms comes to the same decision."""
        held = claimed(retry_count=1, returns=2, timeout=60.0, spec=Spec(retry=RetryPolicy(5.0)))
        fence = (TASK_ID, 1, "w1")
        found = Overdue(*fence, "email", cause, True, 1, 3, 2, 60.0, RetryPolicy(5.0))  # noqa: FBT003 (started)
        assert decide(found, outcome, 0.3) == decide(held, outcome, 0.3)


class TestDelays:
    @pytest.mark.parametrize(("failures", "delay"), [(0, 1.0), (1, 2.0), (2, 4.0)])
    @pytest.mark.parametrize("outcome", [Failed(BOOM), TimedOut()], ids=repr)
    def test_the_delay_uses_the_count_before_the_failure(
        self, outcome: Outcome, failures: int, delay: float
    ) -> None:
        assert move_of(claimed(retry_count=failures), outcome).after == delay

    def test_the_delay_follows_the_policy_stored_with_the_task(self) -> None:
        patient = RetryPolicy(base=10.0, factor=3.0, cap=1000.0, jitter=0.0)
        task = claimed(retry_count=2, spec=Spec(retry=patient))
        assert move_of(task, Failed(BOOM), jitter=0.9).after == 90.0

    def test_a_rate_limit_doubles_the_delay(self) -> None:
        task = claimed(retry_count=1)
        for jitter in (0.0, 0.25, 0.5, 0.999):
            plain = move_of(task, Failed(BOOM), jitter).after
            for error in (SLOW_DOWN, UNAVAILABLE):
                assert move_of(task, Failed(error), jitter).after == 2 * plain

    @pytest.mark.parametrize("error", [BOOM, SLOW_DOWN], ids=lambda error: error.code)
    @pytest.mark.parametrize("asked", [0.0, 0.5, 7.0, 86_400.0])
    def test_a_delay_that_the_handler_asked_for_is_taken_as_it_is(
        self, asked: float, error: TaskError
    ) -> None:
        assert move_of(claimed(), Failed(error, after=asked), jitter=0.9).after == asked

    def test_a_negative_delay_means_now(self) -> None:
        assert move_of(claimed(), Failed(BOOM, after=-5.0)).after == 0.0

    def test_a_delay_asked_for_on_the_last_run_saves_nothing(self) -> None:
        move = move_of(claimed(retry_count=3), Failed(BOOM, after=7.0))
        assert (move.verb, move.after) == (Verb.DEAD_LETTER, 0.0)

    @quick
    @given(
        retry_count=st.integers(0, 1000),
        jitter=st.floats(0, 1, exclude_max=True),
        outcome=st.sampled_from([Failed(BOOM), TimedOut()]),
    )
    def test_the_delay_stays_within_a_tenth_of_the_curve(
        self, retry_count: int, jitter: float, outcome: Outcome
    ) -> None:
        task = claimed(retry_count=retry_count, max_retries=1001)
        curve = min(2**retry_count, 300)
        assert 0.9 * curve <= move_of(task, outcome, jitter).after <= 1.1 * curve * (1 + 1e-9)


class TestTimeouts:
    @pytest.mark.parametrize(
        ("given_seconds", "next_seconds"),
        [
            (1.0, 1.5),
            (300.0, 450.0),
            (900.0, 1350.0),
            (2400.0, 3600.0),
            (2401.0, 3600.0),
            (3600.0, 3600.0),
            (7200.0, 7200.0),
            (None, None),
        ],
    )
    def test_the_next_run_gets_half_as_much_again_up_to_an_hour_and_never_less(
        self, given_seconds: float | None, next_seconds: float | None
    ) -> None:
        assert move_of(claimed(timeout=given_seconds), TimedOut()).timeout == next_seconds

    def test_the_limit_is_named_in_the_error(self) -> None:
        error = move_of(claimed(timeout=0.25), TimedOut()).error
        assert error is not None
        assert error.message == TOO_SLOW.message.replace("600", "0.25")

    def test_a_time_limit_that_the_task_does_not_know_is_not_named(self) -> None:
        error = move_of(claimed(timeout=None), TimedOut()).error
        assert error is not None
        assert error.message == TOO_SLOW.message.replace(" of 600 s", "")

    @pytest.mark.parametrize("outcome", [o for o in OUTCOMES if o != TimedOut()], ids=repr)
    def test_no_other_outcome_changes_the_time_limit(self, outcome: Outcome) -> None:
        task = claimed(timeout=77.0)
        assert after(task, move_of(task, outcome)).timeout == 77.0

    @quick
    @given(st.floats(0.001, 2_592_000.0))
    def test_time_limits_grow_to_the_cap_and_never_shrink(self, first: float) -> None:
        task = claimed(timeout=first, max_retries=1000)
        for _ in range(50):
            move = move_of(task, TimedOut())
            assert task.timeout is not None
            assert move.timeout is not None
            assert task.timeout <= move.timeout <= max(first, 3600.0)
            task = after(task, move)
        assert task.timeout == max(first, 3600.0)


class TestSpread:
    """Retries of tasks whose workers died, over a time that the store's settings name."""

    @quick
    @given(jitter=st.floats(0, 1, exclude_max=True), spread=st.floats(0, 3600))
    def test_a_retry_comes_within_the_spread(self, jitter: float, spread: float) -> None:
        move = move_of(claimed(), Lost(started=True, spread=spread), jitter)
        assert move.after == jitter * spread
        assert move.verb is (Verb.RETRY if move.after else Verb.RELEASE)
        assert (move.place, move.label, move.retry_count) == (Place.KEEP, "worker_lost", 1)

    def test_its_parts_are_equally_likely(self) -> None:
        lost = Lost(started=True, spread=60.0)
        found = [move_of(claimed(), lost, number / 4).after for number in range(4)]
        assert found == [0.0, 15.0, 30.0, 45.0]


BAD_RUNS = st.sampled_from([Failed(BOOM), Failed(SLOW_DOWN, 3.0), TimedOut(), Lost(started=True)])
FREE_RUNS = st.sampled_from([Released(), Snoozed(1.0)])


class TestBudget:
    REASONS = ((Failed, "max_retries_exceeded"), (TimedOut, "timeout"), (Lost, "worker_lost"))

    def runs(self, task: Claimed, outcomes: Iterable[Outcome]) -> list[Move]:
        """What becomes of the task, up to its end."""
        moves: list[Move] = []
        for outcome in outcomes:
            move = move_of(task, outcome)
            moves.append(move)
            if move.state == "dead_letter":
                break
            task = after(task, move)
        return moves

    def test_three_retries_mean_four_runs(self) -> None:
        moves = self.runs(claimed(max_retries=3), [Failed(BOOM)] * 10)
        assert [move.retry_count for move in moves] == [1, 2, 3, 4]
        assert [move.after for move in moves] == [1.0, 2.0, 4.0, 0.0]
        assert [str(move.state) for move in moves] == ["retrying"] * 3 + ["dead_letter"]

    def test_no_retries_mean_one_run(self) -> None:
        (move,) = self.runs(claimed(max_retries=0), [Failed(BOOM)] * 10)
        assert move.state is State.DEAD_LETTER

    @quick
    @given(max_retries=st.integers(0, 12), outcomes=st.lists(BAD_RUNS, min_size=13, max_size=13))
    def test_failing_runs_end_in_dead_letter_after_max_retries_plus_one(
        self, max_retries: int, outcomes: list[Outcome]
    ) -> None:
        moves = self.runs(claimed(max_retries=max_retries), outcomes)
        assert len(moves) == max_retries + 1
        assert [move.retry_count for move in moves] == list(range(1, max_retries + 2))
        assert all(move.state in ("retrying", "queued") for move in moves[:-1])
        last = moves[-1]
        reason = next(
            text for kind, text in self.REASONS if isinstance(outcomes[max_retries], kind)
        )
        assert (last.state, last.label) == ("dead_letter", reason)
        assert last.error is not None
        assert last.error.reason == reason

    @quick
    @given(max_retries=st.integers(0, 5), outcomes=st.lists(BAD_RUNS | FREE_RUNS, max_size=30))
    def test_runs_that_were_given_back_or_snoozed_cost_nothing(
        self, max_retries: int, outcomes: list[Outcome]
    ) -> None:
        free = (Released, Snoozed)
        costly = [outcome for outcome in outcomes if not isinstance(outcome, free)]
        moves = self.runs(claimed(max_retries=max_retries), outcomes)
        spent = min(len(costly), max_retries + 1)
        assert sum(move.label != "" for move in moves) == spent
        if moves:
            assert moves[-1].retry_count == spent
            assert (moves[-1].state == "dead_letter") == (spent > max_retries)

    @quick
    @given(free=st.lists(FREE_RUNS, max_size=10), max_retries=st.integers(0, 5))
    def test_a_task_goes_back_unstarted_three_times_then_dies(
        self, free: list[Outcome], max_retries: int
    ) -> None:
        losses: list[Outcome] = [Lost(started=False), Unstarted(), Disowned(started=False)] * 5
        moves = self.runs(claimed(max_retries=max_retries), free + losses)[len(free) :]
        assert [str(move.state) for move in moves] == ["queued"] * 3 + ["dead_letter"]
        assert [move.returns for move in moves] == [1, 2, 3, None]
        assert {move.retry_count for move in moves} == {0}

    @quick
    @given(
        outcomes=st.lists(st.sampled_from(OUTCOMES), max_size=30),
        max_retries=st.integers(0, 10),
        timeout=st.none() | st.floats(0.1, 10_000),
        jitter=st.floats(0, 1, exclude_max=True),
    )
    def test_whatever_happens_every_step_is_legal_and_no_counter_falls(
        self, outcomes: list[Outcome], max_retries: int, timeout: float | None, jitter: float
    ) -> None:
        task = claimed(max_retries=max_retries, timeout=timeout)
        for outcome in outcomes:
            move = move_of(task, outcome, jitter)
            assert move.state in TRANSITIONS[move.verb].targets
            assert move.after >= 0
            then = after(task, move)
            assert 0 <= then.retry_count - task.retry_count <= 1
            assert 0 <= then.returns - task.returns <= 1
            assert (then.timeout or 0) >= (task.timeout or 0)
            assert (move.error is not None) == isinstance(
                outcome, Failed | TimedOut | Lost | Unstarted | Disowned
            )
            if move.ends:
                break
            task = then


def test_the_default_policy_is_the_one_of_the_specification() -> None:
    assert claimed().retry == DEFAULT == RetryPolicy(base=1.0, factor=2.0, cap=300.0, jitter=0.1)


def test_an_unstarted_loss_is_free_even_with_no_retries_left() -> None:
    task = claimed(retry_count=4, max_retries=3)
    move = decide(task, Lost(started=False), 0.5)
    assert (move.verb, move.state) == (Verb.RELEASE, State.QUEUED)
    assert (move.retry_count, move.returns) == (4, 1)


@pytest.mark.parametrize(
    ("asked", "given"), [(-5.0, 0.0), (float("nan"), 0.0), (float("inf"), limits.DELAY_SECONDS)]
)
def test_a_delay_out_of_range_is_brought_into_it(asked: float, given: float) -> None:
    for outcome in (Snoozed(asked), Failed(TaskError("x"), after=asked)):
        move = decide(claimed(), outcome, 0.5)
        assert move.after == given


class TestMoves:
    """Every way to move that no run decides, field by field."""

    ERROR = Clears.ERROR
    RERUN = Clears.ERROR | Clears.PROGRESS

    @pytest.mark.parametrize(
        ("move", "expected"),
        [
            (COMPLETE, Move(Verb.COMPLETE, State.COMPLETED, "completed", clears=ERROR)),
            (
                CANCEL,
                Move(Verb.CANCEL, State.CANCELLED, "cancelled", slot=Slot.LINGER, clears=ERROR),
            ),
            (DUE, Move(Verb.DUE, State.QUEUED, wakes=True)),
            (FREE, Move(Verb.DUE, State.QUEUED, place=Place.RESET, wakes=True)),
            (
                FROM_START,
                Move(
                    Verb.RERUN,
                    State.QUEUED,
                    place=Place.RESET,
                    clears=RERUN | Clears.EXPIRY,
                    wakes=True,
                    retry_count=0,
                    returns=0,
                ),
            ),
            (
                BIND_AGAIN,
                Move(
                    Verb.REBIND,
                    State.SCHEDULED,
                    place=Place.RESET,
                    clears=RERUN | Clears.EXPIRY,
                    retry_count=0,
                    returns=0,
                ),
            ),
            (
                replay(reset_retry_count=True, level=None),
                Move(
                    Verb.REPLAY,
                    State.QUEUED,
                    place=Place.RESET,
                    clears=RERUN | Clears.EXPIRY,
                    wakes=True,
                    retry_count=0,
                    returns=0,
                ),
            ),
            (
                replay(reset_retry_count=False, level=9),
                Move(
                    Verb.REPLAY,
                    State.QUEUED,
                    place=Place.RESET,
                    clears=RERUN | Clears.EXPIRY,
                    wakes=True,
                    returns=0,
                    level=9,
                ),
            ),
        ],
    )
    def test_it_says_all_that_it_does(self, move: Move, expected: Move) -> None:
        assert move == expected

    @pytest.mark.parametrize(
        ("move", "verb", "state", "reason"),
        [
            (EXPIRE, Verb.EXPIRE, State.FAILED, "expired"),
            (REPLACE, Verb.CANCEL, State.CANCELLED, "replaced"),
            (DOOM, Verb.CANCEL, State.CANCELLED, "dependency_failed"),
        ],
    )
    def test_an_end_without_a_run_says_why(
        self, move: Move, verb: Verb, state: State, reason: str
    ) -> None:
        assert move.error is not None
        assert (move.error.reason, move.error.code) == (reason, reason.upper())
        assert not move.error.retriable
        assert move == Move(verb, state, label=reason, clears=Clears.ERROR, error=move.error)
        assert move.ends

    def test_a_run_that_its_worker_has_not_ended_keeps_its_slot(self) -> None:
        for task in (claimed(), claimed(retry_count=3)):
            assert decide(task, TimedOut(running=True), MIDDLE).slot is Slot.LINGER
            assert decide(task, TimedOut(), MIDDLE).slot is Slot.FREE
        others = [outcome for outcome in OUTCOMES if not isinstance(outcome, TimedOut)]
        assert {decide(claimed(), outcome, MIDDLE).slot for outcome in others} == {Slot.FREE}

    def test_whoever_waits_is_woken_by_every_move_into_the_queue_and_no_other(self) -> None:
        entering = {verb for verb, row in TRANSITIONS.items() if row.targets == {State.QUEUED}}
        assert entering == {verb for verb, row in TRANSITIONS.items() if row.wakes}

    @pytest.mark.parametrize("verb", Verb)
    def test_a_verb_leads_from_some_of_its_sources(self, verb: Verb) -> None:
        sources = TRANSITIONS[verb].sources
        assert sources_of(verb) == sources
        for state in State:
            assert sources_of(verb, frozenset({state})) == sources & {state}
