"""Handlers in processes of their own: real processes, really killed."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop

from fairlane import Fairlane, State
from fairlane.core.errors import InvalidHandler, InvalidWorker
from fairlane.worker import processes
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker
from tests.fixtures.process import gone
from tests.fixtures.stores import World
from tests.worker import isolated
from tests.worker.isolated import TARGET
from tests.worker.kit import PATIENCE, ended, looked, seen, working


@pytest.fixture
async def app(memory: World) -> AsyncIterator[Fairlane]:
    """The application as this process has it, on this test's store."""
    isolated.app._connection.adopt(memory.backend)
    yield isolated.app
    await isolated.app.aclose()


async def until_gone(*pids: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while not all(gone(pid) for pid in pids):  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.01)


async def test_results_cross_the_boundary_and_children_are_kept(app: Fairlane) -> None:
    async with working(app, target=TARGET, concurrency=1):
        first = await (await isolated.double.submit(n=4)).result(PATIENCE)
        second = await (await isolated.double.submit(n=5)).result(PATIENCE)
        assert await (await isolated.double_async.submit(n=6)).result(PATIENCE) == [12, 1, True]
    assert (first["doubled"], second["doubled"]) == (8, 10)
    assert first["pid"] == second["pid"] != os.getpid()
    await until_gone(first["pid"])


async def test_an_ordinary_handler_sees_no_event_loop(app: Fairlane) -> None:
    """It may wait for another task with `result_sync`, which is refused where a loop runs."""
    async with working(app, target=TARGET):
        assert await (await isolated.has_event_loop.submit()).result(PATIENCE) is False
        assert (await (await isolated.double.submit(n=2)).result(PATIENCE))["doubled"] == 4


async def test_children_make_room_for_new_ones(app: Fairlane) -> None:
    async with working(app, target=TARGET, concurrency=1, tasks_per_child=2):
        pids = [
            (await (await isolated.double.submit(n=n)).result(PATIENCE))["pid"] for n in range(5)
        ]
        await until_gone(pids[0], pids[2])
    assert [pids.index(pid) for pid in pids] == [0, 0, 2, 2, 4]
    await until_gone(pids[4])


async def test_a_run_that_wants_too_much_memory_fails_and_nothing_else(app: Fairlane) -> None:
    async with working(app, target=TARGET, concurrency=1):
        first = await (await isolated.gather.submit(megabytes=32)).result(PATIENCE)
        task = await ended(app, (await isolated.gather.submit(megabytes=512)).task_id)
        other = await (await isolated.gather.submit(megabytes=32)).result(PATIENCE)
    assert task.error is not None
    assert (task.status, task.error.code) == (State.DEAD_LETTER, "MemoryError")
    assert task.error.message == (
        "The handler needed more memory than its memory_limit of 67,108,864 bytes."
    )
    assert "isolated.py" in (task.error.traceback or "")
    assert first["bytes"] == other["bytes"] == 32 * 1024**2
    assert other["pid"] != first["pid"]  # what ran out of memory is not built upon
    await until_gone(first["pid"])


def test_a_limit_of_memory_is_one_of_a_process() -> None:
    app = Fairlane("sqlite://")
    for options in (
        {"memory_limit": 1024},
        {"memory_limit": 0, "isolation": "process"},
        {"memory_limit": "1 GB", "isolation": "process"},
    ):
        with pytest.raises(InvalidHandler, match="whole number of bytes"):
            app.task(**options)(print)


async def test_what_a_child_logs_is_logged_here(
    app: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "shop")
    async with working(app, target=TARGET):
        pid = await (await isolated.tell.submit(text="good day")).result(PATIENCE)
    told, wrong = (record for record in caplog.records if record.name == "shop.tell")
    assert (told.getMessage(), told.levelname, told.process) == ("good day \\ud800", "INFO", pid)
    assert (told.module, told.funcName) == ("isolated", "tell")
    assert (wrong.getMessage(), wrong.exc_info) == ("it went wrong", None)
    assert wrong.exc_text is not None
    assert wrong.exc_text.startswith("Traceback")
    assert wrong.exc_text.endswith("invalid literal for int() with base 10: 'no luck'")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        *((f"exit-{code}", f"exit code {code} ") for code in (0, 1, 2, 3, 70, 255)),
        ("abort", "SIGABRT"),
        ("segfault", "SIGSEGV"),
        ("kill", "SIGKILL (out of memory, perhaps)"),
        ("fork", "exit code 7"),
        ("close", "broke its line to the worker"),
        ("babble", "broke its line to the worker"),
    ],
)
async def test_a_death_is_a_failed_attempt_and_nobody_else_s_trouble(
    app: Fairlane, monkeypatch: pytest.MonkeyPatch, how: str, words: str
) -> None:
    monkeypatch.setattr(processes, "LEAVE_SECONDS", 1.0)
    async with working(app, target=TARGET, concurrency=2):
        bad = await isolated.end.submit(how=how)
        good = await isolated.double.submit(n=1)
        task = await ended(app, bad.task_id)
        assert (await good.result(PATIENCE))["doubled"] == 2
        assert (await (await isolated.double.submit(n=2)).result(PATIENCE))["doubled"] == 4
    assert task.error is not None
    assert (task.status, task.error.code) == (State.DEAD_LETTER, "PROCESS_DIED")
    assert task.error.retriable
    assert words in task.error.message


