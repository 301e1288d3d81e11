"""How a SQLite store learns of other processes' commits: from the kernel, or by looking."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.model import Ask, NewWorker
from fairlane.core.submission import new_task
from fairlane.engines.sqlite import wakeup
from fairlane.engines.sqlite.notices import Notices

FOREVER = 3600.0
PATIENCE = 20.0


async def opened(path: Path) -> Backend:
    backend = engines.open(f"sqlite:///{path}")
    await backend.run(backend.ops.migrate())
    return backend


async def test_the_kernel_tells_of_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup, "POLL_SECONDS", FOREVER)
    async with await opened(tmp_path / "tasks.db") as ours, await opened(ours_path(ours)) as theirs:
        listening = await ours.driver.listen()
        waiting = asyncio.create_task(listening.wait(PATIENCE))
        await asyncio.sleep(0)
        await theirs.run(theirs.ops.submit([new_task("work")]))
        assert await waiting
        await listening.aclose()


async def test_where_the_kernel_tells_nothing_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notices, "of", lambda _: None)
    async with await opened(tmp_path / "tasks.db") as ours, await opened(ours_path(ours)) as theirs:
        listening = await ours.driver.listen()
        for _ in range(2):
            waiting = asyncio.create_task(listening.wait(PATIENCE))
            await asyncio.sleep(0)
            await theirs.run(theirs.ops.submit([new_task("work")]))
            assert await waiting
        await listening.aclose()


async def test_waiting_costs_next_to_nothing(tmp_path: Path) -> None:
    """By the looks that are taken: none while nobody writes."""
    async with await opened(tmp_path / "tasks.db") as ours:
        listening = await ours.driver.listen()
        looks: list[float] = []
        watch = listening._watch  # type: ignore[attr-defined]
        version = watch.version

        def counted() -> int:
            looks.append(time.monotonic())
            return int(version())

        watch.version = counted
        assert not await listening.wait(0.3)
        assert len(looks) <= 2, "at the beginning, and at the end"
        await listening.aclose()


async def test_commits_of_our_own_are_no_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeup, "DOUBT_SECONDS", FOREVER)
    async with await opened(tmp_path / "tasks.db") as ours, await opened(ours_path(ours)) as theirs:
        listening = await ours.driver.listen()
        await ours.run(ours.ops.register(NewWorker("me", capacity=1)))
        assert not await listening.wait(0.1)
        waiting = asyncio.create_task(listening.wait(0.1))
        await asyncio.sleep(0)
        await ours.run(ours.ops.register(NewWorker("me-too", capacity=1)))
        assert not await waiting
        await ours.run(ours.ops.submit([new_task("work")]))
        assert await listening.wait(PATIENCE), "there is work"
        await theirs.run(theirs.ops.submit([new_task("work")]))
        assert await listening.wait(PATIENCE)
        await listening.aclose()


async def test_a_commit_of_our_own_that_changed_nothing_hides_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeup, "DOUBT_SECONDS", FOREVER)
    async with await opened(tmp_path / "tasks.db") as ours, await opened(ours_path(ours)) as theirs:
        await ours.run(ours.ops.register(NewWorker("me", capacity=1)))
        listening = await ours.driver.listen()
        await ours.run(ours.ops.claim(Ask("me", "request", 1)))  # there is nothing
        waiting = asyncio.create_task(listening.wait(PATIENCE))
        await asyncio.sleep(0)
        await theirs.run(theirs.ops.submit([new_task("work")]))
        assert await waiting
        await listening.aclose()


async def test_what_our_own_commit_hides_is_looked_for_later(tmp_path: Path) -> None:
    async with await opened(tmp_path / "tasks.db") as ours, await opened(ours_path(ours)) as theirs:
        listening = await ours.driver.listen()
        await theirs.run(theirs.ops.submit([new_task("work")]))
        await ours.run(ours.ops.register(NewWorker("me", capacity=1)))
        assert await listening.wait(PATIENCE)
        await listening.aclose()


def test_there_are_no_notices_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert Notices.of(tmp_path / "nothing") is None


def ours_path(backend: Backend) -> Path:
    path = backend.driver._database.path  # type: ignore[attr-defined]
    assert isinstance(path, Path)
    return path
