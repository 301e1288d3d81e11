"""A script holds up everyone: what it looks at is bounded, by number and by weight."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis import Redis

from fairlane.core import limits
from fairlane.core.filters import new_filter
from fairlane.core.ids import new_ids
from fairlane.core.outcomes import Completed
from fairlane.core.retention import DEFAULT, Pruned, Retention
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Mode, Unique
from fairlane.engines.redis.scripts import JOURNAL_BYTES
from tests.conftest import Servers
from tests.fixtures.stores import World, opened, settlement


@pytest.fixture(params=["redis", "valkey"])
async def store(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


async def test_a_search_among_large_payloads_stops_early(store: World) -> None:
    text = "x" * 200_000
    needle = await store.submit("t", {"text": text}, tags={"needle": "yes"})
    await store.submit_all([new_task("t", {"text": text}) for _ in range(150)])
    found: list[str] = []
    cursor, calls = None, 0
    while calls == 0 or cursor is not None:
        page = await store.run(store.ops.find(new_filter(tags={"needle": "yes"}), 10, cursor))
        found, cursor, calls = found + page.task_ids, page.cursor, calls + 1
    assert found == [needle]
    assert calls > 2


async def test_pruning_large_results_takes_several_calls(store: World) -> None:
    worker = await store.worker()
    await store.submit_all([new_task("t") for _ in range(300)])
    claimed = await store.claim(worker, 300)
    result = Completed(b'"' + b"x" * 100_000 + b'"')
    await store.run(store.ops.settle([settlement(task, result) for task in claimed]))
    await store.advance(100)
    pruned: list[Pruned] = []
    while not pruned or pruned[-1].more:
        pruned.append(await store.run(store.ops.prune(Retention(completed=10))))
    assert sum(batch.tasks for batch in pruned) == 300
    assert len(pruned) > 2
    assert await store.census() == {}


async def test_the_journal_is_bounded_by_its_weight(store: World) -> None:
    await store.submit()
    with Redis.from_url(store.url) as client:
        journal = "{fairlane}:journal"
        ((_, fields),) = client.xrange(journal)
        for _ in range(JOURNAL_BYTES // 1_000_000 + 20):
            client.xadd(journal, {b"at": fields[b"at"], b"heavy": b"\0" * 1_000_000}, "0-*")
        before = client.xlen(journal)
        await store.run(store.ops.prune(DEFAULT))
        assert client.xlen(journal) < before
        assert client.memory_usage(journal, samples=0) < 1.02 * JOURNAL_BYTES


@pytest.mark.parametrize("width", [100, limits.DEPENDENCIES])
async def test_as_many_parents_as_there_may_be(store: World, width: int) -> None:
    worker = await store.worker(lease=80_000)
    parents = await store.submit_all([new_task("parent", task_id=each) for each in new_ids(width)])
    count = limits.BATCH_PARENTS // width
    children = [new_task("child", depends_on=parents) for _ in range(count)]
    await store.submit_all(children)
    for _ in range(1_000):
        grant = await store.ask(worker, 500)
        await store.run(store.ops.settle([settlement(task) for task in grant.tasks]))
        if not grant.tasks and grant.next_due_in is None:
            break
    assert await store.census() == {State.COMPLETED: len(parents) + len(children)}


async def test_a_parent_replayed_while_its_end_is_still_being_told(store: World) -> None:
    """It counts as it first ended until all that waited for it know: no child is ever stranded."""
    worker = await store.worker(lease=80_000)
    parent = await store.submit("parent")
    for _ in range(2):
        await store.submit_all([new_task("child", depends_on=[parent]) for _ in range(400)])
    await store.run(store.ops.cancel([parent]))
    await store.run(store.ops.replay([parent]))
    late = await store.submit("late", depends_on=[parent])
    assert await store.state(late) is State.CANCELLED
    await store.claim_and_settle(worker)
    assert await store.claim(worker) == []
    assert await store.census() == {State.COMPLETED: 1, State.CANCELLED: 801}
    after = await store.submit("after", depends_on=[parent])
    assert await store.state(after) is State.QUEUED


async def test_a_batch_in_which_everything_is_doomed_or_replaced(store: World) -> None:
    half = limits.SUBMIT_BATCH // 2
    waiting = [new_task("t", {"n": n}, unique=True) for n in range(half)]
    await store.submit_all(waiting)
    bound = [new_task("bound", depends_on=[task.task_id]) for task in waiting]
    await store.submit_all(bound)
    (failed,) = await store.submit_all([new_task("failed")])
    await store.run(store.ops.cancel([failed]))
    batch = [new_task("t", {"n": n}, unique=Unique(mode=Mode.REPLACE)) for n in range(half)]
    batch += [new_task("doomed", depends_on=[failed]) for _ in range(half)]
    answers = await store.run(store.ops.submit(batch))
    assert [answer.state for answer in answers] == [State.QUEUED] * half + [State.CANCELLED] * half
    assert await store.census() == {State.QUEUED: half, State.CANCELLED: 1 + 3 * half}


async def test_numbers_of_lanes_go_round(store: World) -> None:
    """A record has two bytes for the number of its lane."""
    await store.submit("first")
    with Redis.from_url(store.url) as client:
        client.hset("{fairlane}:meta", "last_lane", 2**16 - 3)
    ids = [await store.submit(f"t{n}") for n in range(4)]
    numbers = {lane.type: lane.id for lane in (await store.run(store.ops.facts())).lanes.values()}
    assert numbers == {"first": 1, "t0": 2**16 - 2, "t1": 2**16 - 1, "t2": 2, "t3": 3}
    claimed = await store.claim(await store.worker(), types=frozenset({f"t{n}" for n in range(4)}))
    assert [task.task_id for task in claimed] == ids
