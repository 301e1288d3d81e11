"""A program that waits for a task that nobody runs says so after a few seconds."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairlane import Fairlane, Handle
from fairlane.client import wait_notes
from fairlane.client.wait_notes import NOTE_SECONDS, WaitNotes
from fairlane.core.model import NewWorker
from fairlane.core.why import NOBODY, Reason
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, REMOTE, World, opened
from tests.worker.kit import PATIENCE, application, working

NO_WORKER = Reason("no_worker", NOBODY)


class Lines(logging.Handler):
    """The lines of the log, for those who wait for one."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self.logged = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        assert record.levelno == logging.WARNING
        self.messages.append(record.getMessage())
        self.logged.set()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    monkeypatch.setattr(wait_notes, "NOTE_SECONDS", 0.05)
    found = Lines()
    wait_notes.logger.addHandler(found)
    yield found
    wait_notes.logger.removeHandler(found)


@pytest.fixture(params=[*KINDS, REMOTE])
async def app(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Fairlane]:
    async with opened(request.param, servers, tmp_path) as world:
        yield defined(world)


@pytest.fixture
async def memory(servers: Servers, tmp_path: Path) -> AsyncIterator[World]:
    async with opened("sqlite-memory", servers, tmp_path) as world:
        yield world


def defined(world: World) -> Fairlane:
    app = application(world)

    @app.task
    async def greet() -> str:
        return "hello"

    return app


async def waited_for(handle: Handle[str], lines: Lines) -> None:
    """Wait for a result until a line is logged, or the result is there."""
    waiting = asyncio.create_task(handle.result(PATIENCE))
    logged = asyncio.create_task(asyncio.to_thread(lines.logged.wait, PATIENCE))
    await asyncio.wait([waiting, logged], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    lines.logged.set()
    with suppress(asyncio.CancelledError):
        await waiting
    await logged


async def test_a_forgotten_worker_is_logged_while_the_program_waits(
    app: Fairlane, lines: Lines
) -> None:
    handle = await app.tasks["greet"].submit()
    await waited_for(handle, lines)
    wanted = f"The result of task {handle.task_id} does not come. {NOBODY}"
    assert lines.messages == [wanted]


async def test_a_type_that_no_worker_serves_is_logged(memory: World, lines: Lines) -> None:
    app = defined(memory)
    await memory.run(memory.ops.register(NewWorker("w", types=frozenset({"other"}))))
    await waited_for(await app.tasks["greet"].submit(), lines)
    assert "No worker serves it: it needs queue default, type greet." in lines.messages[0]


async def test_ordinary_code_is_told_too(memory: World, lines: Lines) -> None:
    app = defined(memory)
    handle = await app.tasks["greet"].submit()
    waiting = asyncio.create_task(asyncio.to_thread(handle.result_sync, PATIENCE))
    await asyncio.to_thread(lines.logged.wait, PATIENCE)
    async with working(app):
        assert await waiting == "hello"
    wanted = f"The result of task {handle.task_id} does not come. {NOBODY}"
    assert lines.messages == [wanted]


async def test_a_store_that_cannot_say_why_does_not_disturb_who_waits(
    memory: World, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = defined(memory)
    asked = asyncio.Event()

    async def why(_: str) -> None:
        asked.set()
        raise OSError("away")

    monkeypatch.setattr(app, "why", why)
    handle = await app.tasks["greet"].submit()
    waiting = asyncio.create_task(handle.result(PATIENCE))
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
    async with working(app):
        assert await waiting == "hello"
    assert lines.messages == []


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_every_task_has_its_turn_after_a_while() -> None:
    clock = Clock()
    notes = WaitNotes(clock)
    assert notes.choose(["a", "b"]) is None  # not at once
    clock.now += NOTE_SECONDS - 0.1
    assert notes.choose(["a", "b"]) is None
    clock.now += 0.1
    assert notes.choose(["a", "b", "new"]) == "a"
    assert notes.choose(["a", "b", "new"]) is None
    chosen = []
    for _ in range(4):
        clock.now += NOTE_SECONDS
        chosen.append(notes.choose(["a", "b", "new"]))
    assert chosen == ["b", "new", "a", "b"]
    clock.now += NOTE_SECONDS
    assert notes.choose(["newest"]) is None


def test_the_same_reason_is_logged_once_in_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    notes = WaitNotes(clock)
    for task_id in "abc":
        notes.log(task_id, [NO_WORKER])
    notes.log("d", [Reason("paused", "Everything is paused."), NO_WORKER])
    notes.log("d", [Reason("held_back", "Its handlers hang."), NO_WORKER])
    clock.now += 61
    notes.log("e", [NO_WORKER])
    assert caplog.messages == [
        f"The result of task a does not come. {NOBODY}",
        "The result of task d does not come. Everything is paused.",
        "The result of task d does not come. Its handlers hang.",
        f"The result of task e does not come. {NOBODY}",
    ]


@pytest.mark.parametrize(
    "reasons",
    [
        None,
        [],
        [Reason("position", "It is next in line."), NO_WORKER],
        [Reason("due", "It is due in 9 s."), NO_WORKER],
    ],
)
def test_what_waits_as_it_should_is_not_logged(
    reasons: list[Reason] | None, caplog: pytest.LogCaptureFixture
) -> None:
    WaitNotes().log("a", reasons)
    assert caplog.messages == []
