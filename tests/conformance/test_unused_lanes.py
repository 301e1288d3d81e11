"""Lanes that nothing uses are dropped, whatever else goes on; what they counted stays."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.breaker import Breaker
from fairlane.core.errors import TooManyLanes
from fairlane.core.facts import Facts, sample_of
from fairlane.core.flow import Flow, Op
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, NewWorker
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tally import census
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

LOOKS = 3
"""So often does maintenance look: an engine may take two looks to drop a lane."""


async def facts(store: World) -> Facts:
    return await store.run(store.ops.facts())


async def types(store: World) -> set[str]:
    return {lane.type for lane in (await facts(store)).lanes.values()}


async def submit_and_delete(store: World, *names: str, **options: Any) -> None:
    """Use lanes once."""
    ids = await store.submit_all([new_task(name, **options) for name in names])
    await store.run(store.ops.cancel(ids))
    deleted = await store.run(store.ops.delete(ids))
    assert all(each.applied for each in deleted)


async def use(backend: Backend, name: str) -> None:
    """Use a lane once, and remember it."""
    (task,) = await backend.run(backend.ops.submit([new_task(name)]))
    await backend.run(backend.ops.cancel([task.task_id]))
    await backend.run(backend.ops.delete([task.task_id]))


async def drop(store: World, backend: Backend | None = None) -> int:
    backend = backend or store.backend
    return sum([await backend.run(backend.ops.drop_lanes()) for _ in range(LOOKS)])


async def rest(store: World) -> int:
    """Let maintenance see which lanes are unused, and look again when they have been for long."""
    assert await drop(store) == 0
    await store.advance(limits.LANE_SECONDS + 1)
    return await drop(store)


async def test_a_lane_goes_when_nothing_has_used_it_for_a_while(store: World) -> None:
    await submit_and_delete(store, "old", "older")
    await store.submit("kept")
    assert await drop(store) == 0
    await store.advance(limits.LANE_SECONDS - 10)
    assert await drop(store) == 0
    await store.advance(11)
    assert await drop(store) == 2
    assert await types(store) == {"kept"}
    assert await drop(store) == 0


async def test_a_lane_that_was_used_meanwhile_waits_again(store: World) -> None:
    await submit_and_delete(store, "a")
    await store.submit("kept")
    assert await drop(store) == 0
    await store.advance(limits.LANE_SECONDS + 1)
    await submit_and_delete(store, "a")
    assert await drop(store) == 0
    await store.advance(limits.LANE_SECONDS + 1)
    assert await drop(store) == 1


async def test_a_lane_stays_while_it_has_a_task_in_any_state(store: World) -> None:
    worker = await store.worker()
    await store.submit("completed")
    await store.claim_and_settle(worker)
    await store.submit("executing")
    await store.claim_one(worker)
    await store.submit("queued")
    await store.submit("scheduled", delay_seconds=2 * limits.LANE_SECONDS)
    cancelled = await store.submit("cancelled")
    await store.run(store.ops.cancel([cancelled]))
    await submit_and_delete(store, "gone")
    await store.submit("newest")
    assert await rest(store) == 1
    kept = {"completed", "executing", "queued", "scheduled", "cancelled", "newest"}
    assert await types(store) == kept


async def test_a_lane_stays_while_something_is_set_for_it(store: World) -> None:
    names = ["paused", "rated", "limited", "broken", "timed", "free"]
    await submit_and_delete(store, *names)
    await submit_and_delete(store, "queued", queue="held")
    await submit_and_delete(store, "served")
    await store.submit("newest")
    ops, run = store.ops, store.run
    await run(ops.pause(paused=True, type="paused"))
    await run(ops.pause(paused=True, queue="held"))
    await run(ops.limit("rated", rate=1))
    await run(ops.limit("limited", concurrency=1))
    await run(ops.limit("broken", breaker=Breaker(failures=2, within=60, cooldown=60)))
    await run(ops.limit("timed", timeout=5))
    await run(ops.limit("free", rate=0))
    await run(
        ops.register(
            NewWorker(new_id(), types=frozenset({"served"}), lease=limits.LEASE_SECONDS_LONGEST)
        )
    )
    assert await rest(store) == 1
    assert await types(store) == {*names[:-1], "queued", "served", "newest"}
    await run(ops.pause(paused=False, type="paused"))
    await run(ops.pause(paused=False, queue="held"))
    assert await rest(store) == 2


async def test_a_lane_of_a_run_that_lingers_stays(store: World) -> None:
    worker = await store.worker(lease=limits.LEASE_SECONDS_LONGEST)
    task_id = await store.submit("lingers")
    task = await store.claim_one(worker)
    await store.start(task)
    await store.run(store.ops.cancel([task_id]))
    await store.run(store.ops.delete([task_id]))
    await store.submit("newest")
    assert await rest(store) == 0
    await store.settle(task)
    assert await rest(store) == 1


async def test_totals_stay(store: World) -> None:
    worker = await store.worker()
    ids = await store.submit_all([new_task(f"t{n}", priority=n) for n in range(5)])
    for _ in range(5):
        await store.claim_and_settle(worker)
    await store.run(store.ops.delete(ids))
    await store.submit("newest")
    before = await facts(store)
    assert await rest(store) == 5
    after = await facts(store)
    assert sample_of(after.tallies, 0) == sample_of(before.tallies, 0)
    assert census(after.tallies) == census(before.tallies)
    assert {key.lane for key, *_ in after.tallies} == {0, *after.lanes}
    # The next ones are added to them.
    await submit_and_delete(store, "t0", "t9")
    await store.submit("newest-of-all")
    before = await facts(store)
    assert await rest(store) == 2
    assert sample_of((await facts(store)).tallies, 0) == sample_of(before.tallies, 0)


async def test_what_is_left_of_a_lane_is_nothing(store: World) -> None:
    await store.submit("newest")
    await submit_and_delete(store, "warm-up")
    await store.submit("newest-of-all")
    await rest(store)
    before = await store.leftovers()
    await submit_and_delete(store, *(f"t{n}" for n in range(20)), priority=7)
    await store.submit("newest-of-all")
    await rest(store)
    after = await store.leftovers()
    grown = {name: n - before.get(name, 0) for name, n in after.items()}
    assert all(n <= 3 for name, n in grown.items() if "journal" not in name), grown


async def test_a_process_that_remembers_a_dropped_lane_gets_another(store: World) -> None:
    here, there = store.backend, store.processes(1)[0]
    await submit_and_delete(store, "a")
    await store.submit("newest")
    await use(there, "a")
    assert await rest(store) == 1
    tasks = [new_task("a"), new_task("a", idempotency_key="k"), new_task("b")]
    for backend in (there, here):
        for task in tasks:
            (accepted,) = await backend.run(backend.ops.submit([task]))
            assert accepted.task_id == task.task_id
    worker = await store.worker()
    claimed = await store.claim(worker, types=frozenset({"a", "b"}))
    assert [task.type for task in claimed] == ["a", "a", "b"]
    for backend in (there, here):
        found = await backend.run(backend.ops.get([task.task_id for task in tasks]))
        assert [task.type for task in found if task is not None] == ["a", "a", "b"]


async def test_a_lane_is_used_between_two_looks(store: World) -> None:
    there = store.processes(1)[0]
    await submit_and_delete(store, "a", "b")
    await store.submit("newest")
    for name in ("a", "b"):
        await use(there, name)
    assert await drop(store) == 0
    await store.advance(limits.LANE_SECONDS + 1)
    await store.run(store.ops.drop_lanes())
    await there.run(there.ops.submit([new_task("a"), new_task("b", idempotency_key="k")]))
    for _ in range(LOOKS):
        assert await store.run(store.ops.drop_lanes()) == 0
        await store.advance(limits.LANE_SECONDS + 1)
    claimed = await store.claim(await store.worker())
    assert sorted(task.type for task in claimed) == ["a", "b", "newest"]


async def test_a_number_is_not_used_for_another_lane(store: World) -> None:
    used: dict[int, str] = {}
    for n in range(4):
        await submit_and_delete(store, f"a{n}", f"b{n}")
        lanes = (await facts(store)).lanes
        for lane in lanes.values():
            assert used.setdefault(lane.id, lane.type) == lane.type
        await rest(store)
    assert len(used) == 8


async def test_events_of_a_dropped_lane_can_be_read(store: World) -> None:
    await submit_and_delete(store, "gone")
    await store.submit("newest")
    await rest(store)
    for backend in (store.backend, store.processes(1)[0]):
        events = (await backend.run(backend.ops.events(None, 100))).events
        assert {event.verb for event in events} == {"submit", "cancel", "delete"}
        assert {event.type for event in events} <= {"gone", "newest", None}


async def test_lanes_that_are_used_up_are_free_again(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LANES", 10)
    await submit_and_delete(store, *(f"t{n}" for n in range(10)))
    with pytest.raises(TooManyLanes):
        await store.submit("mine")
    assert await drop(store) == 0
    await store.advance(limits.LANE_SECONDS_CROWDED + 1)
    assert await drop(store) == 9
    await store.submit("mine")


async def test_maintenance_drops_them(store: World) -> None:
    await submit_and_delete(store, "a")
    await store.submit("newest")
    keeper = store.keeper()
    for seconds in (0.0, limits.LANE_SECONDS + 1, 100.0, 100.0):
        await store.advance(seconds)
        await keeper.round()
        await keeper.round()  # after a step of the clock, the first one spares
    assert await types(store) == {"newest"}


class Died(Exception):
    """The process is gone."""


def dying(op: Op[int], calls: int) -> Op[int]:
    """The same operation by a process that dies after some calls to the store."""

    def cut() -> Flow[int]:
        flow = op.flow()
        reply = None
        try:
            for _ in range(calls):
                reply = yield flow.send(reply)
        except StopIteration as stop:
            return int(stop.value)
        finally:
            flow.close()
        raise Died

    return Op(op.name, op.mode, cut)


async def test_maintenance_that_dies_on_the_way(store: World) -> None:
    await submit_and_delete(store, *(f"t{n}" for n in range(8)))
    await store.submit("newest")
    assert await drop(store) == 0
    await store.advance(limits.LANE_SECONDS + 1)
    before = await facts(store)
    calls = finished = 0
    while finished < LOOKS:
        calls += 1
        try:
            await store.run(dying(store.ops.drop_lanes(), calls))
            finished += 1
        except Died:
            pass
        now = await facts(store)
        assert sample_of(now.tallies, 0) == sample_of(before.tallies, 0)
        assert {key.lane for key, *_ in now.tallies} <= {0, *now.lanes}
    assert await types(store) == {"newest"}
    await store.submit("t0")
    assert [task.type for task in await store.claim(await store.worker())] == ["newest", "t0"]


LONGEST_RACE = 1_000
"""Submissions of each submitter; they end when a lane was dropped meanwhile."""


@pytest.mark.parametrize("maintainers", [1, 2])
async def test_submissions_race_with_maintenance(
    store: World, monkeypatch: pytest.MonkeyPatch, maintainers: int
) -> None:
    """Nothing is lost: every task that was accepted can be claimed, and the counters agree."""
    monkeypatch.setattr(limits, "LANE_SECONDS", 0.0)
    await store.submit("newest")
    submitters, droppers = store.processes(3), store.processes(maintainers)
    accepted: list[str] = []
    finished = threading.Event()
    dropped: list[int] = []

    def submit(backend: Backend, number: int) -> None:
        for n in range(LONGEST_RACE):
            if n >= 25 and any(dropped):
                return
            key = f"{number}-{n}" if n % 3 == 0 else None
            tasks = [new_task(f"t{n % 4}", idempotency_key=key), new_task(f"u{n % 2}", priority=9)]
            answers = backend.run_sync(backend.ops.submit(tasks))
            ids = [answer.task_id for answer in answers]
            if n % 2:
                accepted.extend(ids)
            else:
                backend.run_sync(backend.ops.cancel(ids))
                backend.run_sync(backend.ops.delete(ids))

    def maintain(backend: Backend) -> None:
        while not finished.is_set():
            dropped.append(backend.run_sync(backend.ops.drop_lanes()))

    async def submit_all() -> None:
        try:
            await asyncio.gather(
                *(asyncio.to_thread(submit, each, n) for n, each in enumerate(submitters))
            )
        finally:
            finished.set()

    worker = await store.worker()

    async def work() -> None:
        """Empty the lanes again and again."""
        while True:
            grant = await store.run(store.ops.claim(Ask(worker, new_id(), 100)))
            for task in grant.tasks:
                if task.type != "newest":
                    await store.settle(task)  # too late if its submitter has cancelled it
                    await store.run(store.ops.delete([task.task_id]))
                    done.add(task.task_id)
            if not grant.tasks and finished.is_set():
                return

    done: set[str] = set()
    await asyncio.gather(
        submit_all(), work(), *(asyncio.to_thread(maintain, each) for each in droppers)
    )
    assert done.issuperset(accepted)
    assert any(dropped)
    assert await store.census() == {State.EXECUTING: 1}
