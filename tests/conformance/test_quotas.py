"""Quotas: how much one subject may have made of what all share, on every engine."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from fairlane.core import limits
from fairlane.core.definitions import Definition
from fairlane.core.errors import InvalidDefinition, InvalidInput, InvalidSchedule
from fairlane.core.quotas import Made
from fairlane.core.recurrence import every
from fairlane.core.schedules import new_schedule
from fairlane.core.submission import new_task
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

MOST = limits.DEFINITIONS_OF_ONE


async def take(store: World, subject: str, *names: str, made: Made = Made.DEFINITIONS) -> None:
    await store.run(store.ops.take_quota(made, subject, names))


def some(count: int, start: int = 0) -> list[str]:
    return [f"t{number}" for number in range(start, start + count)]


async def test_a_subject_makes_no_more_than_its_quota(store: World) -> None:
    await take(store, "me", *some(MOST - 1))
    with pytest.raises(InvalidDefinition, match="as many as one subject may"):
        await take(store, "me", "x", "y")
    await take(store, "me", "x")  # none of the two had counted
    with pytest.raises(InvalidDefinition):
        await take(store, "me", "y")
    await take(store, "me", "x", *some(MOST - 1))
    await take(store, "other", "y")
    await take(store, "me", *some(limits.SCHEDULES_OF_ONE), made=Made.SCHEDULES)
    with pytest.raises(InvalidSchedule):
        await take(store, "me", "y", made=Made.SCHEDULES)


async def test_processes_together_admit_no_more(store: World) -> None:
    backends = store.processes(4)
    share = MOST // 2

    async def take_some(number: int) -> int:
        op = backends[number].ops.take_quota(Made.DEFINITIONS, "me", some(share, number * share))
        with suppress(InvalidInput):
            await backends[number].run(op)
            return 1
        return 0

    assert sum(await asyncio.gather(*map(take_some, range(4)))) == 2


async def test_what_was_made_long_ago_does_not_count(store: World) -> None:
    await take(store, "me", *some(MOST))
    await store.advance(limits.QUOTA_SECONDS * 0.6)
    await take(store, "me", *some(10))
    await store.advance(limits.QUOTA_SECONDS * 0.6)
    await take(store, "me", *some(MOST - 10, MOST))
    with pytest.raises(InvalidDefinition):
        await take(store, "me", "x")


async def test_what_is_dropped_gives_its_place_back(store: World) -> None:
    for subject in ("me", "other"):
        await take(store, subject, *some(MOST))
    await store.run(store.ops.publish([Definition(type="t1")]))
    assert await store.run(store.ops.drop_definition("t1"))
    await take(store, "me", "x")
    await take(store, "other", "x")
    await take(store, "me", *some(limits.SCHEDULES_OF_ONE), made=Made.SCHEDULES)
    await store.run(
        store.ops.put_schedules([new_schedule("t1", every(3_600), new_task("work"))], owner="shop")
    )
    assert await store.run(store.ops.drop_schedule("t1"))
    await take(store, "me", "x", made=Made.SCHEDULES)
    with pytest.raises(InvalidDefinition):
        await take(store, "me", "y")
