"""Schedules: stored, and moved on from each tick by exactly one scheduler."""

from __future__ import annotations

import asyncio

import pytest

from fairlane.core import limits
from fairlane.core.errors import InvalidSchedule
from fairlane.core.model import moment
from fairlane.core.schedules import NewSchedule
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

NOON = 1_772_366_400_000_000
HOUR = 3_600_000_000


async def test_schedules_are_kept(store: World) -> None:
    assert await store.run(store.ops.schedules()) == []
    daily = await store.run(
        store.ops.put_schedule(NewSchedule("daily", b'{"a": "\xc3\xa9"}', NOON))
    )
    assert (daily.schedule_id, daily.definition, daily.next_at) == (
        "daily",
        b'{"a": "\xc3\xa9"}',
        moment(NOON),
    )
    assert (daily.last_at, daily.version) == (None, 1)
    assert daily.created_at == daily.updated_at
    asleep = await store.run(store.ops.put_schedule(NewSchedule("asleep", b"{}")))
    assert asleep.next_at is None
    assert await store.run(store.ops.schedules()) == [asleep, daily]
    await store.advance(10)
    changed = await store.run(store.ops.put_schedule(NewSchedule("daily", b"{}", NOON + HOUR)))
    assert (changed.definition, changed.next_at, changed.version) == (b"{}", moment(NOON + HOUR), 2)
    assert changed.created_at == daily.created_at < changed.updated_at
    assert await store.run(store.ops.drop_schedule("asleep"))
    assert not await store.run(store.ops.drop_schedule("asleep"))
    assert await store.run(store.ops.schedules()) == [changed]


async def test_a_tick_fires_once(store: World) -> None:
    backends = store.processes(4)
    await store.run(store.ops.put_schedule(NewSchedule("s", b"{}", NOON)))
    for tick in range(NOON, NOON + 5 * HOUR, HOUR):
        fired = await asyncio.gather(
            *(backend.run(backend.ops.fire("s", tick, tick + HOUR)) for backend in backends)
        )
        assert sorted(fired) == [False, False, False, True]
    (schedule,) = await store.run(store.ops.schedules())
    assert (schedule.next_at, schedule.last_at) == (
        moment(NOON + 5 * HOUR),
        moment(NOON + 4 * HOUR),
    )
    assert schedule.version == 1
    assert not await store.run(store.ops.fire("nobody", NOON, None))
    assert await store.run(store.ops.fire("s", NOON + 5 * HOUR, None))
    (ended,) = await store.run(store.ops.schedules())
    assert ended.next_at is None


async def test_schedules_that_cannot_be_stored(store: World) -> None:
    for bad in (
        NewSchedule("", b"{}"),
        NewSchedule("a b", b"{}"),
        NewSchedule("a" * 201, b"{}"),
        NewSchedule("a", b" " * (limits.SCHEDULE_BYTES + 1)),
    ):
        with pytest.raises(InvalidSchedule):
            await store.run(store.ops.put_schedule(bad))
    assert await store.run(store.ops.schedules()) == []
