"""C13: tasks that kill whoever runs them, among others that do no harm."""

from __future__ import annotations

import json

import pytest

from fairlane import State
from tests.e2e.chaos.arena import FULL, Arena
from tests.e2e.chaos.workers import WorkerProcess
from tests.e2e.history.terms import Terms

EACH, HARMLESS = (20, 5_000) if FULL else (1, 30)
HOWS = {"exit": "exit code 0", "segfault": "SIGSEGV", "kill": "SIGKILL"}


@pytest.mark.parametrize("arena", ["sqlite-file", "sqlite-file-over-http"], indirect=True)
@pytest.mark.timeout(3_600 if FULL else 120)
async def test_it_ends_in_the_dead_letters_and_others_are_unaffected(arena: Arena) -> None:
    poisoned = {
        await arena.client.submit("poison", how=how): how for how in HOWS for _ in range(EACH)
    }
    await arena.client.submit_some(HARMLESS, "on-loop", "on-thread", "in-process")
    await arena.worker()
    await arena.drained(600)
    history, dump = await arena.judged(Terms())
    for task_id, how in poisoned.items():
        task = dump.tasks[task_id]
        assert task.error is not None
        assert (task.status, task.error.reason) == (State.DEAD_LETTER, "max_retries_exceeded")
        assert task.error.code == "PROCESS_DIED"
        assert HOWS[how] in task.error.message
        assert [each.outcome for each in task.attempts] == ["failed"] * 4
        assert len(history.runs[task_id]) == 4
    for task_id in dump.tasks.keys() - poisoned:
        assert [each.outcome for each in dump.tasks[task_id].attempts] == ["completed"]


@pytest.mark.parametrize("arena", ["sqlite-file"], indirect=True)
async def test_it_does_not_kill_workers_for_ever(arena: Arena) -> None:
    """A handler that takes its worker along: looked after by a supervisor, and ended in time."""
    lease = 1.0
    supervisor = WorkerProcess(
        arena.app, arena.folder, arena.recorder, "--processes", "2", "--lease", str(lease)
    )
    try:
        poison = await arena.client.submit("poison", how="worker")
        ids = await arena.client.submit_some(10, "on-loop", "on-thread")
        await arena.drained()
        later = await arena.client.submit("on-loop")
        await arena.drained()
        await supervisor.stop()
    finally:
        supervisor.discard()
    _, dump = await arena.judged(Terms(lease=lease))
    task = dump.tasks[poison]
    assert task.error is not None
    assert (task.status, task.error.reason) == (State.DEAD_LETTER, "worker_lost")
    assert {each.outcome for each in task.attempts} <= {"lost", "returned"}
    for task_id in [*ids, later]:
        assert dump.tasks[task_id].status is State.COMPLETED
        assert json.loads(dump.tasks[task_id].result or b"") > 0
