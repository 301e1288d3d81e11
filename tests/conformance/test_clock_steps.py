"""A clock that is set: nothing ends because of a step alone, and nothing stands still after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlane.core.breaker import Breaker
from fairlane.core.model import Beat, Claimed, Start, TaskError, WorkerStatus
from fairlane.core.outcomes import Failed, Snoozed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.maintenance import Maintenance
from tests.fixtures.stores import World

pytestmark = pytest.mark.local  # a server does the maintenance itself

HOURS = 7200.0
STEPS = [HOURS, -HOURS, 5.0, -5.0]


async def started(store: World, count: int, **options: object) -> tuple[str, list[Claimed]]:
    """A worker that runs so many tasks."""
    tasks = [new_task("work", timeout_seconds=600, max_retries=0) for _ in range(count)]
    await store.submit_all(tasks)
    worker = await store.worker(**{"lease": 30.0, **options})
    claimed = await store.claim(worker, count)
    await store.run(store.ops.start(worker, [Start(task.task_id, 1) for task in claimed]))
    return worker, claimed


async def rounds(keeper: Maintenance, store: World, seconds: float = 7.5) -> None:
    """The maintenance goes on for a while."""
    for _ in range(int(seconds / 2.5)):
        await keeper.round()
        await store.advance(2.5)


async def status(store: World) -> WorkerStatus:
    (worker,) = await store.run(store.ops.workers())
    return worker.status


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_ends_no_run_and_no_worker(store: World, step: float) -> None:
    worker, claimed = await started(store, 50)
    keeper = store.keeper()
    await rounds(keeper, store)
    await store.set_clock(step)
    await rounds(keeper, store)
    assert await status(store) is WorkerStatus.ACTIVE
    await store.run(store.ops.heartbeat(Beat(worker)))
    await rounds(keeper, store)
    assert await store.census() == {State.EXECUTING: 50}
    assert await status(store) is WorkerStatus.ACTIVE
    for task in claimed:
        await store.settle(task)
    assert await store.census() == {State.COMPLETED: 50}


async def test_a_step_in_the_middle_of_a_round_ends_no_run(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(store, 5, lease=80_000.0)
    keeper = store.keeper()
    await keeper.round()
    run = store.behind.backend.run

    async def set_meanwhile(op: Any) -> Any:
        if op.name == "expired":
            monkeypatch.undo()
            await store.set_clock(HOURS)
        return await run(op)

    monkeypatch.setattr(store.behind.backend, "run", set_meanwhile)
    await keeper.round()
    await rounds(keeper, store)
    assert await store.census() == {State.EXECUTING: 5}


async def test_a_step_while_nobody_looks_ends_no_run_and_no_worker(store: World) -> None:
    await started(store, 5)
    await store.keeper(boot="one").round()
    await store.set_clock(HOURS)
    await rounds(store.keeper(boot="another"), store)
    assert await store.census() == {State.EXECUTING: 5}
    assert await status(store) is WorkerStatus.ACTIVE


@pytest.mark.parametrize("step", STEPS)
async def test_a_worker_that_dies_is_found_one_lease_after_a_step(
    store: World, step: float
) -> None:
    await started(store, 5)
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(step)
    await rounds(keeper, store, 27.5)
    assert await status(store) is WorkerStatus.ACTIVE
    await rounds(keeper, store, 10.0)
    assert await status(store) is WorkerStatus.DEAD
    assert await store.census() == {State.DEAD_LETTER: 5}


async def test_a_dead_worker_is_found_as_soon_as_ever_by_who_comes_next(store: World) -> None:
    """Not a lease later: the one before has watched the clock, on the same machine."""
    await started(store, 1)
    await store.keeper("before").round()
    await store.advance(300)
    await rounds(store.keeper("after"), store, 5.0)
    assert await status(store) is WorkerStatus.DEAD


@pytest.mark.parametrize("step", STEPS)
async def test_a_time_limit_is_kept_after_a_step(store: World, step: float) -> None:
    await started(store, 5, lease=80_000.0)
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(step)
    await keeper.round()
    await store.advance(590)
    await keeper.round()
    assert await store.census() == {State.EXECUTING: 5}
    await store.advance(20)
    await keeper.round()
    assert await store.census() == {State.DEAD_LETTER: 5}


@pytest.mark.parametrize("step", STEPS)
async def test_a_task_that_is_not_started_is_given_back_after_a_step(
    store: World, step: float
) -> None:
    worker = await store.worker(lease=80_000.0, start_within=30.0)
    await store.submit_all([new_task("work") for _ in range(4)])
    await store.claim(worker, 2)
    await store.advance(0.01)
    await store.claim(worker, 1)
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(step)
    await keeper.round()
    await store.advance(25)
    await keeper.round()
    assert await store.census() == {State.EXECUTING: 3, State.QUEUED: 1}
    await store.advance(6)
    await keeper.round()
    assert await store.census() == {State.QUEUED: 4}


async def test_a_repeated_claim_gets_the_same_tasks_after_a_step_back(store: World) -> None:
    worker = await store.worker()
    await store.submit_all([new_task("work") for _ in range(4)])
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(HOURS)
    await store.claim(worker, 2)
    await store.advance(0.01)
    last = await store.claim(worker, 1, request_id="last")
    await keeper.round()
    await store.set_clock(-HOURS)
    await keeper.round()
    assert await store.claim(worker, 1, request_id="last") == last


async def test_a_rate_limited_type_goes_on_after_a_step_back(store: World) -> None:
    await store.run(store.ops.limit("work", rate=2.0))
    await store.submit_all([new_task("work") for _ in range(10)])
    await goes_on_after_a_step_back(store)


async def goes_on_after_a_step_back(store: World) -> None:
    worker = await store.worker(lease=80_000.0)
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(HOURS)
    assert len(await store.claim(worker)) == 2
    await keeper.round()
    await store.set_clock(-HOURS)
    await keeper.round()
    assert len(await store.claim(worker)) == 0
    await store.advance(1.0)
    assert len(await store.claim(worker)) == 2


async def test_a_global_rate_limit_goes_on_after_a_step_back(store: World) -> None:
    await store.run(store.ops.limit(None, rate=2.0))
    await store.submit_all([new_task("work") for _ in range(10)])
    await goes_on_after_a_step_back(store)


async def test_an_open_circuit_lets_one_task_through_after_a_step_back(store: World) -> None:
    await store.run(store.ops.limit("work", breaker=Breaker(1, 60.0, 30.0)))
    await store.submit_all([new_task("work", max_retries=0) for _ in range(3)])
    worker = await store.worker(lease=80_000.0)
    await store.set_clock(HOURS)
    await store.claim_and_settle(worker, Failed(TaskError("x")))
    assert await store.claim(worker) == []
    await store.set_clock(-HOURS)
    (probe,) = await store.claim(worker)
    await store.settle(probe)
    assert len(await store.claim(worker)) == 1


@pytest.mark.parametrize("outcome", [Failed(TaskError("x"), after=20), Snoozed(20)])
async def test_a_retry_or_a_snooze_waits_its_time_after_a_step_back(
    store: World, outcome: Failed | Snoozed
) -> None:
    worker = await store.worker(lease=80_000.0)
    task_id = await store.submit()
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(HOURS)
    await store.claim_and_settle(worker, outcome)
    await keeper.round()
    await store.set_clock(-HOURS)
    await keeper.round()
    await store.advance(15)
    assert await store.claim(worker) == []
    await store.advance(6)
    assert (await store.claim_one(worker)).task_id == task_id


async def test_a_delay_is_kept_after_a_step_back_and_a_date_stays(store: World) -> None:
    worker = await store.worker(lease=80_000.0)
    keeper = store.keeper()
    before = await store.submit(delay_seconds=3 * HOURS)
    await keeper.round()
    await store.set_clock(HOURS)
    delayed = await store.submit(delay_seconds=60)
    moment = datetime.now(UTC) + timedelta(seconds=HOURS + 600)
    dated = await store.submit(run_at=moment)
    failed = await store.submit(run_at=datetime.now(UTC) - timedelta(days=1))
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=120))
    await keeper.round()
    await store.set_clock(-HOURS)
    due = (await store.task(before)).run_at
    await keeper.round()
    assert (await store.task(dated)).run_at == moment
    assert (await store.task(before)).run_at == due
    await store.advance(55)
    assert await store.claim(worker) == []
    await store.advance(6)
    assert (await store.claim_one(worker)).task_id == delayed
    await store.advance(61)
    assert (await store.claim_one(worker)).task_id == failed
    await store.advance(3600)
    assert await store.claim(worker) == [], "a date is never brought forward"
    await store.advance(HOURS)
    assert (await store.claim_one(worker)).task_id == dated


async def test_many_times_are_corrected_in_parts(store: World) -> None:
    count = 1_200
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(HOURS)
    for start in range(0, count, 600):
        amount = min(600, count - start)
        await store.submit_all([new_task("queued") for _ in range(amount)])
        await store.submit_all([new_task("delayed", delay_seconds=5) for _ in range(amount)])
        await store.submit_all([new_task("other", delay_seconds=5) for _ in range(amount)])
    await keeper.round()
    await store.set_clock(-HOURS)
    for _ in range(5):
        await keeper.round()
    await store.advance(6)
    while (await store.behind.run(store.behind.ops.move_due())).more:
        pass
    assert await store.census() == {State.QUEUED: 3 * count}


async def test_who_was_queued_while_the_clock_was_ahead_is_not_overtaken(store: World) -> None:
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(HOURS)
    first = await store.submit()
    await keeper.round()
    await store.set_clock(-HOURS)
    await keeper.round()
    await store.advance(1)
    second = await store.submit()
    worker = await store.worker()
    assert [task.task_id for task in await store.claim(worker)] == [first, second]
    assert (await store.task(first)).ready_at < (await store.task(second)).ready_at


async def test_nothing_is_deleted_at_once_after_a_step_forward(store: World) -> None:
    worker = await store.worker(lease=80_000.0)
    task_id = await store.submit()
    await store.claim_and_settle(worker)
    keeper = store.keeper()
    await keeper.round()
    await store.set_clock(30 * 86_400.0)
    await store.advance(120)
    await keeper.round()
    assert await store.state(task_id) is State.COMPLETED
    await store.advance(3_700)
    await keeper.round()
    assert await store.run(store.ops.get([task_id])) == [None]


async def test_samples_go_on_after_a_step_back(store: World) -> None:
    keeper = store.keeper()
    await store.set_clock(HOURS)
    await keeper.round()
    await store.set_clock(-HOURS)
    await keeper.round()
    behind = store.behind
    assert len(await behind.run(behind.ops.samples(0, 10))) == 2
