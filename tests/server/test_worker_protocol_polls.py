"""Long polls, on every engine: who gets what, when, and that nothing is lost on the way."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from fairlane import engines
from fairlane.core.errors import StoreUnavailable
from fairlane.core.model import Ask, Grant, WorkerStatus
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.server.claims import Claims
from tests.fixtures.servers import PostgresServer, RedisServer, postgres, redis
from tests.fixtures.stores import World
from tests.server.kit import Api, refused, serving
from tests.server.workers import Worker, polling, registered, until, waiting


async def test_a_submission_wakes_one_who_waits(served: Api) -> None:
    poll = await waiting(served, await registered(served))
    task_id = await served.submit()
    assert await poll.tasks() == [task_id]


async def test_a_submission_of_another_process_does_too(served: Api) -> None:
    poll = await waiting(served, await registered(served))
    (other,) = served.world.processes(1)
    (accepted,) = await other.run(other.ops.submit([new_task("work")]))
    assert await poll.tasks() == [accepted.task_id]


async def test_what_falls_due_wakes_one_who_waits(served: Api) -> None:
    before = await served.submit(delay_seconds=0.3)
    poll = await waiting(served, await registered(served))
    assert await poll.tasks() == [before]
    poll = await waiting(served, poll.worker)
    meanwhile = await served.submit(delay_seconds=0.2)
    assert await poll.tasks() == [meanwhile]


async def test_nobody_is_woken_for_the_tasks_of_others(served: Api) -> None:
    mail = await waiting(served, await registered(served, queues=["mail"]))
    cuts = await waiting(served, await registered(served, queues=["video"], types=["cut"]))
    able = await registered(served, queues=["video"])
    able_one = await waiting(served, able, capabilities=["gpu"])
    for_able = await served.submit("cut", queue="video", required_capabilities=["gpu"])
    assert await able_one.tasks() == [for_able]
    for_cuts = await served.submit("cut", queue="video")
    assert await cuts.tasks() == [for_cuts]
    assert not mail.answer.done()
    for_mail = await served.submit(queue="mail")
    assert await mail.tasks() == [for_mail]


async def test_one_looks_for_all(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = await registered(api)
    polls = [await waiting(api, worker) for _ in range(50)]
    looks = 0
    claim = Claims.claim

    async def counted(claims: Claims, ask: Ask) -> Grant:
        nonlocal looks
        looks += 1
        return await claim(claims, ask)

    monkeypatch.setattr(Claims, "claim", counted)
    for _ in range(3):
        await api.submit()
    await until(lambda: api.services.polls.waiting == 47)
    assert looks < 20
    api.stop.set()
    assert sum([len(await poll.tasks()) for poll in polls]) == 3


async def test_many_who_wait_get_one_each(served: Api) -> None:
    worker = await registered(served)
    polls = [await waiting(served, worker) for _ in range(5)]
    ids = await served.world.submit_all([new_task("work") for _ in range(5)])
    assert sorted([task for poll in polls for task in await poll.tasks()]) == sorted(ids)


async def test_nothing_in_time(served: Api) -> None:
    worker = await registered(served)
    assert await worker.poll(wait_seconds=0.05) == []
    short = await registered(served, heartbeat_interval_ms=100)
    assert await short.poll(wait_seconds=3600) == [], "no longer than a third of its lease"


async def test_a_server_that_stops_lets_nobody_wait(served: Api) -> None:
    polls = [await waiting(served, await registered(served)) for _ in range(3)]
    served.stop.set()
    assert [await poll.tasks() for poll in polls] == [[], [], []]


async def test_a_dead_worker_stands_in_nobodys_way(served: Api) -> None:
    dead = await waiting(served, await registered(served))
    alive = await waiting(served, await registered(served))
    await served.world.run(served.world.ops.forget(dead.worker.id))
    task_id = await served.submit()
    assert await alive.tasks() == [task_id]
    refused(await dead.answer, 409, "worker_gone")


async def test_a_drained_worker_stands_in_nobodys_way(served: Api) -> None:
    drained = await waiting(served, await registered(served))
    active = await waiting(served, await registered(served))
    marked = served.world.ops.mark(drained.worker.id, WorkerStatus.DRAINING)
    await served.world.run(marked)
    task_id = await served.submit()
    assert await active.tasks() == [task_id]
    served.stop.set()
    assert await drained.tasks() == []


async def test_twenty_workers_take_two_hundred_tasks_once_each(served: Api) -> None:
    ids = await served.world.submit_all([new_task("work") for _ in range(100)])
    taken: list[str] = []

    async def work(worker: Worker) -> None:
        while len(taken) < 200:
            tasks = await worker.poll(3, wait_seconds=0.5)
            taken.extend(task["task_id"] for task in tasks)
            for task in tasks:
                assert (await worker.result(task["task_id"], attempt=1)).status == 200

    workers = [await registered(served) for _ in range(20)]
    working = asyncio.gather(*(work(worker) for worker in workers))
    for _ in range(20):
        ids += await served.world.submit_all([new_task("work") for _ in range(5)])
    await working
    assert Counter(taken) == Counter(ids)
    assert await served.world.census() == {State.COMPLETED: 200}


# -- clients that go away --------------------------------------------------------------------------


async def test_nothing_is_claimed_for_a_client_that_has_left(served: Api) -> None:
    poll = await waiting(served, await registered(served))
    await poll.client.close()
    poll.answer.cancel()
    await until(lambda: served.services.polls.waiting == 0)
    task_id = await served.submit()
    other = await registered(served)
    assert [task["attempt"] for task in await other.poll()] == [1]
    assert (await served.world.task(task_id)).retry_count == 0


class Held:
    """Claims whose answers are held back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claimed = asyncio.Event()
        self.go_on = asyncio.Event()
        claim = Claims.claim

        async def held(claims: Claims, ask: Ask) -> Grant:
            grant = await claim(claims, ask)
            if grant.tasks and not self.go_on.is_set():
                self.claimed.set()
                await self.go_on.wait()
            return grant

        monkeypatch.setattr(Claims, "claim", held)


