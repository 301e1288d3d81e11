"""How long a failed task waits."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.errors import InvalidRetries
from fairlane.core.retry import DEFAULT, RetryPolicy, check_pause, checked
from tests.unit.make import quick

policies = st.builds(
    RetryPolicy,
    base=st.floats(0.001, 1e6),
    factor=st.floats(1, 1e6),
    cap=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
)
lucks = st.floats(0, 1, exclude_max=True)


class TestDelay:
    @pytest.mark.parametrize(
        ("retries", "seconds"), [(0, 1), (1, 2), (2, 4), (8, 256), (9, 300), (10, 300), (1000, 300)]
    )
    def test_the_default_doubles_from_one_second_to_five_minutes(
        self, retries: int, seconds: float
    ) -> None:
        assert DEFAULT.delay(retries, 0.5) == seconds

    @pytest.mark.parametrize(("luck", "seconds"), [(0.0, 3.6), (0.25, 3.8), (0.75, 4.2)])
    def test_the_default_is_spread_by_a_tenth_either_way(self, luck: float, seconds: float) -> None:
        assert DEFAULT.delay(2, luck) == pytest.approx(seconds)

    @pytest.mark.parametrize(("retries", "seconds"), [(0, 10), (1, 20), (2, 40), (20, 21_600)])
    def test_the_policy_of_tq_can_be_said(self, retries: int, seconds: float) -> None:
        assert RetryPolicy(10.0, 2.0, 6 * 3600.0, 0.2).delay(retries, 0.5) == seconds

    @pytest.mark.parametrize("luck", [0.0, 0.5, 0.999])
    def test_without_jitter_luck_makes_no_difference(self, luck: float) -> None:
        assert RetryPolicy(5.0, 2.0, 1e9, 0.0).delay(3, luck) == 40.0

    @pytest.mark.parametrize("factor", [2.0, 2, 1e300])
    def test_a_number_too_large_to_compute_with_is_the_cap(self, factor: float) -> None:
        assert RetryPolicy(1.0, factor, 300.0, 0.0).delay(100_000, 0.5) == 300.0

    def test_without_a_base_there_is_no_delay(self) -> None:
        assert RetryPolicy(base=0.0).delay(5, 0.9) == 0.0

    @quick
    @given(policies, st.integers(0, 1000), lucks)
    def test_the_delay_is_never_negative_nor_beyond_the_jittered_cap(
        self, policy: RetryPolicy, retries: int, luck: float
    ) -> None:
        delay = policy.delay(retries, luck)
        assert 0 <= delay <= policy.cap * (1 + policy.jitter) * (1 + 1e-9)

    @quick
    @given(policies, st.integers(0, 999), lucks)
    def test_the_delay_never_shrinks_from_one_failure_to_the_next(
        self, policy: RetryPolicy, retries: int, luck: float
    ) -> None:
        assert policy.delay(retries, luck) <= policy.delay(retries + 1, luck)

    @quick
    @given(policies, st.integers(0, 1000), lucks, lucks)
    def test_more_luck_means_a_longer_wait(
        self, policy: RetryPolicy, retries: int, one: float, other: float
    ) -> None:
        less, more = sorted((one, other))
        assert policy.delay(retries, less) <= policy.delay(retries, more)


class TestChecked:
    @pytest.mark.parametrize(
        "policy",
        [
            DEFAULT,
            RetryPolicy(base=0.0),
            RetryPolicy(base=0, factor=1, cap=0, jitter=0),
            RetryPolicy(jitter=1.0),
            RetryPolicy(factor=1.0),
        ],
    )
    def test_a_sensible_policy_passes(self, policy: RetryPolicy) -> None:
        assert checked(policy) is policy

    @pytest.mark.parametrize("field", ["base", "factor", "cap", "jitter"])
    @pytest.mark.parametrize("value", [-0.5, float("nan"), float("inf"), "1", True, None], ids=repr)
    def test_a_number_that_makes_no_sense_is_refused(self, field: str, value: Any) -> None:
        policy = RetryPolicy(**{field: value})
        with pytest.raises(InvalidRetries, match="a factor from 1 to 1,000") as caught:
            checked(policy)
        assert caught.value.code == "invalid_max_retries"

    @pytest.mark.parametrize("policy", [RetryPolicy(factor=0.99), RetryPolicy(jitter=1.01)])
    def test_a_shrinking_delay_and_a_jitter_above_all_of_it_are_refused(
        self, policy: RetryPolicy
    ) -> None:
        with pytest.raises(InvalidRetries, match="a jitter from 0 to 1"):
            checked(policy)

    @pytest.mark.parametrize("policy", [RetryPolicy(cap=10**400), {"base": 1}, None])
    def test_what_is_no_policy_at_all_is_refused(self, policy: Any) -> None:
        with pytest.raises(InvalidRetries, match="A retry policy has"):
            checked(policy)


@pytest.mark.parametrize(
    ("policy", "passes"),
    [
        (RetryPolicy(), True),
        (RetryPolicy(base=0.1), True),
        (RetryPolicy(base=1, factor=1, jitter=1), True),
        (RetryPolicy(base=0), False),
        (RetryPolicy(base=0.9, factor=1), False),
        (RetryPolicy(cap=0.5), False),
    ],
    ids=str,
)
def test_many_retries_need_a_pause(policy: RetryPolicy, passes: bool) -> None:
    check_pause(policy, 10)
    if passes:
        check_pause(policy, 11)
        return
    with pytest.raises(InvalidRetries, match="more than 10 times waits for 1 s"):
        check_pause(policy, 11)


def test_no_delay_stays_none_however_often_it_failed() -> None:
    assert RetryPolicy(base=0.0, factor=10.0).delay(400, 0.5) == 0


def test_a_policy_is_stored_as_four_numbers() -> None:
    stored = msgspec.json.encode(DEFAULT)
    assert stored == b"[1.0,2.0,300.0,0.1]"
    assert msgspec.json.decode(stored, type=RetryPolicy) == DEFAULT
