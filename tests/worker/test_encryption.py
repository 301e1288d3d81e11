"""Workers and applications whose store is encrypted, and workers that lack the key."""

from __future__ import annotations

import logging
import sqlite3
import sys
from pathlib import Path

import msgspec
import pytest

from fairlane import Context, Fairlane, State, engines
from fairlane.core.errors import DriverMissing, KeyMissing
from fairlane.core.sealing import Key, parsed
from fairlane.core.submission import new_task
from fairlane.engines.sqlite.engine import SqliteOperations
from fairlane.runtime.execution import UNREADABLE
from tests.conformance.test_encryption import keyed
from tests.fixtures.raw import written
from tests.fixtures.stores import World
from tests.worker import sealed
from tests.worker.kit import PATIENCE, application, ended, looked, seen, working

KEY, OTHER = Key("k1", b"1" * 32), Key("k2", b"2" * 32)


def whispering(world: World) -> Fairlane:
    """An application with a task that says its argument quietly."""
    app = application(world)

    @app.task(name="whisper")
    async def whisper(text: str) -> str:
        return text.lower()

    return app


async def test_from_submission_to_result(world: World) -> None:
    app = whispering(keyed(world, KEY))
    async with working(app):
        handle = await app.submit(app.tasks["whisper"].prepare("HUSH NOW"))
        assert await handle.result(PATIENCE) == "hush now"
    raw = await written(world.backend, world.url)
    assert b"HUSH NOW" not in raw
    assert b"hush now" not in raw
    with pytest.raises(KeyMissing, match="k1"):
        await application(world).result(handle.task_id, PATIENCE)


@pytest.mark.parametrize("keys", [(), (OTHER,)], ids=["no keys", "another key"])
async def test_a_worker_without_the_key_leaves_tasks_alone(
    memory: World, keys: tuple[Key, ...], caplog: pytest.LogCaptureFixture
) -> None:
    knowing = whispering(keyed(memory, KEY))
    handle = await knowing.submit(knowing.tasks["whisper"].prepare("HUSH"))
    with caplog.at_level(logging.ERROR, "fairlane.worker"):
        async with working(whispering(keyed(memory, *keys) if keys else memory)):
            task = await seen(knowing, handle.task_id, State.SCHEDULED)
    assert (task.retry_count, task.attempts[0].outcome) == (0, "snoozed")
    assert "encryption key k1" in caplog.text
    await memory.advance(61)
    async with working(knowing):
        assert await handle.result(PATIENCE) == "hush"


async def test_what_was_altered_fails_and_does_not_run(memory: World) -> None:
    world = keyed(memory, KEY)
    app = whispering(world)
    sealed_for_another = (await memory.task(await world.submit(queue="other"))).payload
    forged = msgspec.structs.replace(new_task("whisper"), payload=sealed_for_another)
    (task_id,) = await memory.submit_all([forged])
    async with working(app, queues=frozenset({"default"})):
        task = await ended(app, task_id)
    assert task.status is State.FAILED
    assert task.error is not None
    assert (task.error.code, task.error.retriable) == (UNREADABLE, False)


async def test_children_have_the_keys_of_their_worker(tmp_path: Path) -> None:
    app = sealed.app
    app.url, app.encryption_keys = f"sqlite:///{tmp_path / 'tasks.db'}", (KEY,)
    try:
        async with working(app, target=sealed.TARGET):
            first = await sealed.whisper_apart.submit("HUSH")
            assert await first.result(PATIENCE) == "hush"
            (second,) = (await app.list(type="whisper")).tasks
            assert (await ended(app, second.task_id)).result == "hush again"
    finally:
        await app.aclose()
    async with Fairlane(app.url) as blind:
        for task in (await blind.list()).tasks:
            assert parsed(task.stored.payload)
            assert parsed(task.stored.result or b"")
            with pytest.raises(KeyMissing):
                _ = task.payload


async def test_transactions_of_handlers_and_of_callers(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    app = Fairlane(f"sqlite:///{path}", encryption_keys=KEY.text)

    @app.task
    async def note(ctx: Context, text: str) -> None:
        async with ctx.transaction() as connection:
            connection.execute("CREATE TABLE notes AS SELECT ? AS text", (text,))

    await app.stats()  # so that the store is there
    with sqlite3.connect(path) as own:
        handle = await app.submit(note.prepare("HUSH"), connection=own)
    own.close()
    async with app, working(app):
        done = await looked(app, handle.task_id, lambda task: task.status is State.COMPLETED)
    assert done.payload == {"text": "HUSH"}
    with sqlite3.connect(path) as own:
        assert own.execute("SELECT text FROM notes").fetchall() == [("HUSH",)]
        ((stored,),) = own.execute("SELECT payload FROM tasks").fetchall()
    own.close()
    assert parsed(stored)


def test_inline_tasks_need_no_store_and_keep_their_keys() -> None:
    app = Fairlane("sqlite://", encryption_keys=[KEY.text])

    @app.task
    async def whisper(text: str) -> str:
        return text.lower()

    with app.inline():
        assert whisper.submit_sync("HUSH").result_sync() == "hush"
    assert app.encryption_keys == (KEY,)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    for name in ("operations", "driver"):
        monkeypatch.delitem(sys.modules, f"fairlane.engines.sealing.{name}")
    with pytest.raises(DriverMissing, match=r"fairlane\[encryption\]"):
        engines.open("sqlite://", encryption_keys=KEY.text)


def test_without_keys_there_is_no_layer_at_all() -> None:
    for keys in ((), "", [""]):
        assert type(engines.open("sqlite://", encryption_keys=keys).ops) is SqliteOperations
