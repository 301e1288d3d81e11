"""Lanes: how many of them one subject may have made, on every engine."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from fairlane.core import limits
from fairlane.core.errors import TooManyLanes
from fairlane.core.lanes import LaneKey
from fairlane.core.submission import new_task
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

MOST = limits.LANES_OF_ONE
LOOKS = 3
"""So often does maintenance look: an engine may take two looks to drop a lane."""


def lanes(count: int, start: int = 0) -> list[LaneKey]:
    return [("default", f"t{number}", ()) for number in range(start, start + count)]


async def take(store: World, subject: str, keys: list[LaneKey]) -> None:
    await store.run(store.ops.take_lanes(subject, keys))


async def look(store: World) -> None:
    for _ in range(LOOKS):
        await store.run(store.ops.drop_lanes())


async def test_a_subject_makes_no_more_than_its_share(store: World) -> None:
    await take(store, "me", lanes(MOST - 1))
    with pytest.raises(TooManyLanes, match="into the payload or the tags"):
        await take(store, "me", lanes(2, MOST))
    await take(store, "me", lanes(1, MOST))  # none of the two had counted
    with pytest.raises(TooManyLanes, match="me has made 5,000 combinations"):
        await take(store, "me", lanes(1, MOST + 1))
    await take(store, "me", lanes(MOST - 1))  # what has counted may be made again
    await take(store, "other", lanes(MOST))


async def test_processes_together_admit_no_more(store: World) -> None:
    backends = store.processes(4)
    share = MOST // 2

    async def take_some(number: int) -> int:
        op = backends[number].ops.take_lanes("me", lanes(share, number * share))
        with suppress(TooManyLanes):
            await backends[number].run(op)
            return 1
        return 0

    assert sum(await asyncio.gather(*map(take_some, range(4)))) == 2


async def test_a_lane_counts_as_long_as_it_is_there(store: World) -> None:
    await take(store, "me", lanes(MOST))
    ids = await store.submit_all([new_task(f"t{number}") for number in range(10)])
    await store.submit("newest")
    await look(store)
    with pytest.raises(TooManyLanes):  # their submissions may be under way
        await take(store, "me", lanes(1, MOST))
    await store.advance(limits.UNMADE_LANE_SECONDS + 1)
    await look(store)
    with pytest.raises(TooManyLanes):  # ten are there
        await take(store, "me", lanes(MOST - 9, MOST))
    await take(store, "me", lanes(MOST - 10, MOST))
    await store.run(store.ops.cancel(ids))
    await store.run(store.ops.delete(ids))
    await look(store)
    await store.advance(limits.LANE_SECONDS + 1)
    await look(store)
    await look(store)
    await take(store, "me", lanes(MOST, 2 * MOST))
