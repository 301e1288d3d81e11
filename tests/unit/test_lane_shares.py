"""Shares of lanes: what counts for a subject, and until when."""

from __future__ import annotations

import pytest

from fairlane.core import limits
from fairlane.core.errors import TooManyLanes
from fairlane.core.flow import perform
from fairlane.core.lane_shares import counted, give_lanes_back, remaining, take_lanes
from fairlane.core.lanes import LaneKey
from tests.unit.make import NOW
from tests.unit.shelf import Shelf

UNMADE = int(limits.UNMADE_LANE_SECONDS * 1_000_000)
A: LaneKey = ("q", "a", ())
B: LaneKey = ("q", "a", ("gpu",))


def give_back(shelf: Shelf, lanes: list[LaneKey]) -> None:
    perform(give_lanes_back(shelf, lanes), lambda call: call)


def test_a_lane_counts_once() -> None:
    first = counted({}, [A, A], NOW)
    assert list(first.values()) == [NOW]
    assert counted(first, [A], NOW + UNMADE // 2) == first
    assert list(counted(first, [A], NOW + UNMADE).values()) == [NOW + UNMADE]
    assert len(counted(first, [B], NOW)) == 2


def test_a_lane_counts_while_it_is_there_or_may_soon_be() -> None:
    made = counted({}, [A, B], NOW)
    (there, _) = made
    assert remaining(made, set(), NOW + UNMADE - 1) == made
    assert remaining(made, {there}, NOW + UNMADE) == {there: NOW}
    assert remaining(made, set(), NOW + UNMADE) == {}


def test_a_share_is_written_only_if_it_changes() -> None:
    shelf = Shelf()
    shelf.run(take_lanes(shelf, "me", [A]))
    shelf.run(take_lanes(shelf, "me", [A]))
    assert shelf.of("lane_share")["me"].version == 1
    shelf.run(take_lanes(shelf, "me", [B]))
    shelf.now += UNMADE
    give_back(shelf, [A, B])
    assert shelf.of("lane_share")["me"].version == 2
    give_back(shelf, [A])
    assert shelf.of("lane_share")["me"].version == 3
    give_back(shelf, [])
    assert shelf.of("lane_share") == {}


def test_a_subject_has_its_share_and_no_more() -> None:
    shelf = Shelf()
    many: list[LaneKey] = [("q", f"t{number}", ()) for number in range(limits.LANES_OF_ONE)]
    shelf.run(take_lanes(shelf, "me", many))
    with pytest.raises(TooManyLanes, match="one subject may have made 5,000"):
        shelf.run(take_lanes(shelf, "me", [A]))
    shelf.run(take_lanes(shelf, "other", [A]))
    assert limits.LANES_OF_ONE <= limits.LANES / 2, "one subject leaves room for others"
