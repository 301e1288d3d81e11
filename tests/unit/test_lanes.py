"""Lanes: what a claim may take, and how much of it."""

from itertools import accumulate
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from fairlane.core.breaker import Breaker
from fairlane.core.errors import InvalidLimit
from fairlane.core.lanes import (
    CLOSED,
    Bucket,
    Controls,
    Lane,
    Limits,
    Opening,
    Quota,
    Rules,
    allowance,
    burst,
    checked_concurrency,
    checked_limits,
    checked_rate,
    checked_scope,
    opening,
    opens_in,
    refilled,
    retimed,
    slotted,
)
from fairlane.core.model import Ask, Spec
from tests.unit.make import SECOND, claimed, quick

MAIL = Lane(1, "default", "email", ())
MAIL_BULK = Lane(2, "bulk", "email", ())
MAIL_GPU = Lane(3, "default", "email", ("gpu",))
CRAWL = Lane(4, "default", "crawl", ())
CRAWL_BIG = Lane(5, "bulk", "crawl", ("gpu", "ssd"))
LANES = [MAIL, MAIL_BULK, MAIL_GPU, CRAWL, CRAWL_BIG]


def ask(
    types: set[str] | None = None,
    queues: set[str] | None = None,
    capabilities: frozenset[str] = frozenset({"gpu", "ssd"}),
) -> Ask:
    return Ask(
        "w1",
        "r1",
        10,
        types=None if types is None else frozenset(types),
        queues=None if queues is None else frozenset(queues),
        capabilities=capabilities,
    )


