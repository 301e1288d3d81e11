"""Finding and listing tasks by filters, a page at a time, and counting them."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from fairlane.core import limits
from fairlane.core.errors import InvalidCursor, InvalidFilter
from fairlane.core.filters import EVERYTHING, Filter, Total, new_filter
from fairlane.core.model import Task, TaskError, microseconds_of
from fairlane.core.outcomes import Completed, Failed, Outcome
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, get_all


async def find_all(store: World, filter: Filter, limit: int = limits.PAGE) -> list[str]:
    """Every task that a filter admits, by as many pages as it takes."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.run(store.ops.find(filter, limit, cursor))
        assert len(page.task_ids) <= limit
        found += page.task_ids
        cursor = page.cursor
        if cursor is None:
            return found


async def a_mixed_lot(store: World) -> list[Task]:
    """Tasks of many kinds and in every state, as they stand."""
    rng = random.Random(5)
    workers = [await store.worker(lease=80_000) for _ in range(2)]
    ids: list[str] = []
    for _ in range(6):
        ids += await store.submit_all(
            [
                new_task(
                    rng.choice(["mail", "video"]),
                    queue=rng.choice(["default", "slow"]),
                    priority=rng.randrange(11),
                    tags={"team": rng.choice(["red", "blue"]), "n": "1"},
                    max_retries=rng.choice([0, 3]),
                    delay_seconds=rng.choice([0, 0, 0, 5_000]),
                )
                for _ in range(12)
            ]
        )
        await store.advance(60)
        claimed = await store.claim(rng.choice(workers), 8)
        outcomes: list[Outcome] = [
            Completed(b"1"),
            Failed(TaskError("x")),
            Failed(TaskError("x", retriable=False)),
        ]
        for task in claimed[1:]:
            await store.settle(task, rng.choice(outcomes))
        await store.run(store.ops.cancel([rng.choice(ids)]))
    tasks = [task for task in await store.run(store.ops.get(ids)) if task is not None]
    assert {task.status for task in tasks} >= set(State) - {State.RETRYING}
    return tasks


def expected(tasks: list[Task], filter: Filter) -> list[str]:
    """What the filter means, said differently."""

    def admitted(task: Task) -> bool:
        created = microseconds_of(task.created_at)
        ended = None if task.completed_at is None else microseconds_of(task.completed_at)
        return all(
            (
                not filter.states or task.status in filter.states,
                not filter.types or task.type in filter.types,
                not filter.queues or task.queue in filter.queues,
                not filter.levels or task.priority in filter.levels,
                all(task.tags.get(name) == value for name, value in filter.tags.items()),
                filter.worker_id in {None, task.assigned_worker_id},
                filter.since is None or created >= filter.since,
                filter.until is None or created < filter.until,
                filter.ended_before is None or (ended or filter.ended_before) < filter.ended_before,
            )
        )

    return sorted((task.task_id for task in tasks if admitted(task)), reverse=True)