@pytest.mark.parametrize("request_id", ["one", None])
async def test_what_can_no_longer_be_delivered_is_there_for_the_next(
    served: Api, request_id: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays for who repeats the poll; where nobody can, it goes back to all."""
    held = Held(monkeypatch)
    worker = await registered(served)
    task_id = await served.submit()
    poll = await polling(served, worker, wait_seconds=60, request_id=request_id)
    await held.claimed.wait()
    await poll.client.close()
    poll.answer.cancel()
    again = await polling(served, worker, wait_seconds=60, request_id=request_id)
    held.go_on.set()
    assert await again.tasks() == [task_id]
    stored = await served.world.task(task_id)
    attempt = 2 if request_id is None else 1
    assert (stored.status, stored.attempt, stored.retry_count) == (State.EXECUTING, attempt, 0)
    assert (await worker.result(task_id)).status == 200


async def test_a_poll_that_is_repeated_elsewhere_is_not_disturbed(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two processes the first learns late what it was given, and that its client has gone to
    the second one."""
    held = Held(monkeypatch)
    worker = await registered(served)
    task_id = await served.submit()
    poll = await polling(served, worker, wait_seconds=60, request_id="one")
    await held.claimed.wait()
    await poll.client.close()
    poll.answer.cancel()
    monkeypatch.undo()
    async with serving(served.world) as second:
        there = Worker(second, worker.id, await second.connect())
        assert [task["task_id"] for task in await there.poll(request_id="one")] == [task_id]
        held.go_on.set()
        await until(lambda: not served.services.polls._working)
        other = await registered(second)
        assert await other.poll() == []
        assert (await there.result(task_id, attempt=1)).status == 200


async def test_a_stopping_server_gives_back_what_it_is_claiming(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    worker = await registered(served)
    task_id = await served.submit()
    poll = await polling(served, worker, wait_seconds=60)
    await held.claimed.wait()
    await poll.client.close()
    poll.answer.cancel()
    served.stop.set()
    await until(served.services.stopping.is_set)
    held.go_on.set()
    async with asyncio.timeout(20):
        while await served.world.state(task_id) is not State.QUEUED:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (await served.world.task(task_id)).retry_count == 0


# -- a store that goes away ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["postgres", "redis"])
async def test_whoever_waits_outlasts_an_outage(kind: str) -> None:
    made: PostgresServer | RedisServer
    made = redis("redis", appendonly=True) if kind == "redis" else postgres("newest")
    with made as server:
        url = server.url if isinstance(server, RedisServer) else server.new_database()
        world = World(engines.open(url), url, {})
        await world.run(world.ops.migrate())
        async with serving(world) as api:
            poll = await waiting(api, await registered(api))
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            task_id = await world.submit()
            assert await poll.tasks() == [task_id]
        await world.close()


class Unheard:
    """Claims that the store makes, but whose answers get lost while this lasts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lost: list[str] = []
        self.over = False
        claim = Claims.claim

        async def unheard(claims: Claims, ask: Ask) -> Grant:
            grant = await claim(claims, ask)
            if self.over or not (grant.tasks or self.lost):
                return grant
            self.lost += [task.task_id for task in grant.tasks]
            raise StoreUnavailable("The answer got lost.")

        monkeypatch.setattr(Claims, "claim", unheard)


@pytest.mark.parametrize("request_id", ["one", None])
async def test_nobody_is_told_that_there_is_nothing_when_an_answer_got_lost(
    served: Api, request_id: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker would go on to its next poll, and hold a task that it has never heard of."""
    unheard = Unheard(monkeypatch)
    worker = await registered(served)
    poll = await waiting(served, worker, wait_seconds=2, request_id=request_id)
    task_id = await served.submit()
    refused(await poll.answer, 503, "store_unavailable")
    assert set(unheard.lost) == {task_id}
    unheard.over = True
    assert [task["task_id"] for task in await worker.poll(request_id=request_id)] == [task_id]
    stored = await served.world.task(task_id)
    assert (stored.status, stored.attempt) == (State.EXECUTING, 1)
    assert await worker.poll() == []


async def test_what_an_unheard_answer_brought_goes_to_one_poll_only(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = Unheard(monkeypatch)
    worker = await registered(served)
    polls = [await waiting(served, worker) for _ in range(3)]
    first = await served.submit()
    await until(lambda: bool(unheard.lost))
    unheard.over = True
    others = [await served.submit() for _ in range(2)]
    taken = [task_id for poll in polls for task_id in await poll.tasks()]
    assert sorted(taken) == sorted([first, *others])


async def test_no_more_is_handed_out_than_there_is_room_for_now(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = Unheard(monkeypatch)
    worker = await registered(served)
    ids = await served.world.submit_all([new_task("work") for _ in range(3)])
    refused(await worker.ask("poll", {"available_capacity": 3}), 503, "store_unavailable")
    assert sorted(set(unheard.lost)) == sorted(ids)
    unheard.over = True
    (handed,) = await worker.poll(1)
    rest = [task_id for task_id in ids if task_id != handed["task_id"]]
    async with asyncio.timeout(20):
        for task_id in rest:
            while await served.world.state(task_id) is not State.QUEUED:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert sorted([task["task_id"] for task in await worker.poll(3)]) == sorted(rest)


async def test_a_surprise_does_not_leave_those_alone_who_wait(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = await waiting(served, await registered(served))
    claim, surprises = Claims.claim, ["What is that?"]

    async def surprising(claims: Claims, ask: Ask) -> Grant:
        if surprises:
            raise RuntimeError(surprises.pop())
        return await claim(claims, ask)

    monkeypatch.setattr(Claims, "claim", surprising)
    task_id = await served.submit()
    assert await poll.tasks() == [task_id]
    assert not surprises


async def test_nobody_joins_a_line_of_a_server_that_stops(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, asked, go_on = Claims.claim, asyncio.Event(), asyncio.Event()

    async def slow(claims: Claims, ask: Ask) -> Grant:
        grant = await claim(claims, ask)
        asked.set()
        await go_on.wait()
        return grant

    worker = await registered(served)
    monkeypatch.setattr(Claims, "claim", slow)
    poll = await polling(served, worker, wait_seconds=60)
    await asked.wait()
    served.stop.set()
    await until(served.services.stopping.is_set)
    go_on.set()
    assert await poll.tasks() == []