class TestOpening:
    def test_a_lane_is_known_by_what_it_was_made_from(self) -> None:
        assert CRAWL_BIG.key == ("bulk", "crawl", ("gpu", "ssd"))

    def test_without_restrictions_every_lane_is_open(self) -> None:
        found = opening(LANES, Controls(), ask())
        assert found == Opening((1, 2, 3, 4, 5), quotas=(), rate=0.0, spans=((1, 5),))
        assert found.lanes == (1, 2, 3, 4, 5)

    @pytest.mark.parametrize(
        ("types", "lanes"),
        [
            (None, (1, 2, 3, 4, 5)),
            ({"email"}, (1, 2, 3)),
            ({"email", "crawl"}, (1, 2, 3, 4, 5)),
            ({"other"}, ()),
            (set(), ()),
        ],
    )
    def test_a_worker_takes_the_types_it_handles(
        self, types: set[str] | None, lanes: tuple[int, ...]
    ) -> None:
        assert opening(LANES, Controls(), ask(types=types)).lanes == lanes

    @pytest.mark.parametrize(
        ("queues", "lanes"),
        [(None, (1, 2, 3, 4, 5)), ({"default"}, (1, 3, 4)), ({"bulk"}, (2, 5)), (set(), ())],
    )
    def test_a_worker_takes_from_the_queues_it_serves(
        self, queues: set[str] | None, lanes: tuple[int, ...]
    ) -> None:
        assert opening(LANES, Controls(), ask(queues=queues)).lanes == lanes

    @pytest.mark.parametrize(
        ("capabilities", "lanes"),
        [
            ((), (1, 2, 4)),
            (("gpu",), (1, 2, 3, 4)),
            (("ssd",), (1, 2, 4)),
            (("gpu", "ssd", "arm"), (1, 2, 3, 4, 5)),
        ],
    )
    def test_a_worker_has_all_capabilities_of_what_it_takes(
        self, capabilities: tuple[str, ...], lanes: tuple[int, ...]
    ) -> None:
        found = opening(LANES, Controls(), ask(capabilities=frozenset(capabilities)))
        assert found.lanes == lanes

    @pytest.mark.parametrize(
        ("controls", "lanes"),
        [
            (Controls(everything=Rules(paused=True)), ()),
            (Controls(paused_queues=frozenset({"bulk"})), (1, 3, 4)),
            (Controls(paused_queues=frozenset({"bulk", "default"})), ()),
            (Controls(paused_queues=frozenset({"other"})), (1, 2, 3, 4, 5)),
            (Controls(types={"email": Rules(paused=True)}), (4, 5)),
            (Controls(types={"email": Rules(paused=True, rate=5.0)}), (4, 5)),
            (Controls(types={"email": Rules(paused=False)}), (1, 2, 3, 4, 5)),
            (
                Controls(paused_queues=frozenset({"bulk"}), types={"email": Rules(paused=True)}),
                (4,),
            ),
        ],
    )
    def test_what_is_paused_is_left_out(self, controls: Controls, lanes: tuple[int, ...]) -> None:
        assert opening(LANES, controls, ask()).lanes == lanes

    def test_a_pause_of_everything_closes_everything(self) -> None:
        paused = Controls(everything=Rules(paused=True, rate=5.0))
        assert opening(LANES, paused, ask()) == CLOSED

    @pytest.mark.parametrize(
        "rules", [Rules(rate=0.5), Rules(concurrency=2), Rules(rate=1e6), Rules(open_until=5)]
    )
    def test_a_limit_belongs_to_the_type_and_covers_all_its_lanes(self, rules: Rules) -> None:
        found = opening(LANES, Controls(types={"email": rules}), ask())
        assert found.free == (4, 5)
        assert found.quotas == (Quota("email", rules, (1, 2, 3)),)
        assert sorted(found.lanes) == [1, 2, 3, 4, 5]

    def test_a_quota_names_only_lanes_that_the_worker_may_take(self) -> None:
        controls = Controls(types={"email": Rules(rate=1.0), "crawl": Rules(concurrency=1)})
        found = opening(LANES, controls, ask(queues={"bulk"}, capabilities=frozenset()))
        assert found == Opening((), (Quota("email", Rules(rate=1.0), (2,)),), 0.0, ((2, 2),))

    def test_the_overall_rate_is_passed_on(self) -> None:
        found = opening(LANES, Controls(everything=Rules(rate=7.5)), ask())
        assert (found.free, found.rate) == ((1, 2, 3, 4, 5), 7.5)

    @pytest.mark.parametrize(
        ("rules", "limited"),
        [
            (Rules(), False),
            (Rules(paused=True), False),
            (Rules(rate=0.001), True),
            (Rules(concurrency=1), True),
            (Rules(breaker=Breaker(5, 60.0, 30.0)), False),
            (Rules(open_until=0), True),
        ],
    )
    def test_zero_means_unlimited(self, rules: Rules, limited: bool) -> None:
        assert rules.limited is limited

    @pytest.mark.parametrize(
        ("rules", "slots"),
        [
            (Rules(), 0),
            (Rules(concurrency=7), 7),
            (Rules(open_until=0), 1),
            (Rules(concurrency=7, open_until=99), 1),
            (Rules(concurrency=1, open_until=99), 1),
        ],
    )
    def test_a_circuit_that_is_not_closed_leaves_one_slot(self, rules: Rules, slots: int) -> None:
        assert rules.slots == slots

    def test_in_which_lanes_an_end_makes_room(self) -> None:
        assert slotted(LANES, Controls()) == frozenset()
        assert slotted(LANES, Controls(types={"email": Rules(rate=5.0)})) == frozenset()
        limited = Controls(types={"email": Rules(concurrency=2), "crawl": Rules()})
        assert slotted(LANES, limited) == {MAIL.id, MAIL_BULK.id, MAIL_GPU.id}

    def test_nothing_is_set_unless_told(self) -> None:
        assert asdict(Rules()) == {
            "paused": False,
            "rate": 0.0,
            "concurrency": 0,
            "breaker": None,
            "open_until": None,
            "timeout": 0.0,
        }


class TestCircuit:
    BREAKER = Breaker(5, 60.0, 30.0)

    @pytest.mark.parametrize(
        ("open_until", "opened_at", "cools"),
        [
            (None, None, False),
            (100 * SECOND, 70 * SECOND, False),
            (101 * SECOND, 71 * SECOND, True),
            (131 * SECOND, 101 * SECOND, True),
            (132 * SECOND, 102 * SECOND, False),  # opened while the clock was ahead
        ],
    )
    def test_the_cool_down(
        self, open_until: int | None, opened_at: int | None, cools: bool
    ) -> None:
        rules = Rules(breaker=self.BREAKER, open_until=open_until)
        assert (rules.opened_at, rules.cools(100 * SECOND)) == (opened_at, cools)


