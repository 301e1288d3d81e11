"""Settings of the store: one value for every process, changed by compare and set."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fairlane.core.backend import Backend
from fairlane.core.errors import (
    InvalidInput,
    InvalidPriority,
    InvalidRetention,
    InvalidSetting,
    SettingsConflict,
)
from fairlane.core.history import history_of
from fairlane.core.model import Ask, TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.priority import Aging
from fairlane.core.retention import Retention
from fairlane.core.states import State
from fairlane.core.store_settings import NAMES, StoreSettings
from fairlane.core.submission import new_task
from fairlane.maintenance import Maintenance
from tests.fixtures.stores import World

DAY = 86_400.0


async def change(store: World, version: int | None = None, **changes: Any) -> StoreSettings:
    return await store.run(store.ops.change_settings(changes, version=version))


async def settings(store: World) -> StoreSettings:
    return await store.run(store.ops.settings())


async def names(backend: Backend, worker: str, request: str, slots: int = 10) -> list[str]:
    grant = await backend.run(backend.ops.claim(Ask(worker, request, slots)))
    return [task.payload.decode().split('"')[3] for task in grant.tasks]


async def submit(store: World, name: str, priority: str | int) -> str:
    return await store.submit(payload={"name": name}, priority=priority)


async def test_what_is_not_set_is_the_default(store: World) -> None:
    default = StoreSettings(
        Aging(low_to_medium=600.0, medium_to_high=1200.0, high_to_critical=None),
        Retention(DAY, 7 * DAY, 7 * DAY, 30 * DAY, DAY, DAY),
    )
    assert await settings(store) == default
    assert default.version == 0
    await change(store, completed=3 * DAY)
    assert (await settings(store)).aging == default.aging
    assert (await settings(store)).retention == Retention(completed=3 * DAY)


async def test_every_setting_can_be_set_and_is_seen_by_others(store: World) -> None:
    wanted = {name: 100.0 + number for number, name in enumerate(NAMES)}
    answer = await store.run(store.ops.change_settings(wanted))
    kept = Retention(103, 104, 105, 106, 107, 108)
    assert answer == StoreSettings(Aging(100, 101, 102), kept, 109, version=1)
    for backend in store.processes(2):
        assert await backend.run(backend.ops.settings()) == answer
    assert await change(store, low_to_medium=None) == StoreSettings(
        Aging(None, 101, 102), kept, 109, version=2
    )
    assert (await settings(store)).version == 2


async def test_a_stale_version_is_refused_and_changes_nothing(store: World) -> None:
    first = await change(store, 0, completed=2 * DAY)
    second = await change(store, first.version, failed=2 * DAY)
    assert (first.version, second.version) == (1, 2)
    for stale in (0, 1, 3, -1):
        with pytest.raises(SettingsConflict, match=rf"version 2, not {stale}\b"):
            await change(store, stale, completed=5 * DAY)
    assert await settings(store) == second
    assert second.retention == Retention(completed=2 * DAY, failed=2 * DAY)


async def test_a_change_that_was_made_is_not_made_again(store: World) -> None:
    """A request whose answer got lost is repeated with the version that it had."""
    first = await change(store, 0, completed=2 * DAY)
    assert await change(store, 0, completed=2 * DAY) == first
    assert await change(store, completed=2 * DAY, failed=7 * DAY) == first
    assert await change(store) == first


async def test_of_many_who_change_one_version_one_succeeds(store: World) -> None:
    async def attempt(backend: Backend, days: int) -> bool:
        try:
            op = backend.ops.change_settings({"completed": days * DAY}, version=0)
            await backend.run(op)
        except SettingsConflict:
            return False
        return True

    attempts = [attempt(each, n + 2) for n, each in enumerate(store.processes(8))]
    made = await asyncio.gather(*attempts)
    assert made.count(True) == 1
    found = await settings(store)
    assert (found.version, found.retention.completed) == (1, (made.index(True) + 2) * DAY)


async def test_changes_without_a_version_are_all_made(store: World) -> None:
    backends = store.processes(len(NAMES))
    wanted = {name: 50.0 + number for number, name in enumerate(NAMES)}
    await asyncio.gather(
        *(
            backend.run(backend.ops.change_settings({name: seconds}))
            for backend, (name, seconds) in zip(backends, wanted.items(), strict=True)
        )
    )
    found = await settings(store)
    kept = Retention(53, 54, 55, 56, 57, 58)
    assert found == StoreSettings(Aging(50, 51, 52), kept, 59, version=len(wanted))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"complete": 5.0}, InvalidSetting),
        ({"version": 5}, InvalidSetting),
        ({"": 5}, InvalidSetting),
        ({"completed": 0}, InvalidRetention),
        ({"completed": 0.5}, InvalidRetention),
        ({"dead_letter": -1}, InvalidRetention),
        ({"failed": None}, InvalidRetention),
        ({"journal": float("nan")}, InvalidRetention),
        ({"workers": float("inf")}, InvalidRetention),
        ({"cancelled": "7d"}, InvalidRetention),
        ({"cancelled": True}, InvalidRetention),
        ({"requeue_spread": -1}, InvalidSetting),
        ({"requeue_spread": 3600.5}, InvalidSetting),
        ({"requeue_spread": float("nan")}, InvalidSetting),
        ({"requeue_spread": "30"}, InvalidSetting),
        ({"requeue_spread": None}, InvalidSetting),
        ({"low_to_medium": -1}, InvalidPriority),
        ({"medium_to_high": float("nan")}, InvalidPriority),
        ({"high_to_critical": 1e12}, InvalidPriority),
        ({"low_to_medium": "soon"}, InvalidPriority),
        ({"low_to_medium": True}, InvalidPriority),
    ],
)
async def test_bad_values_change_nothing(
    store: World, changes: dict[str, Any], error: type[Exception]
) -> None:
    before = await change(store, low_to_medium=30.0)
    (name,) = changes
    with pytest.raises(error, match=name or "''"):
        await store.run(store.ops.change_settings({"high_to_critical": 60.0, **changes}))
    assert await settings(store) == before


async def test_the_next_claim_goes_by_the_new_aging(store: World) -> None:
    """In the process that changes it, and in one that has claimed before."""
    worker = await store.worker()
    for name in ("low 1", "low 2", "low 3", "low 4"):
        await submit(store, name, 2)
    await store.advance(60)
    one, other = store.processes(2)
    for number in (1, 2, 3, 4):
        await submit(store, f"medium {number}", 5)
    assert await names(one, worker, "a", 1) == ["medium 1"]
    assert await names(other, worker, "b", 1) == ["medium 2"]
    await one.run(one.ops.change_settings({"low_to_medium": 30.0}))
    assert await names(other, worker, "c", 1) == ["low 1"]
    assert await names(one, worker, "d", 1) == ["low 2"]
    await other.run(other.ops.change_settings({"low_to_medium": 90.0}))
    assert await names(one, worker, "e", 1) == ["medium 3"]
    assert await names(other, worker, "f") == ["medium 4", "low 3", "low 4"]


async def test_the_order_goes_back_when_the_setting_does(store: World) -> None:
    worker = await store.worker()
    await submit(store, "old", 2)
    await store.advance(600)
    await submit(store, "new", 5)
    await change(store, low_to_medium=None)
    assert await names(store.backend, worker, "a", 1) == ["new"]
    await submit(store, "newer", 5)
    await change(store, low_to_medium=600.0)
    assert await names(store.backend, worker, "b") == ["old", "newer"]


async def test_nothing_is_changed_if_one_value_is_bad(store: World) -> None:
    before = await change(store, completed=5.0)
    for name, bad in [
        *(("failed", 0.0), ("low_to_medium", -1.0), ("requeue_spread", -1.0), ("unknown", 5.0))
    ]:
        with pytest.raises(InvalidInput, match=name):
            await store.run(store.ops.change_settings({"completed": 6.0, name: bad}))
    assert await settings(store) == before


async def test_due_tasks_go_by_the_new_aging(store: World) -> None:
    """Tasks that a claim finds due are ordered like those that are queued."""
    worker = await store.worker()
    await store.submit(payload={"name": "low"}, priority=2, delay_seconds=10)
    await store.submit(payload={"name": "medium"}, priority=5, delay_seconds=60)
    await store.submit(payload={"name": "other"}, priority=5, delay_seconds=60)
    assert await names(store.backend, worker, "a") == []
    await store.advance(70)
    await change(store, low_to_medium=30.0)
    assert await names(store.backend, worker, "b", 1) == ["low"]
    await change(store, low_to_medium=None, medium_to_high=5.0)
    await submit(store, "high", 8)
    assert await names(store.backend, worker, "c") == ["medium", "other", "high"]


async def test_limited_types_go_by_the_new_aging(store: World) -> None:
    worker = await store.worker()
    await store.run(store.ops.limit("work", concurrency=1))
    await submit(store, "old", 2)
    await store.advance(60)
    await submit(store, "new", 5)
    await change(store, low_to_medium=30.0)
    assert await names(store.backend, worker, "a") == ["old"]


async def test_a_repeated_claim_is_in_the_order_of_now(store: World) -> None:
    """The worker did not hear the answer: the same tasks, whatever was changed meanwhile."""
    worker = await store.worker()
    await submit(store, "old", 2)
    await store.advance(60)
    await submit(store, "new", 5)
    assert await names(store.backend, worker, "a") == ["new", "old"]
    await change(store, low_to_medium=30.0)
    assert sorted(await names(store.backend, worker, "a")) == ["new", "old"]


async def test_tasks_and_positions_show_the_new_aging_everywhere(store: World) -> None:
    low = await store.submit(priority=2)
    await store.advance(60)
    one, other = store.processes(2)
    await store.submit(priority=5)

    async def seen(backend: Backend) -> tuple[int, int]:
        (task,) = await backend.run(backend.ops.get([low]))
        (position,) = await backend.run(backend.ops.position([low]))
        assert task is not None
        assert position is not None
        return task.effective_priority, position.position

    assert [await seen(one), await seen(other)] == [(2, 2), (2, 2)]
    await one.run(one.ops.change_settings({"low_to_medium": 30.0}))
    assert [await seen(one), await seen(other)] == [(5, 1), (5, 1)]
    await one.run(one.ops.change_settings({"low_to_medium": 90.0}))
    assert [await seen(other), await seen(one)] == [(2, 2), (2, 2)]


async def test_a_claim_counts_the_level_that_the_setting_gives(store: World) -> None:
    """Claims are counted by what age has made of them."""
    await change(store, low_to_medium=30.0)
    await store.submit(priority=2)
    await store.advance(60)
    await store.claim(await store.worker())
    facts = await store.run(store.ops.facts())
    assert "5" in [tally.key.label for tally in facts.tallies]


@pytest.mark.local
async def test_two_maintainers_keep_what_the_store_says(store: World) -> None:
    """Whoever is elected: they have no opinion of their own."""
    worker = await store.worker()
    kept, failed = await store.submit(), await store.submit(max_retries=0)
    await store.claim_and_settle(worker)
    await store.claim_and_settle(worker, Failed(TaskError("no", retriable=False)))
    await change(store, completed=30 * DAY, failed=60.0, cancelled=60.0, dead_letter=60.0)
    await store.advance(2 * DAY)
    await _prune(store)
    assert await _present(store, [kept, failed]) == [True, False]
    await store.advance(29 * DAY)
    await _prune(store)
    assert await _present(store, [kept, failed]) == [False, False]


@pytest.mark.local
async def test_a_maintainer_hears_of_a_change(store: World) -> None:
    worker = await store.worker()
    done = await store.submit()
    await store.claim_and_settle(worker)
    await store.advance(3600)
    (backend,) = store.processes(1)
    keeper = Maintenance(backend, "keeper")
    await keeper._prune()
    assert await _present(store, [done]) == [True]
    await change(store, completed=1.0)
    await keeper._prune()
    assert await _present(store, [done]) == [False]


async def reap(store: World) -> None:
    """What the maintenance does when it has seen twice that a worker is silent."""
    keeper = store.keeper()
    await keeper.round()
    await keeper.round()


@pytest.mark.local
async def test_what_a_dead_worker_had_started_comes_back_over_the_spread(store: World) -> None:
    """What it had not started, and so done no harm with, comes back at once."""
    await change(store, requeue_spread=100.0)
    await store.keeper("an earlier one").round()
    begun = await store.submit_all([new_task("work") for _ in range(40)])
    waiting = await store.submit_all([new_task("work") for _ in range(3)])
    last = await store.submit(max_retries=0)
    before = {task_id: (await store.task(task_id)).ready_at for task_id in begun}
    dying = await store.worker(lease=30.0, capacity=100)
    for task in await store.claim(dying, 100):
        if task.task_id not in waiting:
            await store.start(task)
    await store.advance(60)
    await reap(store)

    tasks = [await store.task(task_id) for task_id in begun]
    assert {(task.status, task.retry_count) for task in tasks} == {(State.RETRYING, 1)}
    assert {task.attempts[0].outcome for task in tasks} == {"lost"}
    assert {task.error.code for task in tasks if task.error} == {"WORKER_LOST"}
    pauses = [(task.next_retry_at - task.updated_at).total_seconds() for task in tasks]  # type: ignore[operator]
    assert all(0 <= pause <= 100 for pause in pauses)
    assert max(pauses) - min(pauses) > 50
    assert [str(step.state) for step in history_of(tasks[0])] == ["queued", "executing", "retrying"]
    returned = [await store.task(task_id) for task_id in waiting]
    assert {(task.status, task.returns) for task in returned} == {(State.QUEUED, 1)}
    assert (await store.task(last)).status is State.DEAD_LETTER

    heir = await store.worker(capacity=100)
    early = {task.task_id for task in await store.claim(heir, 100)}
    assert early.issuperset(waiting)
    assert len(early) < len(begun)
    newer = await store.submit()
    await store.advance(100)
    late = [task.task_id for task in await store.claim(heir, 100)]
    assert sorted([*late, *early]) == sorted([*begun, *waiting, newer])
    assert late[-1] == newer, "they have kept their places"
    again = await store.task(late[0])
    assert (again.attempt, again.ready_at) == (2, before[late[0]])
    history = [str(step.state) for step in history_of(again)]
    assert history == ["queued", "executing", "retrying", "queued", "executing"]


@pytest.mark.local
async def test_a_maintainer_hears_of_a_new_spread(store: World) -> None:
    await change(store, requeue_spread=3600.0)
    keeper = store.keeper("the first one")
    await keeper.round()
    states = []
    for spread in (0.0, 3600.0):
        await change(store, requeue_spread=spread)
        task_id = await store.submit()
        await store.start(await store.claim_one(await store.worker(lease=30.0)))
        await store.advance(60)
        await reap(store)
        states.append(await store.state(task_id))
        await store.run(store.ops.cancel([task_id]))
    assert states == [State.QUEUED, State.RETRYING]


async def _prune(store: World) -> None:
    for number, backend in enumerate(store.processes(2)):
        await Maintenance(backend, f"maintainer {number}")._prune()


async def _present(store: World, task_ids: Sequence[str]) -> list[bool]:
    return [task is not None for task in await store.run(store.ops.get(task_ids))]
