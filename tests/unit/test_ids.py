"""Ids: UUIDs of version 7 that strictly ascend."""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from types import SimpleNamespace
from typing import Any
from uuid import RFC_4122, UUID

import pytest

from fairlane.core import ids
from fairlane.core.errors import BatchTooLarge, InvalidTaskId
from fairlane.core.ids import (
    PACKED,
    checked,
    checked_all,
    new_id,
    new_ids,
    new_run,
    numbered,
    pack,
    unpack,
)

MILLISECOND = 1_000_000


class Clock:
    """A wall clock to be set by hand, in nanoseconds."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_123_456_789

    def time_ns(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Ids as in a new process, under a clock that moves when told to."""
    clock = Clock()
    monkeypatch.setattr(ids, "time", SimpleNamespace(time_ns=clock.time_ns))
    monkeypatch.setattr(ids, "_last_tick", 0)
    monkeypatch.setattr(ids, "_last_random", 0)
    return clock


def ascend(found: list[str]) -> bool:
    """Strictly: no two are equal."""
    return all(one < other for one, other in pairwise(found))


def milliseconds_of(made: str) -> int:
    return UUID(made).int >> 80


class TestForm:
    def test_an_id_is_a_version_7_uuid_in_canonical_form(self) -> None:
        for made in new_ids(200):
            parsed = UUID(made)
            assert parsed.version == 7
            assert parsed.variant == RFC_4122
            assert str(parsed) == made
            assert checked(made) is made

    @pytest.mark.usefixtures("clock")
    def test_the_bits_lie_where_rfc_9562_puts_them(self) -> None:
        number = UUID(new_id()).int
        assert number >> 80 == 1_800_000_000_123
        assert number >> 76 & 0xF == 0b0111
        assert number >> 64 & 0xFFF == 456_789 * 4096 // MILLISECOND
        assert number >> 62 & 0b11 == 0b10

    def test_the_last_nanosecond_of_a_millisecond_still_fits(self, clock: Clock) -> None:
        clock.now = 1_800_000_000_123_999_999
        number = UUID(new_id()).int
        assert (number >> 80, number >> 64 & 0xFFF) == (1_800_000_000_123, 0xFFF)

    @pytest.mark.usefixtures("clock")
    @pytest.mark.parametrize(("byte", "start"), [(b"\x00", 0), (b"\xff", 2**61 - 1)])
    def test_the_random_part_leaves_room_to_count_up(
        self, monkeypatch: pytest.MonkeyPatch, byte: bytes, start: int
    ) -> None:
        monkeypatch.setattr(ids, "os", SimpleNamespace(urandom=lambda size: byte * size))
        monkeypatch.setattr(ids, "_noise", ids._numbers())
        numbers = [UUID(made).int for made in new_ids(1000)]
        assert [number & 2**62 - 1 for number in numbers] == list(range(start, start + 1000))
        assert {number >> 62 & 0b11 for number in numbers} == {0b10}

    @pytest.mark.usefixtures("clock")
    def test_two_processes_in_the_same_tick_make_different_ids(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = set()
        for _ in range(100):
            monkeypatch.setattr(ids, "_last_tick", 0)
            found.update(new_ids(10))
        assert len(found) == 1000


class TestOrder:
    @pytest.mark.parametrize("count", [0, 1, 2, 1000])
    def test_a_batch_has_as_many_ids_as_asked_for_in_ascending_order(self, count: int) -> None:
        found = new_ids(count)
        assert len(found) == count
        assert ascend(found)

    @pytest.mark.usefixtures("clock")
    def test_the_ids_after_the_first_of_a_run_are_nobody_elses(self) -> None:
        first = new_run(999)
        after = [numbered(first, number) for number in range(1, 1_000)]
        assert ascend([first, *after, new_id()])
        assert all(id[14] == "7" for id in after)

    def test_ids_ascend_across_calls(self) -> None:
        assert ascend([new_id() for _ in range(2000)])
        assert ascend(list(chain.from_iterable(new_ids(size) for size in (3, 0, 500, 1, 0, 7))))

    @pytest.mark.usefixtures("clock")
    def test_ids_ascend_within_one_tick_of_the_clock(self) -> None:
        found = new_ids(100) + [new_id() for _ in range(100)] + new_ids(100)
        assert ascend(found)
        assert {milliseconds_of(made) for made in found} == {1_800_000_000_123}

    def test_ids_ascend_with_the_clock(self, clock: Clock) -> None:
        found = []
        for step in (0, 1, 244, 245, MILLISECOND, 10**9, 10**15):
            clock.now += step
            found += new_ids(5)
        assert ascend(found)
        assert milliseconds_of(found[-1]) == clock.now // MILLISECOND

    def test_ids_ascend_when_the_clock_steps_back(self, clock: Clock) -> None:
        found = new_ids(5)
        clock.now -= 3600 * 10**9
        found += new_ids(5)
        clock.now += 1800 * 10**9
        found += new_ids(5)
        clock.now += 1801 * 10**9
        found += new_ids(5)
        assert ascend(found)

    def test_ids_ascend_from_one_thread_to_the_next(self) -> None:
        with ThreadPoolExecutor(8) as threads:
            found = [threads.submit(new_ids, 5).result() for _ in range(100)]
        assert ascend(list(chain.from_iterable(found)))

    def test_threads_at_the_same_time_never_make_the_same_id(self) -> None:
        def make(_: int) -> list[str]:
            return list(chain.from_iterable(new_ids(10) for _ in range(100)))

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(make, range(8)))
        assert all(ascend(by_one) for by_one in found)
        assert len(set(chain.from_iterable(found))) == 8 * 100 * 10