class TestBucket:
    @pytest.mark.parametrize(("rate", "most"), [(0.1, 1), (1, 1), (1.5, 1.5), (100, 100)])
    def test_the_burst_is_the_rate_and_at_least_one(self, rate: float, most: float) -> None:
        assert burst(rate) == most

    def test_a_new_bucket_is_full(self) -> None:
        assert refilled(None, 5.0, 123) == Bucket(5.0, 123)

    def test_it_fills_at_its_rate_up_to_the_burst(self) -> None:
        assert refilled(Bucket(1.0, 0), 10.0, SECOND // 2) == Bucket(6.0, SECOND // 2)
        assert refilled(Bucket(1.0, 0), 10.0, 60 * SECOND) == Bucket(10.0, 60 * SECOND)

    def test_a_clock_that_steps_back_neither_takes_nor_gives(self) -> None:
        before = Bucket(3.0, 100 * SECOND)
        assert refilled(before, 10.0, 40 * SECOND) == before

    def test_a_lowered_rate_takes_what_is_above_the_new_burst(self) -> None:
        assert refilled(Bucket(100.0, 0), 2.0, 0) == Bucket(2.0, 0)

    @quick
    @given(
        rate=st.floats(0.05, 500.0),
        claims=st.lists(
            st.tuples(
                st.integers(0, 3 * SECOND),  # time that passes
                st.just(0) | st.integers(0, 10 * SECOND),  # a step back of the clock
                st.integers(0, 600),  # wanted
            ),
            min_size=1,
            max_size=40,
        ),
    )
    def test_starts_in_any_window_never_exceed_burst_plus_rate_times_its_length(
        self, rate: float, claims: list[tuple[int, int, int]]
    ) -> None:
        bucket: Bucket | None = None
        now = stepped_back = 0
        times: list[int] = []
        starts: list[int] = []
        for passed, back, wanted in claims:
            now, stepped_back = now + passed, stepped_back + back
            bucket = refilled(bucket, rate, now - stepped_back)
            started = min(wanted, allowance(Rules(rate=rate), bucket, held=0, now=now))
            bucket = Bucket(bucket.tokens - started, bucket.at)
            times.append(now)
            starts.append(started)
        for first in range(len(times)):
            for time, total in zip(times[first:], accumulate(starts[first:]), strict=True):
                seconds = (time - times[first]) / SECOND
                assert total <= max(1.0, rate) + rate * seconds + 1e-6

    @quick
    @given(
        rate=st.floats(2.0, 400.0),
        steps=st.lists(st.integers(0, SECOND // 2), min_size=1, max_size=40),
    )
    def test_who_claims_often_enough_gets_the_whole_rate(
        self, rate: float, steps: list[int]
    ) -> None:
        bucket: Bucket | None = None
        total = 0
        for now in accumulate(steps, initial=0):
            bucket = refilled(bucket, rate, now)
            started = allowance(Rules(rate=rate), bucket, held=0, now=now)
            bucket = Bucket(bucket.tokens - started, bucket.at)
            total += started
        assert total > rate + rate * sum(steps) / SECOND - 1 - 1e-6

    @quick
    @given(rate=st.floats(0.01, 1000.0), tokens=st.floats(0.0, 0.999))
    def test_the_next_token_is_there_when_it_was_said_to_be(
        self, rate: float, tokens: float
    ) -> None:
        rules = Rules(rate=rate)
        wait = opens_in(rules, Bucket(tokens, 0), 0)
        assert wait is not None
        then = int(wait * SECOND) + 2
        assert allowance(rules, refilled(Bucket(tokens, 0), rate, then), held=0, now=then) >= 1
        early = int(wait * SECOND * 0.99)
        assert allowance(rules, refilled(Bucket(tokens, 0), rate, early), held=0, now=early) == 0


class TestAllowance:
    @pytest.mark.parametrize(
        ("rules", "tokens", "held", "allowed"),
        [
            (Rules(), None, 0, 500),
            (Rules(), 3.0, 10_000, 500),
            (Rules(concurrency=1), None, 0, 1),
            (Rules(concurrency=1), None, 1, 0),
            (Rules(concurrency=5), None, 0, 5),
            (Rules(concurrency=5), None, 3, 2),
            (Rules(concurrency=5), None, 5, 0),
            (Rules(concurrency=5), None, 9, 0),
            (Rules(concurrency=10_000), None, 1, 500),
            (Rules(rate=9.0), 3.99, 0, 3),
            (Rules(rate=9.0), 0.99, 0, 0),
            (Rules(rate=9.0), None, 0, 500),
            (Rules(rate=9_000.0), 9_000.0, 0, 500),
            (Rules(rate=9.0, concurrency=2), 3.0, 0, 2),
            (Rules(rate=9.0, concurrency=8), 3.0, 0, 3),
        ],
    )
    def test_the_tightest_limit_counts(
        self, rules: Rules, tokens: float | None, held: int, allowed: int
    ) -> None:
        bucket = None if tokens is None else Bucket(tokens, 0)
        assert allowance(rules, bucket, held, now=0) == allowed

    @pytest.mark.parametrize(
        ("now", "held", "allowed"), [(99, 0, 0), (100, 0, 1), (101, 0, 1), (100, 1, 0), (101, 9, 0)]
    )
    @pytest.mark.parametrize("concurrency", [0, 1, 50])
    def test_an_open_circuit_lets_nothing_through_and_one_at_a_time_once_it_has_cooled_down(
        self, now: int, held: int, allowed: int, concurrency: int
    ) -> None:
        rules = Rules(concurrency=concurrency, open_until=100)
        assert allowance(rules, None, held, now) == allowed

    def test_a_probe_needs_a_token_too(self) -> None:
        rules = Rules(rate=5.0, open_until=100)
        assert allowance(rules, Bucket(0.9, 100), held=0, now=100) == 0
        assert allowance(rules, Bucket(5.0, 100), held=0, now=100) == 1


class TestOpensIn:
    @pytest.mark.parametrize(
        ("rules", "tokens", "seconds"),
        [
            (Rules(), None, None),
            (Rules(concurrency=1), None, None),
            (Rules(rate=2.0), 1.0, None),
            (Rules(rate=2.0), 1.5, None),
            (Rules(rate=2.0), 0.5, 0.25),
            (Rules(rate=0.1), 0.0, 10.0),
            (Rules(rate=2.0), None, None),
            (Rules(open_until=7 * SECOND), None, 2.0),
            (Rules(open_until=5 * SECOND + 1), None, 0.000_001),
            (Rules(open_until=5 * SECOND), None, None),
            (Rules(open_until=SECOND), None, None),
            (Rules(rate=1.0, open_until=7 * SECOND), 0.5, 2.0),
            (Rules(rate=0.1, open_until=7 * SECOND), 0.5, 5.0),
            (Rules(rate=1.0, open_until=7 * SECOND), 1.0, 2.0),
            (Rules(rate=1.0, open_until=SECOND), 0.5, 0.5),
        ],
    )
    def test_it_is_when_the_last_thing_that_time_mends_is_mended(
        self, rules: Rules, tokens: float | None, seconds: float | None
    ) -> None:
        now = 5 * SECOND
        bucket = None if tokens is None else Bucket(tokens, now)
        assert opens_in(rules, bucket, now) == seconds

    def test_a_bucket_that_is_left_from_an_earlier_rate_means_nothing(self) -> None:
        assert opens_in(Rules(), Bucket(0.0, 0), 0) is None
        assert allowance(Rules(), Bucket(0.0, 0), held=0, now=0) == 500

    @quick
    @given(
        rate=st.just(0.0) | st.floats(0.01, 100.0),
        tokens=st.floats(0.0, 3.0),
        open_until=st.none() | st.integers(0, 100 * SECOND),
        now=st.integers(0, 100 * SECOND),
    )
    def test_it_tells_of_a_wait_just_when_nothing_may_be_claimed_although_nothing_is_held(
        self, rate: float, tokens: float, open_until: int | None, now: int
    ) -> None:
        rules = Rules(rate=rate, open_until=open_until)
        bucket = Bucket(tokens, now) if rate else None
        wait = opens_in(rules, bucket, now)
        if wait is None:
            assert allowance(rules, bucket, held=0, now=now) >= 1
        else:
            assert wait > 0
            assert allowance(rules, bucket, held=0, now=now) == 0
            then = now + int(wait * SECOND) + 2
            later = None if bucket is None else refilled(bucket, rate, then)
            assert allowance(rules, later, held=0, now=then) >= 1


class TestLimitsThatCanBeSet:
    @pytest.mark.parametrize("rate", [0, 0.0, 0.001, 1, 2.5, 1_000_000])
    def test_a_rate_is_a_number_from_zero(self, rate: float) -> None:
        accepted = checked_rate(rate)
        assert accepted == rate
        assert isinstance(accepted, float)

    @pytest.mark.parametrize(
        "rate", [-1, -0.001, 1_000_001, float("nan"), float("inf"), True, "5", None], ids=repr
    )
    def test_any_other_rate_is_refused(self, rate: Any) -> None:
        with pytest.raises(InvalidLimit, match=r"from 0 \(unlimited\) to 1,000,000\. Got"):
            checked_rate(rate)

    @pytest.mark.parametrize("concurrency", [0, 1, 1_000_000])
    def test_a_concurrency_is_a_whole_number_from_zero(self, concurrency: int) -> None:
        assert checked_concurrency(concurrency) == concurrency

    @pytest.mark.parametrize(
        "concurrency", [-1, 1_000_001, 1.0, float("nan"), True, "5", None], ids=repr
    )
    def test_any_other_concurrency_is_refused(self, concurrency: Any) -> None:
        with pytest.raises(InvalidLimit, match=r"from 0 \(unlimited\) to 1,000,000\. Got"):
            checked_concurrency(concurrency)


@pytest.mark.parametrize("name", [None, "emails", "a.b:c-d_1"])
def test_something_can_be_set_for_a_name_or_for_everything(name: str | None) -> None:
    assert checked_scope(name) == name


@pytest.mark.parametrize("name", ["", "a b", "\x00", "x" * 256, 7])
def test_nothing_can_be_set_for_what_is_no_name(name: Any) -> None:
    with pytest.raises(InvalidLimit, match="name of a queue or type"):
        checked_scope(name)


def test_limits_are_checked_together() -> None:
    breaker = Breaker(3, 60, 30)
    assert checked_limits("t", 1, 2, breaker) == Limits("t", 1.0, 2, Breaker(3, 60.0, 30.0))
    assert checked_limits("t", None, None, breaker=False) == Limits("t", None, None, breaker=False)
    assert checked_limits(None, 5, None, None) == Limits(None, 5.0, None, None)
    with pytest.raises(InvalidLimit, match="belongs to a type"):
        checked_limits(None, None, None, breaker)
    with pytest.raises(InvalidLimit):
        checked_limits("t", -1, None, None)
    with pytest.raises(InvalidLimit):
        checked_limits("t", None, None, Breaker(0, 1, 1))


class TestTimeouts:
    TIMEOUTS: ClassVar = Controls(types={"t": Rules(timeout=40.0), "u": Rules(rate=1.0)}).timeouts()

    def test_only_types_that_have_one(self) -> None:
        assert self.TIMEOUTS == {"t": 40.0}

    def test_tasks_that_name_none_get_that_of_their_type(self) -> None:
        plain = claimed(type="t", timeout=600.0)
        assert retimed([plain], self.TIMEOUTS) == {plain.task_id: replace(plain, timeout=40.0)}
        endless = claimed(type="t", timeout=None)
        assert retimed([endless], self.TIMEOUTS)[endless.task_id].timeout == 40.0

    def test_others_keep_theirs(self) -> None:
        kept = [
            claimed(type="u"),
            claimed(type="t", timeout=40.0),
            claimed(type="t", retry_count=1),
            claimed(type="t", spec=Spec(timed=True)),
        ]
        for task in kept:
            assert retimed([task], self.TIMEOUTS) == {}

    @pytest.mark.parametrize("timeout", [0, 0.5, 30, 2_592_000])
    def test_a_timeout_that_can_be_set(self, timeout: float) -> None:
        assert checked_limits("t", None, None, None, timeout).timeout == timeout

    @pytest.mark.parametrize("timeout", [-1, 2_592_001, float("nan"), True, "5"], ids=repr)
    def test_one_that_cannot(self, timeout: Any) -> None:
        with pytest.raises(InvalidLimit, match="The timeout of a type is a number of seconds"):
            checked_limits("t", None, None, None, timeout)

    def test_it_belongs_to_a_type(self) -> None:
        with pytest.raises(InvalidLimit, match="A timeout belongs to a type"):
            checked_limits(None, None, None, None, 30.0)
