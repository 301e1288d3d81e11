"""C10: workers that stand still, are declared dead, and wake up with results nobody wants."""

from __future__ import annotations

import signal
from functools import partial

import pytest

from fairlane import State
from fairlane.core.model import Verdict
from tests.e2e.chaos.arena import FULL, Arena, until
from tests.e2e.chaos.workers import WorkerProcess
from tests.e2e.history.terms import Terms
from tests.fixtures.stores import settlement, verdicts_of
from tests.unit.make import claimed

ROUNDS, HELD = (17, 6) if FULL else (1, 6)
LEASE = 3.0


@pytest.mark.timeout(3_600 if FULL else 120)
async def test_late_results_are_refused(arena: Arena) -> None:
    terms = Terms(lease=LEASE, reap=5.0)
    for number in range(ROUNDS):
        zombie = await arena.worker(concurrency=HELD, lease=LEASE)
        gate = f"gate-{number}"
        ids = await arena.client.submit_some(
            HELD, "on-loop", "on-thread", gate=str(arena.folder / gate)
        )
        await arena.begun((2 * number + 1) * HELD)
        before = await zombie.itself()
        assert before is not None
        zombie.signal(signal.SIGSTOP)
        heir = await arena.worker(concurrency=HELD, lease=30.0)
        await arena.begun((2 * number + 2) * HELD)  # by the heir, once more
        arena.open(f"{gate}-1")
        zombie.signal(signal.SIGCONT)

        await until(partial(began_anew, zombie, before.worker_id), "the zombie has a new life")
        await refuses_late(arena, ids, before.worker_id)
        for task_id in ids:
            running = await arena.app.get(task_id)
            assert running is not None
            assert (running.status, running.attempt) == (State.EXECUTING, 2)
        await zombie.stop()
        arena.open(f"{gate}-2")
        await arena.drained()
        await heir.stop()
    history, dump = await arena.judged(terms)
    assert len(dump.tasks) == ROUNDS * HELD
    for task in dump.tasks.values():
        first, second = (run.start for run in history.runs[task.task_id])
        assert [each.worker_id for each in task.attempts] == [first.worker, second.worker]
        assert task.attempts[0].outcome in {"lost", "returned"}
        assert task.attempts[1].outcome == "completed"


async def began_anew(worker: WorkerProcess, old_id: str) -> bool:
    now = await worker.itself()
    return now is not None and now.worker_id != old_id


async def refuses_late(arena: Arena, ids: list[str], worker_id: str) -> None:
    """What the zombie may have said, and in any case could have."""
    late = [settlement(claimed(task_id=each, worker_id=worker_id)) for each in ids]
    verdicts = verdicts_of(await arena.app.run(arena.app.backend.ops.settle(late)))
    assert verdicts == [Verdict.STALE] * len(ids)
