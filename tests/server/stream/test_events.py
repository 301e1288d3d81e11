"""Live events on every engine: what is told, in which order, and that nothing is missed."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

from fairlane.core.model import Beat, Report, TaskError, WorkerStatus
from fairlane.core.outcomes import Failed, Released, Snoozed
from fairlane.core.recurrence import every
from fairlane.core.retention import Retention
from fairlane.core.schedules import new_schedule
from fairlane.core.submission import new_task
from tests.server.kit import Api, serving
from tests.server.stream.kit import listening

BROKEN = Failed(TaskError("broken", "ValueError"))


async def test_the_life_of_a_task(served: Api) -> None:
    world = served.world
    async with listening(served) as listener:
        worker = await world.worker()
        task_id = await world.submit("email", queue="mail", priority="high", max_retries=1)
        task = await world.claim_one(worker)
        await world.start(task)
        await world.settle(task, BROKEN, seconds=0.25)
        await world.advance(600)
        task = await world.claim_one(worker)
        await world.settle(task, BROKEN, seconds=0.5)
        await listener.until("task.dead_letter")

    assert [type for type, who in listener.told() if who == task_id] == [
        "task.submitted",
        "task.started",
        "task.retrying",
        "task.queued",
        "task.started",
        "task.dead_letter",
    ]
    assert listener.told()[0] == ("worker.joined", worker)
    about = {"task_id": task_id, "type": "email", "queue": "mail", "priority": "high"}
    events = {event["type"]: event["data"] for event in listener.heard}
    assert events["task.submitted"] == {**about, "attempt": 0, "worker_id": None}
    assert events["task.started"] == {**about, "attempt": 2, "worker_id": worker}
    held = {"attempt": 1, "worker_id": worker, "duration_ms": 250.0}
    assert events["task.retrying"] == {**about, **held}
    assert events["task.dead_letter"] == {**about, **held, "attempt": 2, "duration_ms": 500.0}
    assert events["worker.joined"] == {"worker_id": worker}


async def test_every_other_way_of_a_task(served: Api) -> None:
    world = served.world
    async with listening(served) as listener:
        worker = await world.worker()
        done = await world.submit()
        await world.claim_and_settle(worker)
        released = await world.submit()
        await world.claim_and_settle(worker, Released())
        await world.claim_and_settle(worker, Snoozed(60))
        await world.run(world.ops.cancel([released]))
        await world.run(world.ops.replay([released]))
        await world.claim_and_settle(worker, Failed(TaskError("no", "X", retriable=False)))
        await world.run(world.ops.delete([released]))
        expired = await world.submit(expires_at=datetime.now(UTC) + timedelta(seconds=30))
        await world.advance(60)
        await world.claim(worker)
        await listener.until("task.deleted")
        await listener.until("task.failed")
    lives = defaultdict(list)
    for type, who in listener.told():
        lives[who].append(type.removeprefix("task."))
    assert lives[done] == ["submitted", "started", "completed"]
    assert lives[released] == [
        *("submitted", "started", "queued", "started", "snoozed"),
        *("cancelled", "queued", "started", "failed", "deleted"),
    ]
    assert lives[expired] == ["submitted", "failed"]


async def test_workers(served: Api) -> None:
    world = served.world
    async with listening(served) as listener:
        worker, other = await world.worker(), await world.worker(lease=5.0)
        await world.run(world.ops.heartbeat(Beat(worker, status=WorkerStatus.UNHEALTHY)))
        await world.run(world.ops.heartbeat(Beat(worker, status=WorkerStatus.UNHEALTHY)))
        await world.run(world.ops.heartbeat(Beat(worker, status=WorkerStatus.ACTIVE)))
        await world.run(world.ops.mark(worker, WorkerStatus.DRAINING))
        await world.run(world.ops.forget(worker))
        await world.advance(10)
        await world.reap()
        await listener.until("worker.dead")
    assert listener.told() == [
        ("worker.joined", worker),
        ("worker.joined", other),
        ("worker.paused", worker),
        ("worker.joined", worker),
        ("worker.draining", worker),
        ("worker.left", worker),
        ("worker.dead", other),
    ]


async def test_progress_is_told_as_it_stands(served: Api) -> None:
    world = served.world
    async with listening(served) as listener:
        worker = await world.worker()
        task_id = await world.submit()
        task = await world.claim_one(worker)
        await listener.until("task.started")
        for percent in range(1, 101):
            report = Report(task_id, task.attempt, float(percent), f"{percent} of 100")
            await world.run(world.ops.progress(worker, [report]))
        heard: list[dict[str, Any]] = []
        while not heard or heard[-1]["percent"] < 100:
            heard.append((await listener.until("task.progress"))["data"]["progress"])
        await world.settle(task)
        await listener.until("task.completed")
    percents = [each["percent"] for each in heard]
    assert percents == sorted(set(percents))  # each once, forwards: what is old is passed over
    assert heard[-1]["message"] == "100 of 100"
    assert listener.told()[-1] == ("task.completed", task_id)


async def test_nothing_is_missed_across_reconnects_and_restarts(served: Api) -> None:
    world = served.world
    count = itertools.count()
    submitted: list[str] = []
    enough = asyncio.Event()

    async def load() -> None:
        worker = await world.worker()
        while not enough.is_set():
            # Several in one entry of the journal: a client may leave in the midst of one.
            tasks = [new_task("work", {"number": next(count)}, max_retries=0) for _ in range(5)]
            submitted.extend(await world.submit_all(tasks))
            for number, task in enumerate(await world.claim(worker)):
                await world.settle(task, BROKEN if number == 2 else None)
            await asyncio.sleep(0.02)

    heard: dict[str, list[str]] = defaultdict(list)

    async def hear(api: Api, cursor: str | None, wanted: int) -> str:
        """Listen until so many events were heard; what was heard before may come again."""
        async with listening(api, cursor, ready=False) as listener:
            while sum(map(len, heard.values())) < wanted:
                event = await listener.next()
                assert event["type"] != "reset"
                note(event)
            assert listener.cursor is not None
            return listener.cursor

    def note(event: dict[str, Any]) -> None:
        task_id = event["data"].get("task_id")
        if task_id is not None and event["type"] not in heard[task_id]:
            heard[task_id].append(event["type"])

    async with listening(served) as listener:
        cursor = listener.cursor
    loading = asyncio.create_task(load())
    try:
        for wanted in (101, 203, 307):
            cursor = await hear(served, cursor, wanted)
        async with serving(world) as another:  # another process, as good as one started anew
            cursor = await hear(another, cursor, 409)
        for wanted in (503, 605):
            cursor = await hear(served, cursor, wanted)
    finally:
        enough.set()
        await loading
    # Ready: the past was told, as far as it was seen then; the rest of it comes right after.
    async with listening(served, cursor) as listener:
        for event in listener.heard:
            note(event)
        while {*heard} != {*submitted} or not all(types[2:] for types in heard.values()):
            note(await listener.next())
    assert sorted(heard) == sorted(submitted)
    for task_id, types in heard.items():
        assert types[:2] == ["task.submitted", "task.started"], task_id
        assert types[2:] in (["task.completed"], ["task.dead_letter"]), task_id


async def test_a_cursor_that_is_too_old_gets_a_reset_first(served: Api) -> None:
    world = served.world
    async with listening(served) as listener:
        old = listener.cursor
    gone = await world.submit()
    await world.advance(120)
    kept = await world.submit()
    await world.run(world.ops.prune(Retention(journal=60.0)))
    async with listening(served, old) as listener:
        assert listener.heard[0]["type"] == "reset"
        assert listener.heard[-1]["type"] == "ready"
    assert gone not in {who for _, who in listener.told()}
    assert listener.told() == [("task.submitted", kept)]
    async with listening(served, listener.cursor) as listener:
        assert [event["type"] for event in listener.heard] == ["ready"]


async def test_a_cursor_of_a_store_that_was_made_anew_gets_a_reset(served: Api) -> None:
    world = served.world
    await world.submit()
    async with listening(served) as listener:
        cursor = listener.cursor
        assert cursor is not None
    *above, last = cursor.split("-")
    ahead = "-".join([*(str(int(part) + 1_000_000 * int(part != "0")) for part in above), last])
    ahead = ahead if above and above != ["0"] else cursor.replace(last, str(int(last) + 1_000))
    async with listening(served, ahead) as listener:
        types = [event["type"] for event in listener.heard]
    assert types == ["reset", "task.submitted", "ready"]


async def test_figures_for_those_who_ask(served: Api) -> None:
    world = served.world
    await world.submit(queue="mail", priority="high")
    await world.submit(queue="mail", priority=1)
    await world.submit(queue="other")
    async with listening(served, query="type=queue.depth&type=system.metrics") as listener:
        metrics = await listener.until("system.metrics")
        depths = {
            event["data"]["queue"]: event["data"]
            for event in listener.heard
            if event["type"] == "queue.depth"
        }
        assert depths["mail"] == {
            "queue": "mail",
            "depth": 2,
            "priorities": {"low": 1, "medium": 0, "high": 1, "critical": 0},
        }
        assert depths["other"]["depth"] == 1
        assert metrics["data"]["depth"] == 3
        await listener.subscribe(subscribe=["queue.depth"], queues=["mail"])
        assert (await listener.until("queue.depth"))["data"]["depth"] == 2
        worker = await world.worker()
        await world.claim(worker)
        event = await listener.until("queue.depth")
    assert (event["data"]["queue"], event["data"]["depth"]) == ("mail", 0)


async def test_nobody_is_told_figures_unasked(api: Api) -> None:
    await api.world.submit()
    async with listening(api) as listener, listening(api, query="type=queue.depth") as asking:
        await asking.until("queue.depth")
        await api.world.submit("last")
        await listener.until("task.submitted")
    assert {event["type"] for event in listener.heard} == {"ready", "task.submitted"}


async def test_ticks_that_were_not_fired_for_those_who_ask(api: Api) -> None:
    world = api.world
    facts = await world.run(world.ops.facts())
    new = new_schedule("hourly", every(3600, (facts.now // 1_000_000 + 30) % 3600), new_task("a"))
    await world.run(world.ops.put_schedules([new]))

    async def miss() -> None:
        """Again and again: what happened before somebody listened is not told."""
        while True:
            await world.advance(3 * 3600)
            await world.run(world.ops.fire_due())
            await asyncio.sleep(0.1)

    async with listening(api, query="type=schedule.skipped") as listener:
        missing = asyncio.create_task(miss())
        heard = [(await listener.until("schedule.skipped"))["data"] for _ in range(5)]
        missing.cancel()
        await asyncio.gather(missing, return_exceptions=True)
    numbers = [data["number"] for data in heard]
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert {data["schedule_id"] for data in heard} == {"hourly"}
    assert {data["outcome"] for data in heard} == {"missed", "overlap"}
    assert all(data["tick"].endswith("Z") and data["count"] >= 1 for data in heard)
