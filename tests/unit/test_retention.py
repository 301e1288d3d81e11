"""Retention: how long what has ended is kept."""

from typing import Any

import pytest
from msgspec.structs import asdict, replace

from fairlane.core.errors import InvalidRetention
from fairlane.core.retention import DEFAULT, Retention, Sweep, checked, past
from fairlane.core.states import TERMINAL, State
from tests.unit.make import NOW, SECOND

DAY = 86_400
FIELDS = ("completed", "failed", "cancelled", "dead_letter", "workers", "journal")


def test_the_defaults_are_those_of_the_specification() -> None:
    assert Retention() == DEFAULT
    assert asdict(DEFAULT) == {
        "completed": DAY,
        "failed": 7 * DAY,
        "cancelled": 7 * DAY,
        "dead_letter": 30 * DAY,
        "workers": DAY,
        "journal": DAY,
    }


def test_every_end_has_a_deadline_of_its_own() -> None:
    kept = Retention(completed=1, failed=2, cancelled=3, dead_letter=4.5, workers=5, journal=6)
    deadlines = kept.deadlines(NOW)
    assert deadlines == {
        State.COMPLETED: NOW - SECOND,
        State.FAILED: NOW - 2 * SECOND,
        State.CANCELLED: NOW - 3 * SECOND,
        State.DEAD_LETTER: NOW - 4_500_000,
    }
    assert set(deadlines) == TERMINAL


def test_what_is_not_kept_may_go_at_once() -> None:
    assert Retention(completed=0).deadlines(NOW)[State.COMPLETED] == NOW


@pytest.mark.parametrize(
    ("seconds", "ago"), [(0, 0), (1, SECOND), (0.5, 500_000), (0.000_001_9, 1), (DAY, DAY * SECOND)]
)
def test_the_past_is_counted_in_microseconds(seconds: float, ago: int) -> None:
    assert past(seconds, NOW) == NOW - ago


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("seconds", [0, 0.5, 100 * 366 * DAY])
def test_each_time_is_a_number_of_seconds_from_zero(field: str, seconds: float) -> None:
    retention = replace(DEFAULT, **{field: seconds})
    assert checked(retention) is retention


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    "seconds",
    [-1, -0.001, 100 * 366 * DAY + 0.5, float("nan"), float("inf"), True, "5", None, [5]],
    ids=repr,
)
def test_any_other_time_is_refused_and_named(field: str, seconds: Any) -> None:
    words = rf"^How long to keep what is {field} is a number .* from 0 to 3,162,240,000\. Got .*\.$"
    with pytest.raises(InvalidRetention, match=words):
        checked(replace(DEFAULT, **{field: seconds}))


@pytest.mark.parametrize("field", FIELDS)
def test_there_can_be_a_least_time(field: str) -> None:
    shortest = replace(DEFAULT, **{field: 1.0})
    assert checked(shortest, 1.0) is shortest
    with pytest.raises(InvalidRetention, match=rf"{field} is a number of seconds from 1 to"):
        checked(replace(DEFAULT, **{field: 0.999}), 1.0)


def test_every_field_is_looked_at() -> None:
    assert Retention.__struct_fields__ == FIELDS


def test_a_sweep_goes_on_in_each_state_and_begins_again() -> None:
    sweep = Sweep(least=0)
    assert sweep.after(State.COMPLETED) == (0, 0)
    sweep.reach(State.COMPLETED, (NOW, 7))
    assert sweep.after(State.COMPLETED) == (NOW, 7)
    assert sweep.after(State.FAILED) == (0, 0)
    sweep.reach(State.FAILED, None)
    sweep.reach(State.COMPLETED, None)
    assert sweep.after(State.COMPLETED) == (0, 0)
