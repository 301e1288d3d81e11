"""What a worker says about types that it holds back, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.held_back import IN_HEALTH, held_back, holders, listed, takes
from fairlane.core.leases import stored_health
from fairlane.core.model import Beat, WorkerStatus
from tests.unit.make import stored, worker


def holding(*types: str, **changes: Any) -> Any:
    return worker(health={"pid": 7, IN_HEALTH: listed(types)}, **changes)


def test_a_worker_says_what_it_holds_back() -> None:
    assert held_back(worker()) == held_back(worker(health={"pid": 7})) == frozenset()
    assert held_back(holding("email", "crawl")) == {"email", "crawl"}


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("email", set()),
        ({"email": 1}, set()),
        (None, set()),
        (["email", 5, None, ["crawl"], {}, "no name", "\u202e"], {"email"}),
    ],
)
def test_workers_may_report_anything(told: Any, found: set[str]) -> None:
    assert held_back(worker(health={IN_HEALTH: told})) == found


@pytest.mark.parametrize("length", [1, 10, limits.NAME_LENGTH])
def test_as_many_are_listed_as_there_is_room_for(length: int) -> None:
    names = {f"{number:x}".rjust(length, "t") for number in range(10_000)}
    fitting = listed(names)
    assert fitting == sorted(names)[: len(fitting)]
    health = {IN_HEALTH: fitting}
    told = stored_health(Beat("w", health=health))
    assert told is not None
    most = limits.HELD_BACK_BYTES
    longest = max(map(len, names))
    assert most - longest - 3 <= sum(len(name) + 3 for name in fitting) <= most
    assert len(told) <= most + len(f'{{"{IN_HEALTH}":[]}}')


def test_nothing_is_listed_of_nothing() -> None:
    assert listed([]) == []


def test_a_worker_takes_what_it_serves_and_does_not_hold_back() -> None:
    assert takes(worker(), stored())
    assert takes(holding("crawl"), stored())
    assert not takes(holding("email"), stored())
    assert not takes(worker(queues=frozenset()), stored())


def test_the_living_hold_back() -> None:
    workers = [
        holding("email"),
        holding("email", "crawl", status=WorkerStatus.UNHEALTHY),
        holding("email", status=WorkerStatus.DEAD),
        holding("email", lost=True),
        worker(),
    ]
    assert holders(workers) == {"email": 2, "crawl": 1}
