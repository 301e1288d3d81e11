"""C1: workers that are killed with their hands full."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from fairlane import State
from tests.e2e.chaos.arena import FULL, LEASE, Arena, until
from tests.e2e.history.terms import Terms
from tests.fixtures.process import gone

IN_FLIGHT = {"on-loop": 24, "on-thread": 24, "in-process": 2}
"""Each process of its own takes a second of a busy machine, twice."""
KILLS, RUNS_BETWEEN = (60, 1_000) if FULL else (2, 30)
LIMIT = 3
SQLITE_KILLS = 200 if FULL else 3
RATE = 100.0 if FULL else 40.0


async def test_what_it_held_is_done_by_another(arena: Arena) -> None:
    gate = str(arena.folder / "gate")
    first = await arena.worker(concurrency=50)
    for type, count in IN_FLIGHT.items():
        await arena.client.submit_some(count, type, gate=gate)
    await arena.begun(50)
    children = {run.start.pid for runs in arena.history().runs.values() for run in runs} - {
        first.pid
    }
    assert len(children) == IN_FLIGHT["in-process"]
    await arena.worker(concurrency=50)
    await first.kill()

    async def no_child_is_left() -> bool:
        return all(gone(pid) for pid in children)

    await until(no_child_is_left, "the children of the killed worker are gone")
    arena.open("gate-2")
    await arena.drained()
    _, dump = await arena.judged(Terms(lease=LEASE))
    assert Counter(task.status for task in dump.tasks.values()) == {State.COMPLETED: 50}
    for task in dump.tasks.values():
        lost, completed = task.attempts
        assert lost.outcome in {"lost", "returned"}
        assert completed.outcome == "completed"


@pytest.mark.timeout(3_600 if FULL else 120)
async def test_killed_again_and_again_under_load(arena: Arena) -> None:
    """Workers die at random and are replaced a second later; on SQL an effect happens once."""
    transactional = not (arena.remote or arena.app.url.startswith("unix"))
    types = ["on-loop", "on-thread", *(["in-transaction"] if transactional else [])]
    effects = "effects" if transactional else None
    if transactional:
        await arena.prepare_effects()
    await arena.app.run(arena.app.backend.ops.limit("on-thread", concurrency=LIMIT))
    luck = random.Random(4)
    workers = [arena.begin() for _ in range(3 if FULL else 2)]
    await arena.ready(*workers)
    async with arena.client.load(RATE, *types):
        for _ in range(KILLS):
            await arena.ended(RUNS_BETWEEN)
            await workers.pop(luck.randrange(len(workers))).kill()
            workers.append(await arena.worker())
    await arena.drained()
    terms = Terms(
        lease=LEASE,
        concurrency={"on-thread": LIMIT},
        transactional=frozenset({"in-transaction"}),
    )
    history, dump = await arena.judged(terms, effects)
    unfinished = sum(
        run.end is None
        for task_id, runs in history.runs.items()
        if dump.tasks[task_id].status is not State.CANCELLED
        for run in runs
    )
    assert unfinished <= KILLS * 4  # no more than it had slots


@pytest.mark.parametrize("arena", ["sqlite-file"], indirect=True)
@pytest.mark.timeout(3_600 if FULL else 120)
async def test_a_file_stays_whole(arena: Arena) -> None:
    """C8: killed in the middle of writes, with another process that writes on."""
    assert arena.sqlite is not None
    await arena.worker()
    async with arena.client.load(RATE, "on-loop"):
        for _ in range(SQLITE_KILLS):
            worker = arena.begin()
            await arena.healed()
            await worker.kill()
            with closing(sqlite3.connect(arena.sqlite)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    await arena.drained()
    await arena.judged(Terms(lease=LEASE))
