"""Workers and applications whose store is encrypted, and workers that lack the key."""

from __future__ import annotations

import logging
import sqlite3
import sys
from pathlib import Path

import msgspec
import pytest

from fairlane import Context, Fairlane, State, engines
from fairlane.core.encryption import Encryption
from fairlane.core.errors import DriverMissing, EncryptionRequired, KeyMissing
from fairlane.core.sealing import Key, parsed
from fairlane.core.submission import new_task
from fairlane.engines.sqlite.engine import SqliteOperations
from fairlane.runtime.execution import RESULT_REFUSED, UNREADABLE, put_off
from fairlane.telemetry.notices import Notices
from fairlane.worker.worker import Worker
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


@pytest.mark.parametrize(
    "payload",
    [
        b'{"$sealed":"k1.12345678.AAAA"}',
        b'{"$sealed":"k9.12345678.no base64, but long enough to be"}',
    ],
)
async def test_what_no_key_could_open_fails_once(
    memory: World, payload: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """As somebody would write it who has the database, but no key."""
    (task_id,) = await memory.submit_all(
        [msgspec.structs.replace(new_task("whisper"), payload=payload)]
    )
    with caplog.at_level(logging.WARNING, "fairlane"):
        async with working(app := whispering(memory)):
            task = await ended(app, task_id)
    assert (task.status, len(task.attempts)) == (State.FAILED, 1)
    assert task.error is not None
    assert (task.error.code, task.error.retriable) == (UNREADABLE, False)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.name == "fairlane.failures"


async def test_a_result_that_the_store_no_longer_accepts_fails_its_run(memory: World) -> None:
    app = application(memory)

    @app.task(name="seal")
    async def seal() -> str:
        await memory.run(memory.ops.set_encryption(Encryption.REQUIRED))
        return "plain"

    handle = await seal.submit()
    async with working(app):
        task = await ended(app, handle.task_id)
    assert task.error is not None
    assert (task.status, task.error.code) == (State.FAILED, RESULT_REFUSED)
    assert "encryption_keys" in task.error.message
    with pytest.raises(EncryptionRequired):
        await Worker(app).run(signals=False)


async def test_many_tasks_without_a_key_are_one_line_in_the_log(
    memory: World, caplog: pytest.LogCaptureFixture
) -> None:
    knowing = whispering(keyed(memory, KEY))
    calls = [knowing.tasks["whisper"].prepare("HUSH") for _ in range(20)]
    handles = await knowing.submit_many(calls)
    with caplog.at_level(logging.ERROR, "fairlane.worker"):
        async with working(whispering(memory)):
            for handle in handles:
                await seen(knowing, handle.task_id, State.SCHEDULED)
    (record,) = caplog.records
    assert "encryption key k1" in record.message


async def test_a_task_without_a_key_waits_longer_each_time(memory: World) -> None:
    await keyed(memory, KEY).submit()
    task = await memory.claim_one(await memory.worker())
    notices = Notices(logging.getLogger("fairlane.worker"))
    waits = [
        put_off(KeyMissing(), msgspec.structs.replace(task, attempt=attempt), notices).after
        for attempt in (1, 2, 3, 4, 5, 6, 1_000_000)
    ]
    assert waits == [60, 120, 240, 480, 900, 900, 900]


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
