"""C13: tasks that kill whoever runs them, among others that do no harm."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from fairlane import State
from fairlane.core.model import TaskFields
from tests.e2e.chaos.arena import FULL, PATIENCE, Arena
from tests.e2e.chaos.workers import WorkerProcess
from tests.e2e.history.terms import Terms

EACH, HARMLESS = (20, 5_000) if FULL else (1, 30)
CODES = (0, 1, 2, 3, 70, 255)
HOWS = {
    **{f"exit-{code}": f"exit code {code} " for code in CODES},
    "segfault": "SIGSEGV",
    "kill": "SIGKILL",
    "abort": "SIGABRT",
    "thread": "exit code 0 ",
    "fork": "exit code 0 ",
}


class Spoilt(NamedTuple):
    """What the store says of it in the end."""

    code: str
    words: str
    reason: str = "max_retries_exceeded"
    outcome: str = "failed"


SPOILT = {
    **{how: Spoilt("PROCESS_DIED", words) for how, words in HOWS.items()},
    "loop": Spoilt("TIMEOUT", "took longer than", "timeout", "timed_out"),
    "memory": Spoilt("MemoryError", "memory_limit of"),
}
"""Every way to spoil a process of its own. The last two do not end it: the worker does."""
ATTEMPTS = 4
LOOP_SECONDS = 3.0 if FULL else 1.0
"""Longer than a process takes to start, on a busy machine: the loop is to be what ends."""
DEATH_SECONDS = 2.0
"""What a death may take of a busy machine: most of it is the start of the next process."""
LEASE = 1.0


@pytest.mark.parametrize("arena", ["sqlite-file", "sqlite-file-over-http"], indirect=True)
@pytest.mark.timeout(3_600 if FULL else 240)
async def test_it_ends_in_the_dead_letters_and_others_are_unaffected(arena: Arena) -> None:
    poisoned = {
        await arena.client.submit(
            "poison", how=how, attempt=LOOP_SECONDS if how == "loop" else None
        ): how
        for how in SPOILT
        for _ in range(EACH)
    }
    await arena.client.submit_some(HARMLESS, "on-loop", "on-thread", "in-process")
    await arena.worker()
    await arena.drained(PATIENCE + len(poisoned) * ATTEMPTS * DEATH_SECONDS)
    history, dump = await arena.judged(Terms())
    for task_id, how in poisoned.items():
        task = dump.tasks[task_id]
        assert task.error is not None
        expected = SPOILT[how]
        assert (task.status, task.error.reason) == (State.DEAD_LETTER, expected.reason)
        assert task.error.code == expected.code
        assert expected.words in task.error.message
        assert [each.outcome for each in task.attempts] == [expected.outcome] * ATTEMPTS
        # A time limit may be over before the process is there.
        runs = len(history.runs[task_id])
        assert 0 < runs <= ATTEMPTS if how == "loop" else runs == ATTEMPTS
    for task_id in dump.tasks.keys() - poisoned:
        assert [each.outcome for each in dump.tasks[task_id].attempts] == ["completed"]


@pytest.mark.parametrize("arena", ["sqlite-file"], indirect=True)
async def test_it_does_not_kill_workers_for_ever(arena: Arena) -> None:
    """A handler that takes its worker along: looked after by a supervisor, and ended in time."""
    async with pool(arena):
        poison = await arena.client.submit("poison", how="worker")
        ids = await arena.client.submit_some(10, "on-loop", "on-thread")
        await arena.drained()
        later = await arena.client.submit("on-loop")
        await arena.drained()
    _, dump = await arena.judged(Terms(lease=LEASE))
    assert_lost(dump.tasks[poison])
    for task_id in [*ids, later]:
        assert dump.tasks[task_id].status is State.COMPLETED
        assert json.loads(dump.tasks[task_id].result or b"") > 0


# What a supervisor makes of each exit code is tested in tests/cli/test_supervisor.py; the store
# plays no part in it.
SHORT = [("exit-0", "deadly-on-loop"), ("exit-2", "deadly-on-thread")]


@pytest.mark.parametrize("arena", ["sqlite-file", *(["redis"] if FULL else [])], indirect=True)
@pytest.mark.parametrize(
    ("how", "type"),
    [(how, type) for how in HOWS for type in ("deadly-on-loop", "deadly-on-thread")]
    if FULL
    else SHORT,
)
async def test_it_does_not_end_a_pool(arena: Arena, how: str, type: str) -> None:
    """However its handler ends the worker's process, the pool goes on, and the task is counted as
    having killed its workers."""
    async with pool(arena):
        poison = await arena.client.submit(type, how=how)
        await arena.begun(4)  # three losses are free, because it had just started
        await arena.drained()
        later = await arena.client.submit_some(10, "on-loop", "on-thread")
        await arena.drained()
    _, dump = await arena.judged(Terms(lease=LEASE))
    assert_lost(dump.tasks[poison])
    assert {dump.tasks[each].status for each in later} == {State.COMPLETED}


@asynccontextmanager
async def pool(arena: Arena) -> AsyncIterator[None]:
    """Two processes and their supervisor, which ends in order."""
    flags = ("--processes", "2", "--lease", str(LEASE))
    supervisor = WorkerProcess(arena.app, arena.folder, arena.recorder, *flags)
    try:
        yield
        assert supervisor.running
        await supervisor.stop()
    finally:
        supervisor.discard()


def assert_lost(task: TaskFields) -> None:
    assert task.error is not None
    assert (task.status, task.error.reason) == (State.DEAD_LETTER, "worker_lost")
    assert {each.outcome for each in task.attempts} <= {"lost", "returned"}
