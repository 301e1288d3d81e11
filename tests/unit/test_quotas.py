"""Quotas: how much one subject may have made of what all share."""

from __future__ import annotations

import pytest

from fairlane.core import limits
from fairlane.core.definitions import Definition, drop_definition, publish
from fairlane.core.errors import InvalidDefinition, InvalidSchedule
from fairlane.core.quotas import Made, counted, take_quota
from tests.unit.make import NOW
from tests.unit.shelf import Shelf

DAY = 86_400_000_000
MANY = [f"t{number}" for number in range(limits.DEFINITIONS_OF_ONE)]


def test_what_is_made_again_counts_once_and_longer() -> None:
    first = counted({}, ["a"], NOW)
    assert list(first.values()) == [NOW + 30 * DAY]
    assert counted(first, ["a"], NOW + 14 * DAY) == first
    assert list(counted(first, ["a"], NOW + 16 * DAY).values()) == [NOW + 46 * DAY]
    both = counted(first, ["b"], NOW + 14 * DAY)
    assert len(both) == 2
    assert len(counted(both, [], NOW + 30 * DAY)) == 1


def test_a_subject_has_a_place_for_each() -> None:
    shelf = Shelf()
    shelf.run(take_quota(shelf, Made.DEFINITIONS, "me", MANY))
    version = shelf.of("quota")["definitions:me"].version
    shelf.run(take_quota(shelf, Made.DEFINITIONS, "me", MANY[:10]))
    assert shelf.of("quota")["definitions:me"].version == version, "nothing is written in vain"
    with pytest.raises(InvalidDefinition, match="me has made 1,000 definitions within 30 days"):
        shelf.run(take_quota(shelf, Made.DEFINITIONS, "me", ["more"]))
    shelf.run(take_quota(shelf, Made.DEFINITIONS, "other", ["more"]))
    shelf.run(take_quota(shelf, Made.SCHEDULES, "me", ["more"]))
    with pytest.raises(InvalidSchedule):
        shelf.run(take_quota(shelf, Made.SCHEDULES, "me", MANY))
    shelf.now += 30 * DAY
    shelf.run(take_quota(shelf, Made.DEFINITIONS, "third", ["more"]))
    assert list(shelf.of("quota")) == ["definitions:third"], "what counts no more goes away"


def test_what_is_dropped_gives_its_place_back() -> None:
    shelf = Shelf()
    for subject in ("me", "other"):
        shelf.run(take_quota(shelf, Made.DEFINITIONS, subject, MANY))
    shelf.run(take_quota(shelf, Made.SCHEDULES, "me", ["t1"]))
    shelf.run(publish(shelf, [Definition(type="t1")]))
    assert shelf.run(drop_definition(shelf, "t1"))
    assert not shelf.run(drop_definition(shelf, "t1"))
    for subject in ("me", "other"):
        shelf.run(take_quota(shelf, Made.DEFINITIONS, subject, ["more"]))
    assert shelf.of("quota")["schedules:me"].version == 1


def test_one_that_has_expired_is_not_there() -> None:
    shelf = Shelf()
    shelf.run(publish(shelf, [Definition(type="t1")]))
    shelf.now += 31 * DAY
    assert not shelf.run(drop_definition(shelf, "t1"))
    assert shelf.of("definition") == {}