async def test_leaving_by_exit_is_an_ordinary_failure(app: Fairlane) -> None:
    async with working(app, target=TARGET):
        task = await ended(app, (await isolated.end.submit(how="system-exit")).task_id)
    assert task.error is not None
    assert (task.error.code, task.error.message) == ("SystemExit", "3")


async def test_exceptions_cross_the_boundary_as_text(app: Fairlane) -> None:
    async with working(app, target=TARGET):
        handles = {
            how: await isolated.fail.submit(how=how)
            for how in ("value", "retry", "snooze", "fail", "result")
        }
        value = await seen(app, handles["value"].task_id, State.RETRYING)
        retry = await seen(app, handles["retry"].task_id, State.RETRYING)
        snooze = await seen(app, handles["snooze"].task_id, State.SCHEDULED)
        fail = await seen(app, handles["fail"].task_id, State.FAILED)
        result = await seen(app, handles["result"].task_id, State.FAILED)
    assert value.error is not None
    assert (value.error.code, value.error.message) == ("ValueError", "wrong \\ud800")
    assert "isolated.py" in (value.error.traceback or "")
    assert retry.next_retry_at is not None
    assert (retry.next_retry_at - retry.updated_at).total_seconds() == 60
    assert (snooze.run_at - snooze.updated_at).total_seconds() == 60
    assert fail.error is not None
    assert fail.error.code == "NO"
    assert result.error is not None
    assert result.error.code == "INVALID_RESULT"


async def test_a_handler_that_never_ends_is_killed_with_all_it_started(
    app: Fairlane, tmp_path: Path
) -> None:
    # A child is warm by then: its time must not be up before it has begun.
    async with working(app, target=TARGET, concurrency=1):
        await (await isolated.double.submit(n=1)).result(PATIENCE)
        task = await ended(app, (await isolated.spin.submit(folder=str(tmp_path))).task_id)
        assert task.error is not None
        assert task.error.code == "TIMEOUT"
        await until_gone(*map(int, (tmp_path / "pids").read_text().split()))
        assert (await (await isolated.double.submit(n=2)).result(PATIENCE))["doubled"] == 4


async def test_progress_and_cancellation_cross_the_boundary(app: Fairlane, tmp_path: Path) -> None:
    async with working(app, target=TARGET):
        handle = await isolated.wait_for.submit(folder=str(tmp_path))
        task = await looked(app, handle.task_id, lambda task: task.progress is not None)
        assert task.progress is not None
        assert (task.progress.percent, task.progress.message) == (40, "waiting")
        await handle.cancel()
        await until_gone(int((tmp_path / "pid").read_text()))


async def test_a_drain_waits_for_children(app: Fairlane, tmp_path: Path) -> None:
    worker = Worker(app, Config(target=TARGET, maintenance=False, grace=PATIENCE))
    run = asyncio.create_task(worker.run(signals=False))
    handle = await isolated.wait_for.submit(folder=str(tmp_path))
    await looked(app, handle.task_id, lambda task: task.progress is not None)
    worker.stop()
    (tmp_path / "go").touch()
    await run
    assert await handle.result(PATIENCE) == "gone on"


async def test_a_child_that_cannot_begin_says_why(
    app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_UP_IN", str(os.getpid()))
    async with working(app, target=TARGET):
        handle = await isolated.end.submit(how="exit")
        task = await ended(app, handle.task_id)
    assert task.error is not None
    assert (task.error.code, task.error.retriable) == ("PROCESS_DIED", True)
    assert "cannot be started: no database here" in task.error.message


async def test_a_child_uses_the_worker_s_store(app: Fairlane) -> None:
    app.url = "sqlite:///elsewhere.db"
    try:
        async with working(app, target=TARGET):
            assert await (await isolated.where.submit()).result(PATIENCE) == app.url
    finally:
        app.url = "sqlite://"


def test_it_works_on_uvloop_too() -> None:
    async def main() -> None:
        async with working(isolated.app, target=TARGET, concurrency=1):
            assert (await (await isolated.double.submit(n=1)).result(PATIENCE))["doubled"] == 2
            task = await ended(isolated.app, (await isolated.end.submit(how="segfault")).task_id)
            assert task.error is not None
            assert "SIGSEGV" in task.error.message
        await isolated.app.aclose()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def test_an_application_that_cannot_be_imported_is_told_at_once() -> None:
    app = Fairlane("sqlite://")

    @app.task(isolation="process")
    def apart() -> None: ...

    for target, words in (
        (None, 'Config(target="module:app")'),
        ("nowhere", "module:attribute"),
        ("tests.worker.nowhere:app", "ModuleNotFoundError"),
        ("tests.worker.isolated:nothing", "AttributeError"),
        ("tests.worker.isolated:TARGET", "not a Fairlane application"),
        (TARGET, "has no task apart"),
    ):
        with pytest.raises(InvalidWorker, match=re.escape(words)):
            await Worker(app, Config(target=target)).run(signals=False)


ORPHAN = """
import asyncio, sys
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker
from tests.worker import isolated

async def main(folder):
    await isolated.wait_for.submit(folder=folder)
    await Worker(isolated.app, Config(target=isolated.TARGET)).run()

asyncio.run(main(sys.argv[1]))
"""


async def test_children_end_with_their_parent(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN, str(tmp_path)], cwd=root)
    try:
        async with asyncio.timeout(PATIENCE):
            while not (pid := tmp_path / "pid").exists() or not pid.read_text():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        parent.kill()
        parent.wait()
    await until_gone(int(pid.read_text()))
