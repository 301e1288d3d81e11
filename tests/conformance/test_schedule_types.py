"""A schedule of a type that nobody handles is refused, unless its maker says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.core.definitions import Definition
from fairlane.core.errors import UnknownType
from fairlane.core.ids import new_id
from fairlane.core.model import NewWorker
from fairlane.core.recurrence import every
from fairlane.core.schedules import new_schedule
from fairlane.core.submission import new_task
from tests.fixtures.stores import World


async def put(store: World, type: str, schedule_id: str = "hourly", **options: Any) -> None:
    new = new_schedule(schedule_id, every(3600), new_task(type), note=options.pop("note", ""))
    options = {"allow_unknown_type": False, **options}
    await store.run(store.ops.put_schedules([new], **options))


async def is_stored(store: World, schedule_id: str = "hourly") -> bool:
    (found,) = await store.run(store.ops.schedules([schedule_id]))
    return found is not None


async def test_nothing_is_stored_and_the_error_says_what_to_do(store: World) -> None:
    await store.run(store.ops.publish([Definition(type="report")]))
    with pytest.raises(UnknownType) as caught:
        await put(store, "repotr")
    assert not await is_stored(store)
    for advice in ("Did you mean report?", "start a worker", "allow_unknown_type"):
        assert advice in str(caught.value)


async def test_a_definition_is_enough(store: World) -> None:
    await store.run(store.ops.publish([Definition(type="report")]))
    await put(store, "report")
    assert await is_stored(store)


async def test_a_worker_that_lives_is_enough(store: World) -> None:
    worker = NewWorker(new_id(), types=frozenset({"report"}))
    worker_id = await store.run(store.ops.register(worker))
    await put(store, "report")
    assert await is_stored(store)
    await store.run(store.ops.forget(worker_id))
    with pytest.raises(UnknownType):
        await put(store, "report", "another")
    assert not await is_stored(store, "another")


async def test_built_in_handlers_are_known(store: World) -> None:
    await put(store, "webhook")
    assert await is_stored(store)


async def test_who_insists_may_store_it_and_change_it_afterwards(store: World) -> None:
    await put(store, "later", allow_unknown_type=True)
    await put(store, "later", note="for the next release")
    (found,) = await store.run(store.ops.schedules(["hourly"]))
    assert found is not None
    assert found.note == "for the next release"
    with pytest.raises(UnknownType):
        await put(store, "latter")


async def test_code_declares_before_its_workers_have_registered(store: World) -> None:
    await put(store, "work", owner="shop")
    assert await is_stored(store)