async def test_filters_admit_what_they_say(store: World) -> None:
    tasks = await a_mixed_lot(store)
    middle = sorted(task.created_at for task in tasks)[len(tasks) // 2]
    ended = [task.completed_at for task in tasks if task.completed_at]
    worker = next(task.assigned_worker_id for task in tasks if task.assigned_worker_id)
    filters = [
        EVERYTHING,
        *(new_filter(status=state) for state in State),
        new_filter(status=["failed", "dead_letter", "queued"]),
        new_filter(status=list(State)),
        new_filter(type="mail"),
        new_filter(queue="slow", type=["mail", "video"]),
        new_filter(priority=["low", 7, 8]),
        new_filter(tags={"team": "red"}),
        new_filter(tags={"team": "red", "n": "1"}, status="queued"),
        new_filter(tags={"team": "green"}),
        new_filter(worker=worker),
        new_filter(worker=worker, status="executing"),
        new_filter(since=middle),
        new_filter(until=middle, type="video"),
        new_filter(since=middle, until=middle + timedelta(microseconds=1)),
        new_filter(ended_before=sorted(ended)[len(ended) // 2]),
        new_filter(type="nobody"),
        new_filter(queue="nobody", status="queued"),
        new_filter(worker="nobody"),
    ]
    sizes = set()
    for filter in filters:
        wanted = expected(tasks, filter)
        assert await find_all(store, filter) == wanted, filter
        assert await find_all(store, filter, limit=5) == wanted, filter
        sizes.add(len(wanted))
        total = await store.run(store.ops.total(filter))
        assert total == Total(len(wanted), exact=True), filter
    assert len(sizes) > 8


async def test_pages_of_tasks(store: World) -> None:
    ids = await store.submit_all([new_task("t", {"n": n}) for n in range(25)])
    first = await store.run(store.ops.page(EVERYTHING, 10))
    assert [task.task_id for task in first.tasks] == ids[:-11:-1]
    assert first.tasks[0].payload == b'{"n":24}'
    assert first.next_cursor is not None
    # What comes meanwhile does not shift the pages.
    await store.submit()
    second = await store.run(store.ops.page(EVERYTHING, 10, first.next_cursor))
    assert [task.task_id for task in second.tasks] == ids[14:4:-1]
    third = await store.run(store.ops.page(EVERYTHING, 10, second.next_cursor))
    assert [task.task_id for task in third.tasks] == ids[4::-1]


async def test_an_empty_store(store: World) -> None:
    page = await store.run(store.ops.page(EVERYTHING, 10))
    assert (page.tasks, page.next_cursor) == ([], None)
    assert await store.run(store.ops.total(EVERYTHING)) == Total(0, exact=True)


async def test_what_cannot_be_asked(store: World) -> None:
    for cursor in ("", "t", "x" * 33, "t" + "g" * 32, "t" + "0" * 31):
        with pytest.raises(InvalidCursor):
            await store.run(store.ops.find(EVERYTHING, 10, cursor))
    for limit in (0, -1, limits.PAGE + 1):
        with pytest.raises(InvalidFilter):
            await store.run(store.ops.find(EVERYTHING, limit))


async def test_a_needle_in_a_haystack(store: World) -> None:
    """However few match, all are found, by as many pages as it takes."""
    needle = await store.submit("t", tags={"needle": "yes"})
    for _ in range(2 * limits.SCAN // limits.SUBMIT_BATCH):
        await store.submit_all([new_task("t") for _ in range(limits.SUBMIT_BATCH)])
    assert await find_all(store, new_filter(tags={"needle": "yes"})) == [needle]
    total = await store.run(store.ops.total(EVERYTHING))
    assert total == Total(2 * limits.SCAN + 1, exact=True)


async def test_cancel_replay_and_delete_by_filter(store: World) -> None:
    red = await store.submit_all([new_task("t", tags={"team": "red"}) for _ in range(7)])
    blue = await store.submit_all([new_task("t", tags={"team": "blue"}) for _ in range(3)])
    worker = await store.worker()
    (held,) = await store.claim(worker, 1)
    team = new_filter(tags={"team": "red"})
    waiting = new_filter(status="queued", tags={"team": "red"})
    swept = await store.run(store.ops.cancel_where(waiting))
    assert (swept.matched, swept.applied, swept.cursor) == (6, 6, None)
    assert await store.state(held.task_id) is State.EXECUTING
    swept = await store.run(store.ops.replay_where(team, level=9, reset_retry_count=False))
    assert (swept.matched, swept.applied) == (6, 6)
    again = await store.claim(worker, 10)
    assert {task.level for task in again if task.task_id in red} == {9}
    for task in [held, *again]:
        await store.settle(task)
    swept = await store.run(store.ops.delete_where(new_filter(status="completed", type="t")))
    assert (swept.matched, swept.applied) == (10, 10)
    assert [task for task in await get_all(store.backend, red + blue) if task] == []
    with pytest.raises(InvalidFilter):
        await store.run(store.ops.cancel_where(new_filter(status="completed")))
    with pytest.raises(InvalidFilter):
        await store.run(store.ops.delete_where(new_filter(status=["queued", "executing"])))


async def test_more_than_a_batch_by_filter(store: World) -> None:
    count = limits.BATCH + 100
    await store.submit_all([new_task("t") for _ in range(count)])
    applied, cursor, rounds = 0, None, 0
    while rounds == 0 or cursor is not None:
        swept = await store.run(store.ops.cancel_where(EVERYTHING, cursor))
        applied, cursor, rounds = applied + swept.applied, swept.cursor, rounds + 1
    assert applied == count
    assert await store.census() == {State.CANCELLED: count}
