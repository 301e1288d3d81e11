"""What repeats passes a few times, and is counted from then on."""

from __future__ import annotations

from fairlane.telemetry.repeats import Repeats


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_of_a_period_pass_and_the_others_are_counted() -> None:
    clock = Clock()
    repeats = Repeats[str](most=2, seconds=10.0, clock=clock)
    assert [repeats.passes("a") for _ in range(5)] == [True, True, False, False, False]
    assert repeats.passes("b")
    clock.now += 9.9
    assert list(repeats.take_ended()) == []
    clock.now += 0.1
    assert list(repeats.take_ended()) == [("a", 3, 10.0)]
    assert list(repeats.take_ended()) == []
    assert repeats.passes("a")


def test_a_period_begins_with_the_first_of_its_kind() -> None:
    clock = Clock()
    repeats = Repeats[str](most=1, seconds=10.0, clock=clock)
    for kind in ("a", "b"):
        assert repeats.passes(kind)
        assert not repeats.passes(kind)
        clock.now += 6
    assert list(repeats.take_ended()) == [("a", 1, 12.0)]
    clock.now += 4
    assert list(repeats.take_ended()) == [("b", 1, 10.0)]


def test_at_the_end_every_period_is_taken() -> None:
    repeats = Repeats[str](most=1, clock=Clock())
    assert [repeats.passes("a"), repeats.passes("a"), repeats.passes("b")] == [True, False, True]
    assert list(repeats.take_ended(all=True)) == [("a", 1, 0.0)]


def test_kinds_beyond_the_bound_are_counted_together() -> None:
    """Errors whose code is different each time must not fill the log or the memory."""
    repeats = Repeats[int](most=1, clock=Clock(), kinds=3)
    assert [repeats.passes(kind) for kind in range(1000)].count(True) == 3
    assert list(repeats.take_ended(all=True)) == [(None, 997, 0.0)]
