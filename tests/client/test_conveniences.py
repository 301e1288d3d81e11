"""What makes the client pleasant to use: many results, timedeltas, modules to include."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from datetime import timedelta
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

import fairlane
from fairlane import Fairlane, ResultTimeout, Retry, Snooze, TaskFailed, Unique
from fairlane.core.errors import InvalidTask, InvalidTimeout
from fairlane.core.filters import new_filter
from fairlane.core.uniqueness import hold


def application(url: str = "sqlite://") -> Fairlane:
    app = Fairlane(url)

    @app.task
    async def double(n: int) -> int:
        if n < 0:
            raise ValueError("negative")
        return 2 * n

    return app


async def test_many_results_at_once() -> None:
    app = application()
    double = app.tasks["double"]
    with app.inline():
        handles = await app.submit_many([double.prepare(n) for n in range(50)])
        assert await app.results(handles) == [2 * n for n in range(50)]
        assert await asyncio.to_thread(app.results_sync, handles) == [2 * n for n in range(50)]
        assert await app.results([]) == []
        failing = await double.options(max_retries=0).submit(-1)
        with pytest.raises(TaskFailed):
            await app.results([*handles, failing])


async def test_results_that_do_not_come_in_time() -> None:
    app = application()
    async with app:
        handles = await app.submit_many([app.tasks["double"].prepare(n) for n in range(3)])
        for timeout in (0.05, timedelta(milliseconds=50)):
            with pytest.raises(ResultTimeout):
                await app.results(handles, timeout)
            with pytest.raises(ResultTimeout):
                await asyncio.to_thread(app.results_sync, handles, timeout)
            with pytest.raises(ResultTimeout, match=r"within 0\.05 s"):
                await handles[0].result(timeout)


def test_timedeltas_are_seconds() -> None:
    app = application()
    double = app.tasks["double"].options(
        timeout=timedelta(minutes=2), delay_seconds=timedelta(hours=1)
    )
    task = double.prepare(1).task
    assert (task.timeout, task.delay) == (120.0, 3600.0)
    definition = double.definition()
    assert (definition.timeout_seconds, definition.delay_seconds) == (120.0, 3600.0)
    assert Retry(after=timedelta(seconds=5)).after == 5.0
    assert Snooze(timedelta(minutes=1)).seconds == 60.0
    held = hold("t", b"{}", Unique(period=timedelta(days=1)))
    assert held is not None
    assert held.period == 86_400_000_000
    unique = app.tasks["double"].options(unique=Unique(period=timedelta(days=1))).definition()
    assert isinstance(unique.unique, Unique)
    assert unique.unique.period == 86_400.0
    with pytest.raises(InvalidTimeout):
        double.options(timeout=timedelta(0))


def test_a_connection_among_the_options(tmp_path: Path) -> None:
    app = application(f"sqlite:///{tmp_path / 'tasks.db'}")
    with app:
        double = app.tasks["double"]
        double.submit_sync(1)  # makes the store
        with sqlite3.connect(tmp_path / "tasks.db", isolation_level=None) as connection:
            connection.execute("BEGIN IMMEDIATE")
            inside = double.options(connection=connection)
            handle = inside.options(priority="low").submit_sync(2)
            connection.execute("ROLLBACK")
            assert app.get_sync(handle.task_id) is None
        connection.close()
        assert double.submit_sync(3).status_sync() == "queued"


async def test_a_call_of_another_application_is_refused(tmp_path: Path) -> None:
    one = application(f"sqlite:///{tmp_path / 'one.db'}")
    other = application(f"sqlite:///{tmp_path / 'other.db'}")
    call = one.tasks["double"].prepare(1)
    async with one, other:
        for refused in (other.submit(call), other.submit_many([call])):
            with pytest.raises(InvalidTask, match="double is a task of another application"):
                await refused
        with pytest.raises(InvalidTask):
            await asyncio.to_thread(other.submit_many_sync, [call])
        assert (await other.list()).tasks == []
        same = Fairlane(one.url)
        async with same:
            await same.submit(call)  # another door to the same store


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with an application, and tasks in two other modules."""
    name = "included_shop"
    (tmp_path / name / "tasks" / "deeper").mkdir(parents=True)
    define = f"from {name}.queue import app\n@app.task\ndef {{}}() -> None: ...\n"
    files: dict[str, str] = {
        "__init__.py": "",
        "queue.py": "from fairlane import Fairlane\n"
        f"app = Fairlane('sqlite://', include=['{name}.mail', '{name}.tasks.*'])\n",
        "mail.py": define.format("send"),
        "tasks/__init__.py": "",
        "tasks/media.py": define.format("resize"),
        "tasks/deeper/__init__.py": define.format("deep"),
    }
    for path, text in files.items():
        (tmp_path / name / path).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_modules_are_included(package: str) -> None:
    app: Fairlane = import_module(f"{package}.queue").app
    assert not app.tasks
    app.discover()
    app.discover()
    assert set(app.tasks) == {"send", "resize", "deep"}


def test_what_docs_import_has_a_name_at_the_top() -> None:
    assert fairlane.Worker.__name__ == "Worker"
    assert fairlane.Config.__name__ == "Config"
    assert fairlane.Mode("replace") is fairlane.Mode.REPLACE
    assert fairlane.errors.InvalidTask is InvalidTask
    assert fairlane.MemoryApp.__name__ == "MemoryApp"


def test_errors_can_be_imported_from_a_module() -> None:
    assert import_module("fairlane.errors").InvalidTask is InvalidTask


def test_the_filters_of_a_list_are_named() -> None:
    named = set(re.findall(r"\w+", Fairlane.list.__doc__ or ""))
    assert signature(new_filter).parameters.keys() <= named
