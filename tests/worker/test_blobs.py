"""Payloads by reference: from submission to the handler, and what may go wrong on the way."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlane import Fairlane, State, Task, Unique, engines
from fairlane.client.blob_files import MARKER, FileBlobs
from fairlane.client.blobs import Blobs
from fairlane.core import limits
from fairlane.core.blobs import parsed, reference
from fairlane.core.errors import (
    BlobsUnavailable,
    InvalidBlobStore,
    InvalidPayload,
    InvalidUnique,
    NotSupported,
    PayloadTooLarge,
    TaskIdConflict,
)
from fairlane.core.sealing import Key
from fairlane.core.submission import new_task
from fairlane.maintenance import BlobSweeper
from tests.conftest import Servers
from tests.fixtures.raw import written
from tests.fixtures.stores import REMOTE, World, opened
from tests.worker import referring
from tests.worker.kit import PATIENCE, application, ended, looked, seen, working

TEXT = "begin " + "x" * limits.PAYLOAD_BYTES + " end"
KEY, OTHER = Key("k1", b"1" * 32), Key("k2", b"2" * 32)
DAY = limits.BLOB_GRACE_SECONDS


def measuring(world: World, blobs: Any = None) -> Fairlane:
    """An application with a task that measures its argument."""
    app = application(world)
    app.blobs = blobs

    @app.task(max_retries=1)
    async def measure(text: str) -> int:
        return len(text)

    return app


async def submitted(app: Fairlane, text: str = TEXT, **options: Any) -> str:
    task = app.tasks["measure"].options(**options)
    return (await app.submit(task.prepare(text))).task_id


async def run(app: Fairlane, task_id: str) -> Task:
    async with working(app):
        return await ended(app, task_id)


def files(folder: Path) -> list[Path]:
    """The blobs in a folder."""
    return sorted(folder.glob("??/*"))


def aged(folder: Path) -> None:
    """Make the blobs in a folder old enough to be swept."""
    for path in files(folder):
        os.utime(path, (0, 0))


@pytest.fixture(params=["store", "file"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "store" if request.param == "store" else f"file://{tmp_path / 'blobs'}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


async def test_from_submission_to_result(world: World, blobs: str) -> None:
    app = measuring(world, blobs)
    prepare = app.tasks["measure"].prepare
    alone = await app.submit(prepare(TEXT))
    many = await app.submit_many([prepare("small"), prepare(TEXT + "!")])
    blocking = app.submit_sync(prepare(TEXT + "!!")) if world.url != "sqlite://" else alone
    stored = await world.task(alone.task_id)
    assert parsed(stored.payload) == reference(
        blobs.partition(":")[0], msgspec.json.encode({"text": TEXT})
    )
    async with working(app):
        assert await alone.result(PATIENCE) == len(TEXT)
        assert [await each.result(PATIENCE) for each in many] == [5, len(TEXT) + 1]
        assert await blocking.result(PATIENCE) in (len(TEXT), len(TEXT) + 2)


async def test_blobs_go_with_their_tasks_and_orphans_by_themselves(
    world: World, blobs: str, folder: Path
) -> None:
    app = measuring(world, blobs)
    kept, deleted = await submitted(app), await submitted(app)
    own = Blobs(blobs, world.backend)
    task = new_task("measure", {"text": TEXT}, payload_bytes=limits.BLOB_BYTES)
    await own.run(own.save([task]))  # and then the process died
    await world.run(world.ops.cancel([deleted]))
    await world.run(world.ops.delete([deleted]))
    sweeper = BlobSweeper(app, "me")

    async def there() -> int:
        if blobs != "store":
            return len(files(folder))
        return len((await world.run(world.ops.old_blobs(0, 100))).keys)

    await sweeper.round()
    assert await there() == 3, "they are too young"
    await world.advance(DAY + 1)
    aged(folder)
    await sweeper.round()
    assert await there() == 1
    assert (await run(app, kept)).result == len(TEXT)


async def test_without_the_setting_it_is_refused_and_says_what_to_do(memory: World) -> None:
    app = measuring(memory)
    with pytest.raises(PayloadTooLarge, match=r"16,777,216 bytes with the setting blobs\."):
        await submitted(app)
    with pytest.raises(PayloadTooLarge):
        await submitted(app, idempotency_key="once")
    app.blobs = "store"
    with pytest.raises(PayloadTooLarge, match=r"pass a reference to it\.$"):
        await submitted(app, "x" * limits.BLOB_BYTES)
    assert await memory.depth() == 0


async def test_the_same_is_the_same(world: World, blobs: str, folder: Path) -> None:
    app = measuring(world, blobs)
    first = await submitted(app, idempotency_key="once")
    assert await submitted(app, idempotency_key="once") == first
    only = await submitted(app, unique=True)
    assert await submitted(app, unique=True) == only
    assert await world.depth() == 2


async def test_a_taken_id_does_not_touch_the_blob_of_its_task(memory: World, folder: Path) -> None:
    app = measuring(memory, f"file://{folder}")
    first = await submitted(app)
    with pytest.raises(TaskIdConflict):
        await submitted(app, TEXT + "!", task_id=first)
    assert await submitted(app, task_id=first) == first
    assert (await run(app, first)).result == len(TEXT)


@pytest.mark.parametrize(
    "url", ["", "ftp://bucket", "file://", "file:///", "file://h/x", "file:x", "x"]
)
def test_an_unknown_kind_of_blob_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidBlobStore, match="in a bucket"):
        Fairlane("sqlite://", blobs=url)


async def test_a_folder_that_cannot_be_written(memory: World, tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("this is a file")
    app = measuring(memory, f"file://{tmp_path / 'blobs'}")
    with pytest.raises(BlobsUnavailable, match="may read and write it"):
        await submitted(app)
    with pytest.raises(BlobsUnavailable):
        app.submit_sync(app.tasks["measure"].prepare(TEXT))
    assert await memory.depth() == 0


async def test_a_folder_of_another_store_is_refused(tmp_path: Path, folder: Path) -> None:
    first = Fairlane(f"sqlite:///{tmp_path / 'a.db'}", blobs=f"file://{folder}")
    second = Fairlane(f"sqlite:///{tmp_path / 'b.db'}", blobs=f"file://{folder}")
    task = new_task("measure", {"text": TEXT}, payload_bytes=limits.BLOB_BYTES)
    with first, second:
        first.submit_tasks_sync([task])
        with pytest.raises(InvalidBlobStore, match="another store"):
            second.submit_tasks_sync([task])
        aged(folder)
        with pytest.raises(InvalidBlobStore, match="another store"):
            await BlobSweeper(second, "me").round()
        await second.aclose()
    assert len(files(folder)) == 1


@pytest.mark.parametrize("kind", ["store", "file"])
async def test_what_looks_like_a_reference_is_refused(memory: World, kind: str) -> None:
    app = application(memory)
    app.blobs = "store"

    @app.task
    async def anything(**arguments: Any) -> None: ...

    fake = reference(kind, b"{}").payload()
    with pytest.raises(InvalidPayload, match="reserved"):
        await anything.submit(**msgspec.json.decode(fake))
    with pytest.raises(InvalidPayload, match="reserved"):
        app.submit_tasks_sync([msgspec.structs.replace(new_task("anything"), payload=fake)])
    assert await memory.depth() == 0
    async with working(app):
        other = await anything.submit(**{"$blob": "mine"})
        assert (await ended(app, other.task_id)).status is State.COMPLETED


async def test_a_forged_reference_leads_nowhere(memory: World, folder: Path) -> None:
    """Somebody who knows the hash of another task's payload does not get at it."""
    app = measuring(memory, f"file://{folder}")
    await submitted(app, queue="other")
    forged = reference("file", msgspec.json.encode({"text": TEXT})).payload()
    task_id = await memory.submit("measure", forged)
    task = await run_in(app, task_id, "default")
    assert task.status is State.FAILED
    assert task.error is not None
    assert task.error.code == "BLOB_MISSING"


