"""Handlers that block the whole interpreter for longer than the lease, and workers that stop while
they write to a file."""

from __future__ import annotations

import asyncio
import signal

import pytest

from fairlane import State
from fairlane.core.submission import new_task
from fairlane.worker.pacemaker_process import count_waiting, state_of
from tests.e2e.chaos.arena import FULL, LOOK_SECONDS, Arena, until
from tests.e2e.chaos.workers import WorkerProcess
from tests.e2e.history.terms import Terms

ROUNDS = 10 if FULL else 1
RATE = 100.0 if FULL else 40.0
LEASE = 3.0
LONG_LEASE = 30.0
NEIGHBOURS = 6


@pytest.mark.timeout(3_600 if FULL else 120)
async def test_it_costs_nobody_an_attempt(arena: Arena) -> None:
    """Neither the task itself nor its neighbours run twice, though others look for dead workers."""
    await arena.worker(concurrency=NEIGHBOURS + 1, lease=LEASE)
    await arena.worker(concurrency=1, lease=LEASE)
    for _ in range(ROUNDS):
        await arena.client.submit_some(NEIGHBOURS, "on-loop", "on-thread", seconds=LEASE)
        await arena.client.submit("hog", seconds=3 * LEASE)
        await arena.drained()
    history, dump = await arena.judged(Terms(lease=LEASE, recovery=4 * LEASE))
    assert len(dump.tasks) == ROUNDS * (NEIGHBOURS + 1)
    for task in dump.tasks.values():
        assert task.status is State.COMPLETED
        assert len(history.runs[task.task_id]) == 1


@pytest.mark.parametrize("arena", ["sqlite-file"], indirect=True)
async def test_a_worker_that_never_gives_a_sign_again_is_not_kept_for_ever(arena: Arena) -> None:
    """It is declared dead once the time limits of its tasks are over."""
    blocked = await arena.worker(lease=1.0)
    task = new_task("hog", {"n": 1, "seconds": 60}, timeout_seconds=1, max_retries=0)
    await arena.app.run(arena.app.backend.ops.submit([task]))
    await arena.begun(1)
    await arena.worker(lease=1.0)  # somebody who looks for dead workers

    async def is_dead() -> bool:
        return await blocked.itself() is None

    await until(is_dead, "it is declared dead")
    assert blocked.running


on_a_file = pytest.mark.parametrize("arena", ["sqlite-file"], indirect=True)


@on_a_file
@pytest.mark.timeout(3_600 if FULL else 120)
async def test_a_worker_that_is_stopped_while_it_writes_keeps_nobody_from_working(
    arena: Arena,
) -> None:
    """Its pacemaker kills it, because others wait for the lock that it has."""
    await arena.worker(lease=LONG_LEASE)
    async with arena.client.load(RATE, "on-loop"):
        for _ in range(ROUNDS):
            stopped = await arena.worker(lease=LEASE)
            await stop_while_it_writes(arena, stopped)
            await stopped.killed()
            await arena.healed()
    await arena.drained()
    await arena.judged(Terms(lease=LEASE))
    assert arena.said.count("kept others from writing: it is killed") == ROUNDS


@on_a_file
async def test_a_hog_that_begins_while_its_worker_writes_keeps_nobody_from_working(
    arena: Arena,
) -> None:
    blocked = await arena.worker(lease=LEASE)
    hog = await arena.client.submit("hog-in-a-write", seconds=600.0)
    await arena.begun(1)
    await arena.worker(lease=LONG_LEASE)
    await blocked.killed()
    ids = await arena.client.submit_some(10, "on-loop")
    await arena.drained()
    _, dump = await arena.judged(Terms(lease=LEASE))
    assert {dump.tasks[each].status for each in (hog, *ids)} == {State.COMPLETED}
    assert dump.tasks[hog].attempt == 2


async def stop_while_it_writes(arena: Arena, worker: WorkerProcess) -> None:
    """Stop it, and let it go on, until it is stopped with the file's lock in its hands."""
    lock = arena.app.backend.driver.lock_file
    assert lock is not None

    async def is_stopped() -> bool:
        return state_of(worker.pid) == "T"

    while True:
        worker.signal(signal.SIGSTOP)
        await until(is_stopped, "it is stopped")
        if count_waiting(worker.pid, lock) is not None:
            return
        worker.signal(signal.SIGCONT)
        await asyncio.sleep(LOOK_SECONDS)
