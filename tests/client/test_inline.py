"""Tasks that run in place, and the pytest plugin."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest

from fairlane import (
    GIVEN,
    Context,
    Fairlane,
    Retry,
    Shared,
    Snooze,
    State,
    TaskFailed,
)


async def test_a_submission_runs_in_place(tmp_path: Path) -> None:
    app = Fairlane(f"sqlite:///{tmp_path / 'tasks.db'}")

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    @app.task
    def quadruple(ctx: Context, n: int) -> int:
        ctx.progress(50)
        return int(double.submit_sync(n=n).task_id is not None) * 4 * n

    with app.inline():
        handle = await double.submit(n=4)
        assert await handle.status() is State.COMPLETED
        assert await handle.result() == 8
        assert await (await quadruple.submit(n=1)).result() == 4
        many = await app.submit_many([double.prepare(n=n) for n in range(3)])
        assert [await each.result() for each in many] == [0, 2, 4]
    assert not (tmp_path / "tasks.db").exists()
    await app.aclose()


def test_from_ordinary_code_too() -> None:
    app = Fairlane("sqlite://")

    @app.task
    async def work(n: int) -> int:
        return n

    with app.inline():
        handle = work.submit_sync(n=3)
        assert asyncio.run(handle.result()) == 3


async def test_retries_delays_and_snoozes_do_not_wait(app: Fairlane) -> None:
    runs: list[str] = []

    @app.task(max_retries=2)
    async def shaky(ctx: Context) -> int:
        runs.append("shaky")
        if ctx.attempt == 1:
            raise Retry(after=3600)
        if ctx.attempt == 2:
            raise Snooze(7200)
        return ctx.attempt

    @app.task(max_retries=1, required_capabilities={"gpu"})
    def hopeless() -> None:
        runs.append("hopeless")
        raise ValueError("no")

    with app.inline():
        assert await (await shaky.options(delay_seconds=600).submit()).result() == 3
        handle = await hopeless.submit()
        with pytest.raises(TaskFailed, match="dead_letter: no"):
            await handle.result()
    assert runs == ["shaky"] * 3 + ["hopeless"] * 2


async def test_what_surrounds_a_run_is_there(app: Fairlane) -> None:
    @app.lifespan
    @asynccontextmanager
    async def up() -> AsyncIterator[Mapping[str, Any]]:
        yield {"db": "pool"}

    @app.around
    async def loud(ctx: Context, run: Any) -> Any:
        return (await run()).upper()

    @app.task
    async def name(db: Annotated[str, Shared("db")] = GIVEN) -> str:
        return db

    @app.task
    async def within(ctx: Context) -> str:
        async with ctx.transaction() as connection:
            connection.execute("CREATE TABLE mine (n)")
        return "not kept"

    with app.inline():
        assert await (await name.submit()).result() == "POOL"
        assert await (await within.submit()).result() is None


async def test_time_limits_hold_and_endless_snoozing_ends(app: Fairlane) -> None:
    @app.task(timeout=0.01, max_retries=0)
    async def slow() -> None:
        await asyncio.Event().wait()

    @app.task
    async def never() -> None:
        raise Snooze(1)

    with app.inline():
        handle = await slow.submit()
        with pytest.raises(TaskFailed, match="time limit"):
            await handle.result()
        assert await (await never.submit()).status() is State.SCHEDULED


async def test_a_test_that_is_cancelled_stops(app: Fairlane) -> None:
    begun = asyncio.Event()

    @app.task
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    with app.inline():
        submission = asyncio.create_task(endless.submit())
        await begun.wait()
        submission.cancel()
        with pytest.raises(asyncio.CancelledError):
            await submission


PLUGIN = """
def test_a_clock_to_move(fairlane_app):
    names = []

    @fairlane_app.task
    async def greet(name: str) -> None:
        names.append(name)

    greet.options(delay_seconds=60).submit_sync(name="Ada")
    assert (fairlane_app.work_sync(), names) == (0, [])
    fairlane_app.advance(61)
    assert (fairlane_app.work_sync(), names) == (1, ["Ada"])
"""


def test_the_plugin_gives_an_application_in_memory(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "fairlane.testing", "-p", "no:valkey"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