async def run_in(app: Fairlane, task_id: str, queue: str) -> Task:
    async with working(app, queues=frozenset({queue})):
        return await ended(app, task_id)


async def test_a_blob_that_is_gone_fails_its_task_for_good(
    world: World, blobs: str, folder: Path
) -> None:
    app = measuring(world, blobs)
    task_id = await submitted(app)
    path, content = Path(), b""
    if blobs == "store":
        found = parsed((await world.task(task_id)).payload)
        assert found is not None
        await world.advance(1)
        await world.run(world.ops.drop_blob(found.key(task_id), 0))
    else:
        (path,) = files(folder)
        content = path.read_bytes()
        path.unlink()
    task = await run(app, task_id)
    assert (task.status, len(task.attempts)) == (State.FAILED, 1)
    assert task.error is not None
    assert (task.error.code, task.error.retriable) == ("BLOB_MISSING", False)
    assert "restore it from a backup" in task.error.message
    if blobs != "store":
        path.write_bytes(content)
        await app.replay(task_id)
        assert (await run(app, task_id)).status is State.COMPLETED


@pytest.mark.parametrize("content", [b"", b"{}", msgspec.json.encode({"text": TEXT[::-1]})])
async def test_a_blob_that_was_altered_fails_its_task_for_good(
    memory: World, folder: Path, content: bytes
) -> None:
    app = measuring(memory, f"file://{folder}")
    task_id = await submitted(app)
    files(folder)[0].write_bytes(content)
    task = await run(app, task_id)
    assert (task.status, len(task.attempts)) == (State.FAILED, 1)
    assert task.error is not None
    assert (task.error.code, task.error.retriable) == ("BLOB_DAMAGED", False)