class TestChecked:
    @pytest.mark.parametrize(
        "task_id",
        ["00000000-0000-0000-0000-000000000000", "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"],
    )
    def test_any_uuid_in_canonical_form_passes(self, task_id: str) -> None:
        assert checked(task_id) == task_id

    @pytest.mark.parametrize(
        "task_id",
        [
            "",
            "1",
            "F81D4FAE-7DEC-41D0-A765-00A0C91E6BF6",
            "f81d4fae7dec41d0a76500a0c91e6bf6",
            "{f81d4fae-7dec-41d0-a765-00a0c91e6bf6}",
            " f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
            "f81d4fae-7dec-41d0-a765-00a0c91e6bf6\n",
            "g81d4fae-7dec-41d0-a765-00a0c91e6bf6",
            "\uff1681d4fae-7dec-41d0-a765-00a0c91e6bf6",
            UUID("f81d4fae-7dec-41d0-a765-00a0c91e6bf6"),
            b"f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
            None,
            7,
        ],
        ids=repr,
    )
    def test_anything_else_is_refused_with_the_form_it_should_have(self, task_id: Any) -> None:
        with pytest.raises(InvalidTaskId, match="36-character lower-case form") as caught:
            checked(task_id)
        assert caught.value.code == "invalid_task_id"

    def test_a_long_value_is_shown_in_part(self) -> None:
        with pytest.raises(InvalidTaskId) as caught:
            checked("x" * 10_000)
        assert len(caught.value.message) < 200


def test_a_forked_child_goes_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even with the same clock, parent and child must not make the same ids."""
    monkeypatch.setattr("time.time_ns", lambda: 1_800_000_000_000_000_000)
    new_ids(3)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reader, 36).decode()
    os.close(reader)
    os.close(writer)
    assert theirs not in new_ids(1_000)
    ours = new_id()
    ids._start_over()  # what the child does first
    assert new_id() != ours


def test_packed_ids_come_back_as_they_were() -> None:
    for count in (0, 1, 15, 16, 50):
        some = new_ids(count)
        assert len(pack(some)) == count * PACKED
        assert unpack(pack(some)) == some


def test_many_ids_are_checked_at_once() -> None:
    some = new_ids(5)
    checked_all(some, 5)
    checked_all([])
    with pytest.raises(BatchTooLarge, match="At most 4 tasks"):
        checked_all(some, 4)
    for bad in ("", "x", some[0] + some[1], some[0].upper(), some[0][:-1], some[0][:-1] + "\u0663"):
        with pytest.raises(InvalidTaskId):
            checked_all([*some[:2], bad], 5)
    with pytest.raises(InvalidTaskId):  # together they are as long as two
        checked_all([some[0][:-1], some[1] + "0"])


def test_numbered_ids_follow_one_another() -> None:
    first = new_id()
    found = [numbered(first, number) for number in range(1_000)]
    assert found[0] == first
    assert ascend(found)
    assert found == [numbered(found[500], number - 500) for number in range(1_000)]


def test_after_the_last_id_comes_the_first() -> None:
    last = "ffffffff-ffff-ffff-ffff-ffffffffffff"
    assert checked(numbered(last, 1)) == "00000000-0000-0000-0000-000000000000"
