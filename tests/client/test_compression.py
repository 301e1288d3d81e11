"""Compressed results as an application meets them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fairlane import Fairlane, InvalidInput
from fairlane.core.compression import stored_form
from fairlane.core.errors import DriverMissing, NotSupported, ResultDamaged
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, NewWorker
from fairlane.core.outcomes import Completed
from fairlane.engines import compression
from tests.fixtures.stores import settlement

LARGE = b'"%b"' % (b"again and " * 1_000)


async def finish(app: Fairlane, result: bytes) -> None:
    """Complete the task that waits."""
    worker, ops = new_id(), app.backend.ops
    await app.run(ops.register(NewWorker(worker)))
    (task,) = (await app.run(ops.claim(Ask(worker, new_id(), 1)))).tasks
    await app.run(ops.settle([settlement(task, Completed(result))]))


async def test_a_handle_gets_it_plain(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'tasks.db'}"
    async with Fairlane(url, compress_results=1_000) as app:

        @app.task
        async def talk() -> str:
            return "again and " * 1_000

        handle = await talk.submit()
        await finish(app, LARGE)
        assert await handle.result() == "again and " * 1_000
        damaged = await talk.submit()
        await finish(app, stored_form(b"damaged"))
        with pytest.raises(ResultDamaged):
            await damaged.result()
    assert b"again and again" not in (tmp_path / "tasks.db").read_bytes()


@pytest.mark.parametrize("wrong", [0, -5, "large", True])
def test_the_size_is_checked_at_once(wrong: int) -> None:
    with pytest.raises(InvalidInput, match="compress_results is a number of bytes"):
        Fairlane("sqlite://", compress_results=wrong)


def test_a_server_compresses_by_itself() -> None:
    with (
        Fairlane("http://127.0.0.1:1", compress_results=1) as app,
        pytest.raises(NotSupported, match="compress_results too"),
    ):
        app.stats_sync()


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    for name in ("driver", "operations"):
        monkeypatch.delitem(sys.modules, f"{compression.__name__}.{name}", raising=False)
    with (
        Fairlane("sqlite://", compress_results=1) as app,
        pytest.raises(DriverMissing, match=r"pip install 'fairlane\[compression\]'"),
    ):
        app.stats_sync()
