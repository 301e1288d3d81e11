"""Schedules: what can be stored, and the key that makes one task of a tick."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core import limits, schedules
from fairlane.core.errors import InvalidSchedule
from fairlane.core.model import microseconds_of, moment
from fairlane.core.schedules import NewSchedule, Schedule, checked, key_of
from fairlane.core.submission import new_task
from tests.unit.make import NOON, NOW, quick
from tests.unit.shelf import Shelf, once


@pytest.mark.parametrize("schedule_id", ["a", "nightly.report:eu-1_x", "x" * 200])
@pytest.mark.parametrize("definition", [b"", b"{}", b"x" * 512 * 1024], ids=len)
def test_a_name_and_a_definition_are_enough(schedule_id: str, definition: bytes) -> None:
    schedule = NewSchedule(schedule_id, definition)
    assert checked(schedule) is schedule
    assert schedule.next_at is None


@pytest.mark.parametrize("schedule_id", ["", "x" * 201, "a b", "a\n", "\ud800", 5, None], ids=ascii)
def test_other_ids_are_refused(schedule_id: Any) -> None:
    with pytest.raises(InvalidSchedule, match=r"and at most 200 of them\. Got .*\.$") as caught:
        checked(NewSchedule(schedule_id, b"{}"))
    assert caught.value.message.startswith("A schedule's id has 1 to 255 characters out of A-Z")


def test_a_definition_that_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match=r"at most 524,288 bytes, not 524,289\.$"):
        checked(NewSchedule("a", b"x" * (512 * 1024 + 1)))


def test_the_key_of_a_tick_is_stored_and_so_never_changes() -> None:
    assert key_of("nightly", NOW) == "schedule:nightly:1772366400000000"


def test_the_longest_id_and_the_last_tick_there_is_make_an_idempotency_key() -> None:
    schedule = checked(NewSchedule("x" * 200, b"{}"))
    tick = microseconds_of(NOON.replace(year=9999))
    key = key_of(schedule.schedule_id, tick)
    assert new_task("email", idempotency_key=key).idempotency_key == key


ticks = st.tuples(st.text("ab:1", min_size=1, max_size=4), st.integers(0, 20))


@quick
@given(ticks, ticks)
def test_no_two_ticks_share_a_key(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert (key_of(*one) == key_of(*other)) == (one == other)


def test_a_stored_schedule_as_users_see_it() -> None:
    shelf = Shelf()
    shelf.run(schedules.put_schedule(shelf, NewSchedule("daily", b"{}", NOW)))
    shelf.now += 5
    assert shelf.run(schedules.fire(shelf, "daily", NOW, NOW + 9))
    again = NewSchedule("daily", b"{\n}", None)
    stored = shelf.run(schedules.put_schedule(shelf, again))
    times = (None, moment(NOW), moment(NOW), moment(NOW + 5))
    assert stored == Schedule("daily", b"{\n}", *times, version=2)
    assert shelf.run(schedules.schedules(shelf)) == [stored]
    assert shelf.of("schedule")["daily"].value == b"[null,%d,%d,2]\n{\n}" % (NOW, NOW + 5)


def test_a_tick_fires_once_whoever_is_quicker() -> None:
    shelf = Shelf()
    shelf.run(schedules.put_schedule(shelf, NewSchedule("daily", b"{}", NOW)))
    shelf.interfere = once(lambda: shelf.run(schedules.fire(shelf, "daily", NOW, NOW + 1)))
    assert not shelf.run(schedules.fire(shelf, "daily", NOW, NOW + 1))
    assert not shelf.run(schedules.fire(shelf, "weekly", NOW, NOW + 1))


def test_a_schedule_is_dropped_once() -> None:
    shelf = Shelf()
    shelf.run(schedules.put_schedule(shelf, NewSchedule("daily", b"{}", NOW)))
    shelf.interfere = once(lambda: shelf.run(schedules.drop_schedule(shelf, "daily")))
    assert not shelf.run(schedules.drop_schedule(shelf, "daily"))


def test_schedules_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEDULES", 1)
    shelf = Shelf()
    for _ in range(2):
        shelf.run(schedules.put_schedule(shelf, NewSchedule("a", b"{}")))
    with pytest.raises(InvalidSchedule, match="At most 1 schedules"):
        shelf.run(schedules.put_schedule(shelf, NewSchedule("b", b"{}")))