@pytest.mark.parametrize("how", ["unmounted", "unreadable"])
async def test_a_folder_that_is_away_costs_an_attempt(
    memory: World, folder: Path, how: str
) -> None:
    app = measuring(memory, f"file://{folder}")
    task_id = await submitted(app)
    elsewhere = folder.with_name("elsewhere")
    folder.rename(elsewhere)
    if how == "unmounted":
        folder.mkdir()
    else:
        folder.write_text("not a folder")
    async with working(app):
        task = await seen(app, task_id, State.RETRYING)
    assert task.attempts[0].error is not None
    assert task.attempts[0].error.code == "BLOBS_UNAVAILABLE"
    folder.rmdir() if how == "unmounted" else folder.unlink()
    elsewhere.rename(folder)
    await memory.advance(600)
    assert (await run(app, task_id)).status is State.COMPLETED


async def test_a_worker_without_the_folder_leaves_tasks_alone(
    memory: World, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task_id = await submitted(measuring(memory, f"file://{folder}"))
    app = measuring(memory, None)
    async with working(app):
        task = await seen(app, task_id, State.SCHEDULED)
    assert (task.retry_count, task.attempts[0].outcome) == (0, "snoozed")
    assert "give the setting blobs" in caplog.text
    await memory.advance(61)
    task = await run(measuring(memory, f"file://{folder}"), task_id)
    assert task.status is State.COMPLETED


async def test_blobs_in_the_store_need_no_setting_to_be_read(memory: World) -> None:
    task_id = await submitted(measuring(memory, "store"))
    assert (await run(measuring(memory), task_id)).status is State.COMPLETED


@asynccontextmanager
async def sealed(tmp_path: Path, blobs: str, *keys: Key) -> AsyncIterator[Fairlane]:
    app = Fairlane(f"sqlite:///{tmp_path / 'tasks.db'}", encryption_keys=keys, blobs=blobs)

    @app.task
    async def measure(text: str) -> int:
        return len(text)

    async with app:
        yield app


async def test_with_keys_nothing_is_written_in_plain_text(
    tmp_path: Path, folder: Path, blobs: str
) -> None:
    async with sealed(tmp_path, blobs, KEY) as app:
        task_id = await submitted(app)
        async with engines.open(app.url) as raw:
            stored = await written(raw, app.url) + b"".join(map(Path.read_bytes, files(folder)))
        assert b"$sealed" in stored
        assert b"xxxxxxxx" not in stored
        assert b"$blob" not in stored
    async with sealed(tmp_path, blobs, OTHER) as blind, working(blind):
        await seen(blind, task_id, State.SCHEDULED)
    async with sealed(tmp_path, blobs, OTHER, KEY) as app:
        await app.run(app.backend.ops.shift_clock(61))
        assert (await run(app, task_id)).status is State.COMPLETED


async def test_a_sealed_blob_that_was_altered_or_moved(tmp_path: Path, folder: Path) -> None:
    async with sealed(tmp_path, f"file://{folder}", KEY) as app:
        first, second = await submitted(app), await submitted(app, TEXT + "!")
        one, two = ({path.name[:36]: path for path in files(folder)}[id] for id in (first, second))
        two.write_bytes(one.read_bytes())
        one.write_bytes(one.read_bytes()[:-20] + one.read_bytes()[-10:])
        for task_id in (first, second):
            task = await run(app, task_id)
            assert task.status is State.FAILED
            assert task.error is not None
            assert task.error.code in {"SEAL_BROKEN", "BLOB_DAMAGED"}


async def test_a_callers_own_transaction(tmp_path: Path, blobs: str) -> None:
    path = tmp_path / "tasks.db"
    app = Fairlane(f"sqlite:///{path}", blobs=blobs)

    @app.task
    async def measure(text: str) -> int:
        return len(text)

    await app.stats()  # so that the store is there
    async with app:
        for commit in (False, True):
            own = sqlite3.connect(path)
            own.execute("CREATE TABLE IF NOT EXISTS orders (id)")
            await app.submit(measure.prepare(TEXT), connection=own)
            own.commit() if commit else own.rollback()
            own.close()
        (task,) = (await app.list()).tasks
        if blobs == "store":
            assert len((await app.run(app.backend.ops.old_blobs(0, 10))).keys) == 1
        assert (await run(app, task.task_id)).status is State.COMPLETED


async def test_children_read_and_write_blobs(tmp_path: Path, blobs: str) -> None:
    app = referring.app
    app.url, app.blobs = f"sqlite:///{tmp_path / 'tasks.db'}", blobs
    try:
        async with working(app, target=referring.TARGET):
            first = await referring.measure_apart.submit(TEXT)
            assert await first.result(PATIENCE) == len(TEXT)
            (second,) = (await app.list(type="measure")).tasks
            assert (await ended(app, second.task_id)).result == len(TEXT) + 1
    finally:
        await app.aclose()


def test_inline_tasks_leave_no_files_behind(folder: Path) -> None:
    app = Fairlane("sqlite://", blobs=f"file://{folder}")

    @app.task
    async def measure(text: str) -> int:
        return len(text)

    with app.inline():
        assert measure.submit_sync(TEXT).result_sync() == len(TEXT)
    assert not folder.exists()


class Reversed:
    """A codec that writes JSON backwards."""

    def encode(self, value: Any) -> str:
        return msgspec.json.encode(value).decode()[::-1]

    def decode(self, value: str) -> Any:
        return msgspec.json.decode(value[::-1])


async def test_what_a_codec_wrote_may_be_large_too(memory: World) -> None:
    app = application(memory)
    app.blobs = "store"
    app.codec("reversed", Reversed())

    @app.task(codec="reversed")
    async def measure(text: str) -> int:
        return len(text)

    async with working(app):
        handle = await measure.submit(TEXT)
        assert await handle.result(PATIENCE) == len(TEXT)
    assert parsed((await memory.task(handle.task_id)).payload)


async def test_over_http_both_sides_see_the_folder(
    servers: Servers, tmp_path: Path, folder: Path
) -> None:
    async with opened(REMOTE, servers, tmp_path) as remote:
        app = measuring(remote, f"file://{folder}")
        first = await submitted(app, idempotency_key="once")
        assert await submitted(app, idempotency_key="once") == first
        assert await submitted(app, unique=True) == await submitted(app, unique=True)
        async with working(app):
            assert (await ended(app, first)).status is State.COMPLETED
        with pytest.raises(InvalidUnique, match="own URL"):
            await submitted(app, unique=Unique(arguments=("text",)))
        with pytest.raises(InvalidPayload, match="reserved"):
            await remote.submit("measure", reference("store", b"{}").payload())
        app = measuring(remote, "store")
        with pytest.raises(NotSupported, match="own URL"):
            await submitted(app)
        behind = measuring(remote.behind, "store")
        inside = await submitted(behind)
        async with working(app):
            await looked(app, inside, lambda task: task.status is State.SCHEDULED)


async def test_a_worker_and_its_sweeper(memory: World, folder: Path) -> None:
    """A worker with maintenance sweeps, and one that cannot goes on all the same."""
    app = measuring(memory, f"file://{folder}")
    await submitted(app)
    stray = folder / "aa" / "notes.txt"
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("of somebody else")
    orphan = files(folder)[0].with_name(f"{'0' * 8}-0000-4000-8000-{'0' * 12}.{'a' * 64}")
    orphan.write_bytes(b"")
    partial = orphan.with_name(".partial-x")
    partial.write_bytes(b"")
    for path in (*files(folder), partial):
        os.utime(path, (0, 0))
    async with working(app, maintenance=True):
        while orphan.exists() or partial.exists():
            await looked(app, (await app.list()).tasks[0].task_id, lambda _: True)
    assert stray.exists()
    assert len(files(folder)) == 2


class Shelf:
    """A blob store of one's own."""

    kind = "shelf"

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.owner: str | None = None

    def put(self, key: str, content: bytes) -> None:
        self.blobs[key] = content

    def get(self, key: str) -> bytes | None:
        return self.blobs.get(key)

    def delete(self, key: str, older_than: float) -> None:
        assert older_than == DAY
        self.blobs.pop(key, None)

    def keys(self, older_than: float) -> Iterator[str]:
        assert older_than == DAY
        return iter(list(self.blobs))

    def adopt(self, owner: str) -> str:
        self.owner = self.owner or owner
        return self.owner


async def test_a_blob_store_of_ones_own(memory: World) -> None:
    shelf = Shelf()
    app = measuring(memory, shelf)
    task_id = await submitted(app)
    assert (await run(app, task_id)).status is State.COMPLETED
    await BlobSweeper(app, "me").round()
    assert len(shelf.blobs) == 1
    await memory.run(memory.ops.delete([task_id]))
    await BlobSweeper(app, "me").round()
    assert not shelf.blobs


@pytest.mark.parametrize(("mode", "expected"), [(None, 0o600), (0o2770, 0o660), (0o750, 0o640)])
def test_files_have_the_rights_of_their_folder(
    folder: Path, mode: int | None, expected: int
) -> None:
    if mode is not None:
        folder.mkdir()
        folder.chmod(mode)
    blobs = FileBlobs(folder)
    assert blobs.adopt("me") == blobs.adopt("you") == "me"
    blobs.put("key", b"content")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert {each for path, each in modes.items() if path.is_file()} == {expected}
    assert {each for path, each in modes.items() if path.is_dir()} == {mode or 0o700}


def test_many_files_are_swept_in_steps(tmp_path: Path) -> None:
    files = FileBlobs(tmp_path)
    for number in range(3):
        files.put(f"key-{number}", b"content")
    assert (tmp_path / MARKER).exists()
    assert sorted(files.keys(-1)) == ["key-0", "key-1", "key-2"]
    assert list(files.keys(60)) == []
    files.delete("key-0", 60)
    files.delete("key-1", -1)
    files.delete("key-1", -1)
    assert sorted(files.keys(-1)) == ["key-0", "key-2"]
    assert list(FileBlobs(tmp_path / "nowhere").keys(0)) == []
