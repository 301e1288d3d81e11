"""Sliding windows: nobody gets more than the limit, whatever is reserved and given back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core import client_limits, documents, limits
from fairlane.core.client_limits import Counts, Rate, Share, Want, take
from fairlane.core.documents import Documents
from fairlane.core.flow import Op
from tests.unit.make import NOW, SECOND, quick
from tests.unit.shelf import Shelf

MINUTE, HOUR = Rate(10, 60), Rate(15, 3600)
START = NOW - NOW % (3600 * SECOND)
"""Where a part of both windows begins."""


class Store(Shelf):
    reserve = client_limits.reserve

    def __init__(self) -> None:
        super().__init__()
        self.now = START

    def take(self, *wants: Want, rates: tuple[Rate, ...] = (MINUTE,)) -> list[Share]:
        op: Op[list[Share]] = self.reserve(rates, wants)
        return self.run(op)

    def granted(self, client: str, amount: int, *rates: Rate, **more: int) -> int:
        (share,) = self.take(Want(client, amount, **more), rates=rates or (MINUTE,))
        return share.granted


def test_it_is_a_store_of_documents() -> None:
    documents: Documents = Store()
    assert documents is not None


def test_the_limit_and_no_more() -> None:
    store = Store()
    assert [store.granted("a", 4) for _ in range(3)] == [4, 4, 0]
    assert store.granted("a", 2) == 2
    assert store.granted("b", 10) == 10


def test_the_window_slides_by_parts_of_it() -> None:
    store = Store()
    assert store.granted("a", 6) == 6
    store.now += 30 * SECOND
    assert store.granted("a", 4) == 4
    store.now = START + 65 * SECOND - 1
    (refused,) = store.take(Want("a", 1))
    assert (refused.granted, refused.refused_by) == (0, MINUTE)
    assert refused.wait == pytest.approx(1e-6)
    store.now += 1
    assert store.granted("a", 7) == 0
    assert store.granted("a", 6) == 6
    store.now = START + 95 * SECOND
    assert store.granted("a", 4) == 4


def test_the_limit_that_is_reached_is_named() -> None:
    store = Store()
    assert store.granted("a", 10, MINUTE, HOUR) == 10
    (refused,) = store.take(Want("a", 1), rates=(MINUTE, HOUR))
    assert (refused.refused_by, refused.wait) == (MINUTE, 65.0)
    store.now += 120 * SECOND
    (refused,) = store.take(Want("a", 6), rates=(MINUTE, HOUR))
    assert (refused.refused_by, refused.wait) == (HOUR, 3900.0 - 120)
    # The hour refused, so the minute did not count it either.
    assert store.granted("a", 5, MINUTE, HOUR) == 5


def test_what_can_never_be_is_refused_for_a_whole_window() -> None:
    (refused,) = Store().take(Want("a", 11))
    assert (refused.granted, refused.wait) == (0, 60.0)


def test_a_share_leaves_room_for_other_servers() -> None:
    rate = Rate(80, 60)
    store = Store()
    assert store.granted("a", 1, rate, share=100) == 10
    assert store.granted("a", 2, rate, share=5) == 5
    assert store.granted("a", 30, rate, share=31) == 30
    assert store.granted("a", 1, rate, share=100) == 4


def test_a_share_ends_with_its_part() -> None:
    store = Store()
    store.now += 7 * SECOND
    (share,) = store.take(Want("a", 1), rates=(HOUR, MINUTE))
    assert (share.at, share.until) == (store.now, START + 10 * SECOND)


def test_what_was_not_used_is_given_back() -> None:
    store = Store()
    assert store.granted("a", 10) == 10
    reserved_at = store.now
    store.now += 20 * SECOND
    assert store.granted("a", 3, unused=2, reserved_at=reserved_at) == 0
    assert store.granted("a", 3, unused=1, reserved_at=reserved_at) == 3
    # More than was counted then cannot be given back, nor what has left the window.
    store.now += 60 * SECOND
    assert store.granted("a", 8, unused=99, reserved_at=reserved_at) == 0
    assert store.granted("a", 7, unused=99, reserved_at=START) == 7


def test_wants_of_one_client_are_counted_one_after_another() -> None:
    shares = Store().take(Want("a", 6), Want("b", 6), Want("a", 6), Want("a", 4))
    assert [share.granted for share in shares] == [6, 6, 0, 4]


def test_a_refusal_writes_nothing() -> None:
    store = Store()
    store.granted("a", 10)
    (before,) = store.of("client").values()
    store.now += SECOND
    assert store.granted("a", 1) == store.granted("b", 11) == 0
    assert list(store.of("client").values()) == [before]


def test_a_clock_that_was_set_back_refuses_for_a_window_and_no_longer() -> None:
    store = Store()
    store.now += 100_000 * SECOND
    store.granted("a", 10, MINUTE, HOUR)
    store.now = START
    (refused,) = store.take(Want("a", 1))
    assert (refused.granted, refused.wait) == (0, 65.0)
    store.now += 65 * SECOND
    assert store.granted("a", 10) == 10


def test_what_was_counted_in_the_future_counts_as_of_now() -> None:
    counts: Counts = {60: {(START + 100_000 * SECOND) // MINUTE.part: 7}}
    assert take(counts, [MINUTE], Want("a", 3), START).granted == 3
    assert counts == {60: {START // MINUTE.part: 10}}


def test_others_may_be_quicker() -> None:
    store, times = Store(), iter([1, 1, 0])

    def interfere() -> None:
        if next(times, 0):
            other = Store()
            other.kinds, other.now = store.kinds, store.now
            other.granted("a", 4)

    store.interfere = interfere
    assert store.granted("a", 4) == 0


def test_clients_who_did_nothing_for_longest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CLIENTS", 3)
    monkeypatch.setattr(documents, "_FORGOTTEN_AT_ONCE", 1)
    store = Store()
    for client in ("a", "b", "c", "a", "d"):
        store.now += 1
        assert store.granted(client, 1) == 1
    assert set(store.of("client")) == {"a", "c", "d"}
    # Those who ask at the same time are not forgotten for each other.
    store.now += 1
    shares = store.take(*(Want(client, 1) for client in ("c", "e")))
    assert [share.granted for share in shares] == [1, 1]
    assert set(store.of("client")) == {"c", "d", "e"}


def test_windows_that_have_passed_are_deleted_when_somebody_new_comes() -> None:
    store = Store()
    store.granted("a", 1)
    store.now += 67 * SECOND
    store.granted("b", 1)
    assert set(store.of("client")) == {"b"}


def test_how_it_is_stored() -> None:
    store = Store()
    store.granted("a", 3, MINUTE, HOUR)
    (document,) = store.of("client").values()
    assert msgspec.json.decode(document.value) == {
        "60": {str(START // MINUTE.part): 3},
        "3600": {str(START // HOUR.part): 3},
    }


steps = st.lists(
    st.tuples(
        st.integers(0, 40 * SECOND), st.integers(1, 12), st.integers(0, 9), st.integers(0, 9)
    ),
    max_size=30,
)


@quick
@given(steps, st.integers(1, 20))
def test_never_more_than_the_limit_in_any_window(
    steps: list[tuple[int, int, int, int]], most: int
) -> None:
    rates, now = [Rate(most, 60), Rate(2 * most, 120)], START
    counts: Counts = {}
    reserved: list[tuple[int, int]] = []
    for pause, amount, share, unused in steps:
        now += pause
        at, held = reserved[-1] if reserved else (0, 0)
        unused = min(unused, held)
        if unused:
            reserved[-1] = (at, held - unused)
        got = take(counts, rates, Want("a", amount, share, unused, at), now)
        if not got.granted:
            assert got.wait > 0
            if amount > most:
                continue
            now += int(got.wait * SECOND) + 1
            got = take(counts, rates, Want("a", amount), now)
        assert got.granted >= amount
        reserved.append((now, got.granted))
        for rate in rates:
            within = sum(n for when, n in reserved if when > now - rate.seconds * SECOND)
            assert within <= rate.most
