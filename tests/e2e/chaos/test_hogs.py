"""Handlers that block the whole interpreter for longer than the lease."""

from __future__ import annotations

import pytest

from fairlane import State
from fairlane.core.submission import new_task
from tests.e2e.chaos.arena import FULL, Arena, until
from tests.e2e.history.terms import Terms

ROUNDS = 10 if FULL else 1
LEASE = 3.0
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
