"""C2: workers that are restarted in good order, one after the other, cost nobody anything."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.e2e.chaos.arena import FULL, Arena
from tests.e2e.history.terms import Terms

RESTARTS, RUNS_BETWEEN = (60, 600) if FULL else (2, 30)
RATE = 100.0 if FULL else 40.0
LEASE = 30.0
"""A busy machine must not pass for a dead worker here."""


@pytest.mark.timeout(3_600 if FULL else 120)
async def test_no_attempt_is_burnt(arena: Arena) -> None:
    workers = [arena.begin(lease=LEASE) for _ in range(2)]
    await arena.ready(*workers)
    async with arena.client.load(RATE, "on-loop", "on-thread"):
        for _ in range(RESTARTS):
            await arena.client.submit_some(2, "on-loop", "on-thread", seconds=1.0)
            await arena.ended(RUNS_BETWEEN)
            await workers.pop(0).stop()
            workers.append(await arena.worker(lease=LEASE))
    await arena.drained()
    _, dump = await arena.judged(Terms(lease=LEASE))
    for task in dump.tasks.values():
        outcomes = Counter(each.outcome for each in task.attempts)
        assert outcomes.keys() <= {"completed", "failed", "released", "cancelled"}, task
        # One that was given back unstarted does not fail: its first run is another attempt.
        assert task.retry_count == outcomes["failed"] <= json.loads(task.payload).get("fails", 0)


async def test_what_outlasts_the_grace_goes_back_unburnt(arena: Arena) -> None:
    first = await arena.worker(lease=LEASE, grace=0.0)
    ids = await arena.client.submit_some(
        3, "on-loop", "on-thread", "in-process", gate=str(arena.folder / "gate")
    )
    await arena.begun(3)
    second = await arena.worker(lease=LEASE)
    await first.stop()
    arena.open("gate-2")
    await arena.drained()
    await second.stop()
    _, dump = await arena.judged(Terms(lease=LEASE))
    assert set(dump.tasks) == set(ids)
    for task in dump.tasks.values():
        assert [each.outcome for each in task.attempts] == ["released", "completed"]
        assert task.retry_count == 0
