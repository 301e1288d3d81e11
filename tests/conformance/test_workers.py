"""Workers: one heartbeat keeps all a worker holds; a dead one holds nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlane.core.errors import InvalidWorker, WorkerGone
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Beat, Cause, NewWorker, Report, Start, Verdict, WorkerStatus
from fairlane.core.outcomes import Completed
from fairlane.core.settlement import reaped
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


async def test_what_nobody_heard_of_is_given_again_before_anything_new(store: World) -> None:
    """A request that was given up goes through after all: at once, or long after."""
    worker = await store.worker()
    ids = [await store.submit() for _ in range(3)]

    async def given(request: str, heard: str) -> tuple[list[str], str | None]:
        grant = await store.ask(worker, 1, request_id=request, heard=heard)
        return [task.task_id for task in grant.tasks], grant.request_id

    assert await given("one", "") == (ids[:1], None)
    assert await given("one", "") == (ids[:1], "one")
    assert await given("two", "") == (ids[:1], "one")
    assert await given("two", "one") == (ids[1:2], None)
    assert await given("one", "") == (ids[1:2], "two"), "it comes late, and takes nothing"
    assert await store.census() == {State.EXECUTING: 2, State.QUEUED: 1}
    await store.run(store.ops.cancel(ids[:2]))
    assert await given("three", "one") == ([], "two"), "nothing is left of it"
    assert await given("three", "two") == (ids[2:], None)
    # A store that has lost its last changes says so, too; who does not say what he heard, gets on.
    other = await store.worker()
    grant = await store.ask(other, 1, request_id="one", heard="ninety-nine")
    assert (grant.tasks, grant.request_id) == ([], "")
    await store.submit()
    grant = await store.ask(other, 1, request_id="one")
    assert (len(grant.tasks), grant.request_id) == (1, None)


async def test_a_worker_as_it_introduced_itself(store: World) -> None:
    new = NewWorker(
        new_id(),
        capacity=7,
        capabilities=frozenset({"gpu", "big"}),
        queues=frozenset({"a"}),
        types=frozenset({"t"}),
        host="host-1",
        version="1.2",
        lease=45,
    )
    known_as = await store.run(store.ops.register(new))
    (worker,) = await store.run(store.ops.workers())
    assert worker.worker_id == known_as
    assert (worker.status, worker.capacity, worker.load) == (WorkerStatus.ACTIVE, 7, 0)
    assert worker.capabilities == {"gpu", "big"}
    assert worker.queues == frozenset({"a"})
    assert worker.types == frozenset({"t"})
    assert (worker.host, worker.version, worker.lease) == ("host-1", "1.2", 45)
    assert worker.registered_at == worker.last_heartbeat
    assert (worker.current_tasks, worker.health, worker.lost) == ((), None, False)
    other = await store.worker()
    (plain,) = [each for each in await store.run(store.ops.workers()) if each.worker_id == other]
    assert (plain.queues, plain.types, plain.capabilities) == (None, None, frozenset())


@pytest.mark.parametrize("kind", ["capabilities", "queues", "types"])
async def test_a_worker_that_names_too_much_is_refused(store: World, kind: str) -> None:
    """Every look at the store reads the names of all workers."""
    many = frozenset(f"name-{number}" for number in range(1_000))
    long = frozenset(f"{number:0255}" for number in range(128))
    for names in (many | {"one-more"}, long | {f"{128:0255}"}):
        with pytest.raises(InvalidWorker, match="at most"):
            await store.worker(**{kind: names})
    assert await store.run(store.ops.workers()) == []
    for names in (many, long):
        await store.worker(**{kind: names})


async def test_a_claim_needs_a_registered_worker(store: World) -> None:
    await store.submit()
    with pytest.raises(WorkerGone):
        await store.ask("nobody")
    with pytest.raises(WorkerGone):
        await store.run(store.ops.heartbeat(Beat("nobody")))


@pytest.mark.parametrize(
    "bad",
    [
        NewWorker(""),
        NewWorker("a b"),
        NewWorker("x" * 256),
        NewWorker("w", capacity=0),
        NewWorker("w", lease=0),
        NewWorker("w", lease=float("nan")),
        NewWorker("w", lease=10**9),
    ],
    ids=str,
)
async def test_a_worker_that_makes_no_sense_is_refused(store: World, bad: NewWorker) -> None:
    with pytest.raises(InvalidWorker):
        await store.run(store.ops.register(bad))
    assert await store.run(store.ops.workers()) == []


async def test_a_repeated_request_gets_the_same_tasks(store: World) -> None:
    await store.submit_all([new_task("work", {"n": n}, priority=n % 11) for n in range(20)])
    worker = await store.worker()
    first = await store.claim(worker, 5, request_id="r1")
    again = await store.claim(worker, 5, request_id="r1")
    assert again == first
    assert await store.settle(first[0]) is Verdict.APPLIED
    assert await store.claim(worker, 5, request_id="r1") == first[1:]
    assert await store.census() == {State.EXECUTING: 4, State.COMPLETED: 1, State.QUEUED: 15}
    fresh = await store.claim(worker, 5, request_id="r2")
    assert {task.task_id for task in fresh}.isdisjoint(task.task_id for task in first)
    other = await store.worker()
    assert len(await store.claim(other, 5, request_id="r2")) == 5


async def test_a_repeated_request_that_found_nothing_may_find_something(store: World) -> None:
    worker = await store.worker()
    assert await store.claim(worker, request_id="r1") == []
    await store.submit()
    assert len(await store.claim(worker, request_id="r1")) == 1


async def test_a_heartbeat_keeps_everything(store: World) -> None:
    await store.submit_all([new_task("work") for _ in range(3)])
    worker = await store.worker(lease=30)
    tasks = await store.claim(worker)
    for _ in range(4):
        await store.advance(20)
        pulse = await store.run(store.ops.heartbeat(Beat(worker)))
        assert (pulse.remaining, pulse.status, pulse.let_go) == (30, WorkerStatus.ACTIVE, [])
        assert await store.reap() == []
    assert await store.settle(tasks[0]) is Verdict.APPLIED


async def test_a_claim_counts_as_a_sign_of_life(store: World) -> None:
    worker = await store.worker(lease=30)
    for _ in range(4):
        await store.advance(20)
        await store.ask(worker)
        (seen,) = await store.run(store.ops.workers())
        assert not seen.lost
        assert await store.behind.run(store.behind.ops.bury([worker])) == []


async def test_a_beat_tells_load_and_health(store: World) -> None:
    worker = await store.worker()
    health = {"cpu": 0.5, "memory": 12}
    await store.run(store.ops.heartbeat(Beat(worker, load=3, health=health)))
    await store.run(store.ops.heartbeat(Beat(worker, load=4)))
    (seen,) = await store.run(store.ops.workers())
    assert (seen.load, seen.health) == (4, health)
    await store.run(store.ops.heartbeat(Beat(worker)))
    (seen,) = await store.run(store.ops.workers())
    assert (seen.load, seen.health) == (4, health), "what it does not tell stays as it is"


@pytest.mark.parametrize(
    "health",
    [{"deep": _nested(967)}, {"deep": _nested(100)}, {"long": "x" * 4_096}],
    ids=["very-deep", "deep", "long"],
)
async def test_health_that_is_too_large_is_refused(store: World, health: dict[str, Any]) -> None:
    worker = await store.worker()
    edge = {"deep": _nested(99)}
    await store.run(store.ops.heartbeat(Beat(worker, health=edge)))
    with pytest.raises(InvalidWorker, match=r"health (has|is nested) at most"):
        await store.run(store.ops.heartbeat(Beat(worker, load=3, health=health)))
    (seen,) = await store.run(store.ops.workers())
    assert (seen.load, seen.health) == (0, edge)


async def test_the_load_of_a_worker_that_tells_none_is_what_it_holds(store: World) -> None:
    worker = await store.worker(capacity=5)

    async def load() -> int:
        (seen,) = await store.run(store.ops.workers())
        assert seen.load == len(seen.current_tasks)
        return seen.load

    assert await load() == 0
    await store.submit_all([new_task("work") for _ in range(3)])
    first, *_ = await store.claim(worker)
    assert await load() == 3
    await store.run(store.ops.heartbeat(Beat(worker)))
    assert await load() == 3
    await store.settle(first)
    assert await load() == 2


@pytest.mark.local
async def test_a_dead_worker_s_tasks_go_back(store: World) -> None:
    ids = await store.submit_all([new_task("work", max_retries=1) for _ in range(2)])
    worker = await store.worker(lease=30)
    started, unstarted = await store.claim(worker)
    await store.run(store.ops.start(worker, [Start(started.task_id, 1)]))
    await store.advance(29)
    assert await store.reap() == []
    assert await store.run(store.ops.bury([worker])) == []
    await store.advance(2)
    (lost,) = await store.run(store.ops.workers())
    assert lost.lost
    assert await store.reap() == [Verdict.APPLIED] * 2
    tasks = [await store.task(task_id) for task_id in ids]
    assert [task.status for task in tasks] == [State.QUEUED] * 2
    assert [(task.retry_count, task.returns) for task in tasks] == [(1, 0), (0, 1)]
    assert [task.attempts[0].outcome for task in tasks] == ["lost", "returned"]
    (dead,) = await store.run(store.ops.workers())
    assert (dead.status, dead.current_tasks) == (WorkerStatus.DEAD, ())
    heir = await store.worker()
    again = await store.claim(heir)
    assert [task.attempt for task in again] == [2, 2]
    assert await store.settle(started) is Verdict.STALE
    assert await store.settle(unstarted) is Verdict.STALE
    for gone in (store.ops.heartbeat(Beat(worker)), store.ops.register(NewWorker(worker))):
        with pytest.raises(WorkerGone):
            await store.run(gone)
    with pytest.raises(WorkerGone):
        await store.ask(worker)
    assert [await store.settle(task) for task in again] == [Verdict.APPLIED] * 2


async def test_what_is_not_started_in_time_goes_back_free(store: World) -> None:
    """A worker that reports starts gives no sign of a task: the reply to its claim got lost."""
    ids = await store.submit_all([new_task("work", max_retries=0) for _ in range(4)])
    worker = await store.worker(start_within=30, lease=3600)
    started, reporting, done, silent = await store.claim(worker)
    await store.advance(29)
    await store.start(started)
    await store.run(store.ops.progress(worker, [Report(reporting.task_id, 1, 50.0)]))
    assert await store.settle(done) is Verdict.APPLIED
    assert await store.reap() == []
    await store.advance(2)
    assert await store.reap() == [Verdict.APPLIED]
    tasks = [await store.task(task_id) for task_id in ids]
    assert [task.status for task in tasks] == [
        State.EXECUTING,
        State.EXECUTING,
        State.COMPLETED,
        State.QUEUED,
    ]
    given_back = tasks[3]
    assert (given_back.retry_count, given_back.returns) == (0, 1)
    assert [run.outcome for run in given_back.attempts] == ["returned"]
    assert given_back.error is not None
    assert given_back.error.code == "NOT_STARTED"
    assert given_back.started_at is None
    assert await store.start(silent) is Verdict.STALE
    assert await store.settle(silent) is Verdict.STALE
    (heir,) = await store.claim(await store.worker())
    assert (heir.task_id, heir.attempt) == (silent.task_id, 2)
    assert await store.settle(heir) is Verdict.APPLIED


async def test_a_task_that_nobody_starts_ends(store: World) -> None:
    task_id = await store.submit(max_retries=10)
    worker = await store.worker(start_within=30, lease=3600)
    for attempt in range(1, 5):
        assert (await store.claim_one(worker)).attempt == attempt
        await store.advance(31)
        assert await store.reap() == [Verdict.APPLIED]
    task = await store.task(task_id)
    assert (task.status, task.retry_count) == (State.DEAD_LETTER, 0)
    assert task.error is not None
    assert task.error.reason == "not_started"


async def test_progress_starts_a_task(store: World) -> None:
    """Its timeout counts from then: a worker that forgets to report the start is not spared."""
    task_id = await store.submit(timeout_seconds=60)
    worker = await store.worker(start_within=30, lease=3600)
    task = await store.claim_one(worker)
    await store.advance(20)
    await store.run(store.ops.progress(worker, [Report(task_id, 1, 1.0)]))
    begun = (await store.task(task_id)).started_at
    assert begun is not None
    await store.advance(20)
    await store.run(store.ops.progress(worker, [Report(task_id, 1, 2.0)]))
    assert (await store.task(task_id)).started_at == begun
    assert await store.reap() == []
    await store.advance(41)
    assert await store.reap() == [Verdict.APPLIED]
    assert await store.state(task_id) is State.RETRYING
    assert await store.settle(task) is Verdict.STALE


async def test_most_workers_may_hold_tasks_unstarted(store: World) -> None:
    await store.submit()
    task = await store.claim_one(await store.worker(lease=3600))
    await store.advance(1800)
    assert await store.reap() == []
    assert await store.settle(task) is Verdict.APPLIED


async def test_a_worker_registers_with_another_time_to_start(store: World) -> None:
    worker = await store.worker(start_within=30, lease=3600)
    (seen,) = await store.run(store.ops.workers())
    assert seen.start_within == 30
    await store.submit()
    await store.claim_one(worker)
    await store.run(store.ops.register(NewWorker(worker, lease=3600)))
    (seen,) = await store.run(store.ops.workers())
    assert seen.start_within is None
    await store.advance(60)
    assert await store.reap() == []


@pytest.mark.local
async def test_a_start_wins_over_a_reaper_that_looked_before(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker(start_within=30, lease=3600)
    task = await store.claim_one(worker)
    await store.advance(31)
    (overdue,) = await store.run(store.ops.expired(10))
    assert (overdue.cause, overdue.started) == (Cause.UNSTARTED, False)
    assert await store.start(task) is Verdict.APPLIED
    (answer,) = await store.run(store.ops.settle([reaped(overdue)], reaping=True))
    assert answer.verdict is Verdict.STALE
    assert await store.state(task_id) is State.EXECUTING


@pytest.mark.local
async def test_the_type_of_what_is_overdue_is_known(store: World) -> None:
    """The log of the process that ends it says what failed. That need not be one that claims."""
    workers = {
        "dies": await store.worker(lease=30),
        "drags": await store.worker(lease=3600),
        "idles": await store.worker(lease=3600, start_within=30),
    }
    for type, worker in workers.items():
        await store.submit(type, timeout_seconds=20)
        task = await store.claim_one(worker, types=frozenset({type}))
        if type == "drags":
            await store.start(task)
    await store.advance(31)
    assert await store.run(store.ops.bury([workers["dies"]])) == [workers["dies"]]
    (keeper,) = store.processes(1)
    overdue = await keeper.run(keeper.ops.expired(10))
    assert {found.cause: found.type for found in overdue} == {
        Cause.LOST: "dies",
        Cause.TIMEOUT: "drags",
        Cause.UNSTARTED: "idles",
    }


@pytest.mark.local
@pytest.mark.parametrize("seconds", [0, -1, 86_401, float("nan"), float("inf")])
async def test_a_time_to_start_that_cannot_be(store: World, seconds: float) -> None:
    with pytest.raises(InvalidWorker, match="from the claim of a task to its start"):
        await store.worker(start_within=seconds)
    assert await store.run(store.ops.workers()) == []


async def test_a_task_that_kills_workers_ends(store: World) -> None:
    task_id = await store.submit(max_retries=10)
    for attempt in range(1, 5):
        worker = await store.worker(lease=30)
        assert (await store.claim_one(worker)).attempt == attempt
        await store.advance(31)
        assert await store.reap() == [Verdict.APPLIED]
    task = await store.task(task_id)
    assert task.status is State.DEAD_LETTER
    assert task.error is not None
    assert task.error.reason == "worker_lost"


@pytest.mark.local
async def test_a_worker_that_woke_up_in_time_is_spared(store: World) -> None:
    """Seen lost, but it beat before it was declared dead."""
    worker = await store.worker(lease=30)
    await store.advance(31)
    (seen,) = await store.run(store.ops.workers())
    assert seen.lost
    await store.run(store.ops.heartbeat(Beat(worker)))
    assert await store.run(store.ops.bury([worker])) == []


async def test_a_worker_leaves(store: World) -> None:
    worker = await store.worker()
    assert await store.run(store.ops.forget(worker))
    assert await store.run(store.ops.workers()) == []
    assert not await store.run(store.ops.forget(worker))


@pytest.mark.local
async def test_a_worker_leaves_with_tasks_in_its_hands(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    task = await store.claim_one(worker)
    assert await store.run(store.ops.forget(worker))
    assert await store.reap() == [Verdict.APPLIED]
    assert await store.state(task_id) is State.QUEUED
    assert await store.settle(task, Completed(b"1")) is Verdict.STALE


async def test_a_draining_worker_gets_nothing_more(store: World) -> None:
    await store.submit_all([new_task("work") for _ in range(2)])
    worker = await store.worker()
    task = await store.claim_one(worker)
    assert await store.run(store.ops.mark(worker, WorkerStatus.DRAINING))
    assert await store.claim(worker) == []
    pulse = await store.run(store.ops.heartbeat(Beat(worker, status=WorkerStatus.ACTIVE)))
    assert pulse.status is WorkerStatus.DRAINING
    assert await store.settle(task) is Verdict.APPLIED
    assert not await store.run(store.ops.mark("nobody", WorkerStatus.DRAINING))


async def test_an_unhealthy_worker_gets_nothing_until_it_is_well(store: World) -> None:
    await store.submit()
    worker = await store.worker()
    await store.run(store.ops.heartbeat(Beat(worker, status=WorkerStatus.UNHEALTHY)))
    assert await store.claim(worker) == []
    await store.run(store.ops.heartbeat(Beat(worker, status=WorkerStatus.ACTIVE)))
    assert len(await store.claim(worker)) == 1


async def test_a_worker_is_told_what_to_let_go(store: World) -> None:
    await store.submit_all([new_task("work") for _ in range(3)])
    worker = await store.worker()
    tasks = await store.claim(worker)
    await store.run(store.ops.cancel([tasks[1].task_id]))
    pulse = await store.run(store.ops.heartbeat(Beat(worker)))
    assert pulse.let_go == [(tasks[1].task_id, 1)]
    await store.settle(tasks[1])
    assert (await store.run(store.ops.heartbeat(Beat(worker)))).let_go == []


async def test_progress(store: World) -> None:
    task_id = await store.submit()
    worker, stranger = await store.worker(), await store.worker()
    await store.claim_one(worker)
    report = Report(task_id, 1, 42.5, "halfway ☕")
    assert await store.run(store.ops.progress(worker, [report])) == [Verdict.APPLIED]
    task = await store.task(task_id)
    assert task.progress is not None
    assert (task.progress.percent, task.progress.message) == (42.5, "halfway ☕")
    assert task.progress.updated_at == task.updated_at
    bad = [Report(task_id, 2, 1), Report(new_id(), 1, 1)]
    assert await store.run(store.ops.progress(worker, bad)) == [Verdict.STALE, Verdict.MISSING]
    assert await store.run(store.ops.progress(stranger, [report])) == [Verdict.STALE]
    assert (await store.task(task_id)).progress == task.progress


async def test_a_start_is_fenced(store: World) -> None:
    task_id = await store.submit()
    worker, stranger = await store.worker(), await store.worker()
    await store.claim_one(worker)
    starts = [Start(task_id, 2), Start(new_id(), 1)]
    assert await store.run(store.ops.start(worker, starts)) == [Verdict.STALE, Verdict.MISSING]
    assert await store.run(store.ops.start(stranger, [Start(task_id, 1)])) == [Verdict.STALE]
    assert (await store.task(task_id)).started_at is None


async def test_what_a_worker_holds_is_listed(store: World) -> None:
    await store.submit_all([new_task("work") for _ in range(3)])
    worker = await store.worker()
    tasks = await store.claim(worker, 2)
    (seen,) = await store.run(store.ops.workers())
    assert sorted(seen.current_tasks) == sorted(task.task_id for task in tasks)


async def test_a_task_goes_to_one_worker_only(store: World) -> None:
    await store.submit_all([new_task("work", {"n": n}, priority=n % 11) for n in range(400)])
    workers = [await store.worker() for _ in range(8)]
    backends = store.processes(4)

    async def take(number: int) -> list[str]:
        backend = backends[number % 4]
        found: list[str] = []
        for _ in range(100):
            grant = await backend.run(backend.ops.claim(Ask(workers[number], new_id(), 10)))
            if not grant.tasks:
                break
            assert len(grant.tasks) <= 10
            found += [task.task_id for task in grant.tasks]
        return found

    claimed = [task_id for ids in await asyncio.gather(*map(take, range(8))) for task_id in ids]
    assert len(claimed) == len(set(claimed)) == 400
