"""A maintainer is killed in the middle of a flood of due tasks: another one goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlane.core.limits import SUBMIT_BATCH
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.e2e.chaos.arena import FULL, until
from tests.fixtures.serving import ServerProcess
from tests.fixtures.stores import World

TASKS = 1_000_000 if FULL else 60_000


@pytest.mark.timeout(1_800 if FULL else 110)
async def test_a_maintainer_that_is_killed_loses_nothing(world: World, tmp_path: Path) -> None:
    first, second = (ServerProcess(world.url, tmp_path, migrate=False) for _ in range(2))
    due = datetime.now(UTC) + timedelta(seconds=TASKS / 10_000)
    for _ in range(0, TASKS, SUBMIT_BATCH):
        tasks = [new_task("flood", run_at=due) for _ in range(SUBMIT_BATCH)]
        await world.submit_all(tasks)
    first.start()

    async def some_are_queued() -> bool:
        return await queued(world) > 0

    async def all_are_queued() -> bool:
        return await queued(world) == TASKS

    await until(some_are_queued, "the first server moves tasks", 600)
    first.kill()
    assert await queued(world) < TASKS, "it was killed too late to show anything"
    with second:
        await until(all_are_queued, "the second server moves the rest", 600)
    assert await world.census() == {State.QUEUED: TASKS}
    worker = await world.worker()
    claimed = {task.task_id for _ in range(4) for task in await world.claim(worker, 500)}
    assert len(claimed) == 2_000


async def queued(world: World) -> int:
    return (await world.census()).get(State.QUEUED, 0)
