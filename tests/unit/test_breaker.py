"""The circuit breaker: when it opens, what it lets through, what closes it."""

from itertools import accumulate
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.breaker import CLOSED, Breaker, Circuit, after, checked, verdict
from fairlane.core.errors import InvalidLimit
from fairlane.core.lanes import Rules, allowance
from fairlane.core.machine import decide
from fairlane.core.model import TaskError
from fairlane.core.outcomes import (
    Completed,
    Disowned,
    Failed,
    Lost,
    Outcome,
    Released,
    Snoozed,
    TimedOut,
)
from tests.unit.make import SECOND, claimed, quick

BREAKER = Breaker(failures=3, within=10.0, cooldown=60.0)
NOW = 1_000 * SECOND
BROKEN = TaskError("cannot work", retriable=False)


class TestVerdict:
    @pytest.mark.parametrize(
        ("outcome", "good"),
        [
            (Completed(b"null"), True),
            (Failed(TaskError("boom")), False),
            (Failed(TaskError("boom"), after=5.0), False),
            (Failed(BROKEN), False),
            (TimedOut(), False),
            (Lost(started=True), False),
            (Lost(started=False), None),
            (Disowned(started=True), False),
            (Disowned(started=False), None),
            (Released(), None),
            (Snoozed(5.0), None),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("retry_count", [0, 99], ids=["retries left", "retries exhausted"])
    def test_only_a_run_that_took_place_speaks_for_or_against_its_type(
        self, outcome: Outcome, good: bool | None, retry_count: int
    ) -> None:
        assert verdict(decide(claimed(retry_count=retry_count), outcome, 0.5)) is good


class TestClosed:
    def test_it_remembers_failures_and_when_they_were(self) -> None:
        assert after(CLOSED, BREAKER, 0, 1, NOW) == Circuit((NOW,))
        assert after(Circuit((NOW,)), BREAKER, 0, 1, NOW + 1) == Circuit((NOW, NOW + 1))

    def test_enough_failures_open_it_and_are_forgotten(self) -> None:
        opened = Circuit((), NOW + 60 * SECOND)
        assert after(Circuit((NOW - 2, NOW - 1)), BREAKER, 0, 1, NOW) == opened
        assert after(CLOSED, BREAKER, 0, 3, NOW) == opened
        assert after(CLOSED, BREAKER, 0, 500, NOW) == opened

    @pytest.mark.parametrize("bad", [0, 1, 2])
    def test_fewer_do_not(self, bad: int) -> None:
        assert after(CLOSED, BREAKER, 0, bad, NOW) == Circuit((NOW,) * bad)

    @pytest.mark.parametrize(("age", "counts"), [(10 * SECOND - 1, True), (10 * SECOND, False)])
    def test_a_failure_counts_as_long_as_the_time_it_is_within(
        self, age: int, counts: bool
    ) -> None:
        circuit = after(Circuit((NOW - age,)), BREAKER, 0, 2, NOW)
        assert circuit == (Circuit((), NOW + 60 * SECOND) if counts else Circuit((NOW, NOW)))

    @pytest.mark.parametrize("good", [0, 1, 500])
    def test_successes_make_no_failure_undone(self, good: int) -> None:
        before = Circuit((NOW - 2, NOW - 1))
        assert after(before, BREAKER, good, 0, NOW) == before
        assert after(before, BREAKER, good, 1, NOW) == Circuit((), NOW + 60 * SECOND)

    def test_what_is_too_old_is_dropped_without_a_new_failure(self) -> None:
        before = Circuit((NOW - 11 * SECOND, NOW - 9 * SECOND))
        assert after(before, BREAKER, 1, 0, NOW) == Circuit((NOW - 9 * SECOND,))

    def test_one_failure_may_be_enough(self) -> None:
        touchy = Breaker(1, 0.000_001, 0.5)
        assert after(CLOSED, touchy, 9, 0, NOW) == CLOSED
        assert after(CLOSED, touchy, 9, 1, NOW) == Circuit((), NOW + SECOND // 2)

    def test_times_are_whole_microseconds(self) -> None:
        for circuit in (CLOSED, Circuit((), NOW)):
            opened = after(circuit, Breaker(1, 1.0, 0.000_001_9), 0, 1, NOW)
            assert opened.open_until == NOW + 1

    @quick
    @given(
        breaker=st.builds(Breaker, st.integers(1, 6), st.floats(0.1, 20.0), st.just(60.0)),
        batches=st.lists(
            st.tuples(st.integers(0, 5 * SECOND), st.integers(0, 3), st.integers(0, 3)),
            min_size=1,
            max_size=30,
        ),
    )
    def test_it_opens_just_when_so_many_failed_within_the_time(
        self, breaker: Breaker, batches: list[tuple[int, int, int]]
    ) -> None:
        circuit = CLOSED
        failed: list[int] = []
        times = accumulate(passed for passed, _, _ in batches)
        for now, (_, good, bad) in zip(times, batches, strict=True):
            circuit = after(circuit, breaker, good, bad, now)
            failed += [now] * bad
            lately = [at for at in failed if at > now - int(breaker.within * SECOND)]
            if len(lately) >= breaker.failures:
                assert circuit == Circuit((), now + 60 * SECOND)
                return
            assert circuit == Circuit(tuple(lately))
            assert len(circuit.failures) < breaker.failures, "what is remembered is bounded"


class TestOpen:
    @pytest.mark.parametrize(("good", "bad"), [(0, 0), (5, 0), (0, 5), (5, 5)])
    @pytest.mark.parametrize("left", [1, 60 * SECOND])
    def test_what_ends_while_it_cools_down_changes_nothing(
        self, left: int, good: int, bad: int
    ) -> None:
        opened = Circuit((), NOW + left)
        assert after(opened, BREAKER, good, bad, NOW) == opened


class TestHalfOpen:
    @pytest.mark.parametrize("late", [0, 1, 3600 * SECOND])
    def test_a_success_closes_it(self, late: int) -> None:
        assert after(Circuit((), NOW - late), BREAKER, 1, 0, NOW) == CLOSED

    @pytest.mark.parametrize("late", [0, 1, 3600 * SECOND])
    @pytest.mark.parametrize(("good", "bad"), [(0, 1), (1, 1), (5, 1), (0, 3)])
    def test_a_failure_opens_it_again_for_a_whole_cool_down(
        self, late: int, good: int, bad: int
    ) -> None:
        half_open = Circuit((), NOW - late)
        assert after(half_open, BREAKER, good, bad, NOW) == Circuit((), NOW + 60 * SECOND)

    def test_a_run_that_says_nothing_leaves_it_as_it_is(self) -> None:
        half_open = Circuit((), NOW)
        assert after(half_open, BREAKER, 0, 0, NOW) == half_open

    def test_once_closed_it_counts_from_nothing(self) -> None:
        closed = after(Circuit((), NOW), BREAKER, 1, 0, NOW)
        assert after(closed, BREAKER, 0, 2, NOW) == Circuit((NOW, NOW))


class TestWithLanes:
    """The breaker decides, and `lanes.allowance` acts by it."""

    def allowed(self, circuit: Circuit, held: int, now: int) -> int:
        rules = Rules(breaker=BREAKER, open_until=circuit.open_until)
        return allowance(rules, None, held, now)

    def test_from_closed_through_open_and_half_open_to_closed_again(self) -> None:
        now = NOW
        assert self.allowed(CLOSED, held=10, now=now) == 500
        circuit = after(CLOSED, BREAKER, 7, 3, now)
        assert self.allowed(circuit, held=0, now=now) == 0
        now += 60 * SECOND - 1
        assert self.allowed(circuit, held=0, now=now) == 0
        now += 1
        assert self.allowed(circuit, held=0, now=now) == 1
        assert self.allowed(circuit, held=1, now=now) == 0, "one probe at a time"
        circuit = after(circuit, BREAKER, 0, 1, now + SECOND)
        now += 60 * SECOND
        assert self.allowed(circuit, held=0, now=now) == 0, "its cool-down began with the probe"
        now += SECOND
        assert self.allowed(circuit, held=0, now=now) == 1
        circuit = after(circuit, BREAKER, 1, 0, now)
        assert self.allowed(circuit, held=10, now=now) == 500

    @quick
    @given(
        st.lists(
            st.tuples(st.integers(0, 40 * SECOND), st.integers(0, 3), st.booleans()), max_size=60
        )
    )
    def test_nothing_starts_while_it_cools_down_and_never_two_until_one_went_well(
        self, steps: list[tuple[int, int, bool]]
    ) -> None:
        circuit, now, running = CLOSED, NOW, 0
        for passed, ended, good in steps:
            now += passed
            ended = min(ended, running)
            running -= ended
            circuit = after(circuit, BREAKER, ended if good else 0, 0 if good else ended, now)
            started = min(self.allowed(circuit, running, now), 5)
            if circuit.open_until is not None:
                assert started == 0 or (now >= circuit.open_until and running == 0 == started - 1)
            else:
                assert started == 5
            running += started


@pytest.mark.parametrize("circuit", [CLOSED, Circuit((1, 2)), Circuit((), 5)], ids=repr)
def test_a_circuit_comes_back_as_it_was_stored(circuit: Circuit) -> None:
    assert msgspec.json.decode(msgspec.json.encode(circuit), type=Circuit) == circuit


def test_breakers_and_circuits_are_stored_by_the_place_of_their_fields() -> None:
    assert msgspec.json.encode(Breaker(5, 60.0, 30.5)) == b"[5,60.0,30.5]"
    assert msgspec.json.encode(Circuit((1, 2), 3)) == b"[[1,2],3]"
    assert msgspec.json.decode(b"[5,60.0,30.5]", type=Breaker) == Breaker(5, 60.0, 30.5)


class TestBreakersThatCanBeSet:
    @pytest.mark.parametrize(
        "breaker", [Breaker(1, 0.001, 0.001), Breaker(5, 60, 30), Breaker(1_000, 86_400, 86_400)]
    )
    def test_numbers_in_range(self, breaker: Breaker) -> None:
        accepted = checked(breaker)
        assert accepted == breaker
        assert isinstance(accepted.within, float)
        assert isinstance(accepted.cooldown, float)

    @pytest.mark.parametrize(
        "failures", [0, -1, 1_001, 5.0, True, "5", None, float("nan")], ids=repr
    )
    def test_other_numbers_of_failures_are_refused(self, failures: Any) -> None:
        self.refuse(Breaker(failures, 60.0, 30.0))

    @pytest.mark.parametrize(
        "seconds", [0, -1.0, 86_400.001, float("nan"), float("inf"), True, "5", None, [5]], ids=repr
    )
    def test_other_times_are_refused(self, seconds: Any) -> None:
        self.refuse(Breaker(5, seconds, 30.0))
        self.refuse(Breaker(5, 60.0, seconds))

    @pytest.mark.parametrize(
        "breaker", [None, True, False, 5, (5, 60, 30), {"failures": 5}, Breaker, CLOSED], ids=repr
    )
    def test_they_come_as_breakers_only(self, breaker: Any) -> None:
        self.refuse(breaker)

    def refuse(self, breaker: Any) -> None:
        with pytest.raises(InvalidLimit, match="opens after 1 to 1,000 failures") as caught:
            checked(breaker)
        assert "above 0 and at most 86,400 seconds. Got " in caught.value.message
        assert caught.value.message.endswith(".")
