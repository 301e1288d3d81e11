"""What can be wrong with a SQLite file, and what Fairlane says and does about it."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import (
    AccessDenied,
    IdempotencyConflict,
    InvalidStoreURL,
    NotAFairlaneStore,
    SchemaMissing,
    SchemaTooNew,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairlane.core.submission import new_task
from fairlane.engines.sqlite.driver import SqliteDriver
from fairlane.engines.sqlite.driver_database import Database
from tests.fixtures.counters import depths, tallies
from tests.fixtures.stores import get_all


def backend_on(path: Path, patience: float = 0.3) -> Backend:
    return engines.open(f"sqlite:///{path}", patience=patience)


async def migrated(path: Path, patience: float = 0.3) -> Backend:
    backend = backend_on(path, patience)
    await backend.run(backend.ops.migrate())
    return backend


def files_in(folder: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.iterdir()
        if not file.name.endswith("-shm")  # comes and goes with whoever looks at a WAL
    }


def make_foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE customers (name TEXT)")
        db.commit()


def make_foreign_application(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 42")
        db.commit()


def make_text(path: Path) -> None:
    path.write_text("Dear diary, this is not a database at all.\n" * 100)


@pytest.mark.parametrize("make", [make_foreign_database, make_foreign_application, make_text])
async def test_a_file_that_is_not_fairlane_s_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "theirs.db"
    make(path)
    before = files_in(tmp_path)
    backend = backend_on(path)
    for op in (
        backend.ops.migrate(),
        backend.ops.submit([new_task("work")]),
        tallies(backend.ops),
    ):
        with pytest.raises(NotAFairlaneStore, match="nothing was changed"):
            await backend.run(op)
    await backend.driver.aclose()
    assert files_in(tmp_path) == before


async def test_a_store_that_is_made_while_others_look_at_it(tmp_path: Path) -> None:
    """It is nobody else's, not even for a moment."""
    looks = 0
    for number in range(20):
        path = tmp_path / f"{number}.db"
        backend = backend_on(path)
        made = asyncio.create_task(backend.run(backend.ops.migrate()))
        while not made.done():
            await asyncio.to_thread(Database(path, "FULL").leave_foreign_files_alone)
            looks += 1
        await made
        await backend.driver.aclose()
    assert looks > 20


async def test_a_store_that_was_not_prepared(tmp_path: Path) -> None:
    backend = backend_on(tmp_path / "tasks.db")
    assert await backend.run(backend.ops.version()) == 0
    for op in (backend.ops.submit([new_task("work")]), tallies(backend.ops)):
        with pytest.raises(SchemaMissing, match="migrate"):
            await backend.run(op)
    await backend.run(backend.ops.migrate())
    await backend.run(backend.ops.submit([new_task("work")]))
    await backend.driver.aclose()


async def test_a_store_of_a_newer_schema(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    await (await migrated(path)).driver.aclose()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    backend = backend_on(path)
    for op in (
        backend.ops.submit([new_task("work")]),
        backend.ops.migrate(),
        backend.ops.verify(),
        tallies(backend.ops),
    ):
        with pytest.raises(SchemaTooNew, match="version 99"):
            await backend.run(op)
    await backend.driver.aclose()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM content").fetchone() == (0,)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's power to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """One that `nobody` can reach: pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


async def test_a_read_only_file(public_folder: Path) -> None:
    """Refused as long as it lasts, and by itself all right afterwards."""
    folder = public_folder
    path = folder / "tasks.db"
    await (await migrated(path)).driver.aclose()
    folder.chmod(0o777)
    (folder / "tasks.db.lock").chmod(0o666)
    path.chmod(0o444)
    with as_nobody():
        backend = backend_on(path)
        with pytest.raises(StoreReadOnly, match="read-only"):
            await backend.run(backend.ops.submit([new_task("work")]))
    for file in folder.iterdir():  # SQLite gives its other files the mode of the first
        file.chmod(0o666)
    with as_nobody():
        await backend.run(backend.ops.submit([new_task("work")]))
        await backend.driver.aclose()


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    backend = backend_on(tmp_path / "nowhere" / "tasks.db")
    with pytest.raises(AccessDenied, match="cannot be opened"):
        await backend.run(backend.ops.migrate())
    await backend.driver.aclose()


async def test_locked_by_another_program(tmp_path: Path) -> None:
    """Someone who does not know our lock holds SQLite's own: an error, and then it passes."""
    path = tmp_path / "tasks.db"
    backend = await migrated(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="locked by another program"):
            await backend.run(backend.ops.submit([new_task("work")]))
        other.execute("ROLLBACK")
    (accepted,) = await backend.run(backend.ops.submit([new_task("work")]))
    assert await backend.run(backend.ops.get([accepted.task_id])) != [None]
    await backend.driver.aclose()


async def test_locked_by_another_process_of_ours(tmp_path: Path) -> None:
    """A process that was stopped in the middle of a write. Whoever gave up stays given up."""
    path = tmp_path / "tasks.db"
    backend = await migrated(path)
    lock = os.open(tmp_path / "tasks.db.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    abandoned = new_task("work")
    with pytest.raises(StoreBusy, match="held the lock"):
        await backend.run(backend.ops.submit([abandoned]))
    with pytest.raises(StoreBusy):
        await asyncio.to_thread(backend.run_sync, backend.ops.submit([abandoned]))
    cancelled = new_task("work")
    waiting = asyncio.create_task(backend.run(backend.ops.submit([cancelled])))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.close(lock)
    kept = new_task("work")
    await backend.run(backend.ops.submit([kept]))
    ids = [abandoned.task_id, cancelled.task_id, kept.task_id]
    found = await backend.run(backend.ops.get(ids))
    assert [task and task.task_id for task in found] == [None, None, kept.task_id]
    await backend.driver.aclose()


async def use_without_patience(path: Path, colour: str) -> None:
    """Use a store for the first time in this process: its file and its threads are not ready."""
    async with backend_on(path, patience=0) as backend:
        task = new_task("work")
        submit, get = backend.ops.submit([task]), backend.ops.get([task.task_id])
        if colour == "async":
            await backend.run(submit)
            assert await backend.run(get) != [None]
            async with backend.driver.transaction() as transaction:
                await transaction.run(backend.ops.submit([new_task("work")]))
        else:
            await asyncio.to_thread(backend.run_sync, submit)
            assert await asyncio.to_thread(backend.run_sync, get) != [None]
            with backend.driver.transaction_sync() as connection:
                connection.execute("CREATE TABLE orders (name TEXT)")


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_without_patience_a_store_is_used_as_any_other(tmp_path: Path, colour: str) -> None:
    """Patience is for locks and for stores that are away: the work itself may take its time."""
    path = tmp_path / "tasks.db"
    await (await migrated(path)).driver.aclose()
    await use_without_patience(path, colour)


@pytest.mark.parametrize("colour", ["async", "sync"])
async def test_without_patience_errors_have_their_reasons(tmp_path: Path, colour: str) -> None:
    with pytest.raises(AccessDenied, match="cannot be opened"):
        await use_without_patience(tmp_path / "nowhere" / "tasks.db", colour)
    backend = await migrated(tmp_path / "tasks.db", patience=0)
    lock = os.open(tmp_path / "tasks.db.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    op = backend.ops.submit([new_task("work")])
    work = backend.run(op) if colour == "async" else asyncio.to_thread(backend.run_sync, op)
    with pytest.raises(StoreBusy, match="held the lock"):
        await work
    os.close(lock)
    await backend.driver.aclose()


async def test_a_lock_that_passes_is_waited_out(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    backend = await migrated(path, patience=30)
    lock = os.open(tmp_path / "tasks.db.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    waiting = asyncio.create_task(backend.run(backend.ops.submit([new_task("work")])))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    os.close(lock)
    (accepted,) = await waiting
    assert not accepted.known
    await backend.driver.aclose()


WRITER = textwrap.dedent(
    """
    import sys
    from fairlane import engines
    from fairlane.core.submission import new_task

    backend = engines.open(sys.argv[1])
    while True:
        tasks = [new_task("work", {"n": n}) for n in range(20)]
        backend.run_sync(backend.ops.submit(tasks))
        print(" ".join(task.task_id for task in tasks), flush=True)
    """
)


async def test_a_process_killed_in_the_middle_loses_nothing_it_acknowledged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tasks.db"
    backend = await migrated(path, patience=30)
    acknowledged: list[str] = []
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, f"sqlite:///{path}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(15):
                acknowledged += process.stdout.readline().split()
            process.kill()
            acknowledged += [
                task_id
                for line in process.stdout.readlines()
                if line.endswith("\n")
                for task_id in line.split()
            ]
    found = await get_all(backend, acknowledged)
    assert len(acknowledged) >= 900
    assert None not in found
    await backend.driver.aclose()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        contents, states = db.execute(
            "SELECT (SELECT count(*) FROM content), (SELECT count(*) FROM ready)"
        ).fetchone()
        assert contents == states == db.execute("SELECT sum(depth) FROM streams").fetchone()[0]


async def test_several_processes_write_at_once(tmp_path: Path) -> None:
    """None of them ever hears that the database is locked."""
    path = tmp_path / "tasks.db"
    backend = await migrated(path, patience=30)
    command = [sys.executable, "-c", WRITER, f"sqlite:///{path}"]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        for _ in range(20):
            assert len(process.stdout.readline().split()) == 20
        process.terminate()
        _, errors = process.communicate()
        assert errors == ""
    await backend.run(tallies(backend.ops))
    await backend.driver.aclose()


async def test_a_failed_operation_among_others_undoes_only_itself(tmp_path: Path) -> None:
    backend = await migrated(tmp_path / "tasks.db")
    await backend.run(backend.ops.submit([new_task("work", {"n": 0}, idempotency_key="k")]))
    lock = os.open(tmp_path / "tasks.db.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)  # so that they all go into one transaction
    good = [backend.run(backend.ops.submit([new_task(f"new-{n}")])) for n in range(5)]
    bad = backend.run(
        backend.ops.submit(
            [new_task("fresh-lane"), new_task("work", {"n": 1}, idempotency_key="k")]
        )
    )
    tasks = [asyncio.ensure_future(call) for call in (*good[:2], bad, *good[2:])]
    await asyncio.sleep(0.02)
    os.close(lock)
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [list, list, IdempotencyConflict, *[list] * 3]
    assert sum((await backend.run(depths(backend.ops))).values()) == 6
    await backend.run(backend.ops.submit([new_task("fresh-lane")]))
    await backend.driver.aclose()


async def test_memory_survives_a_failed_operation() -> None:
    backend = engines.open("sqlite://")
    await backend.run(backend.ops.migrate())
    await backend.run(backend.ops.submit([new_task("work", {"n": 0}, idempotency_key="k")]))
    with pytest.raises(IdempotencyConflict):
        await backend.run(backend.ops.submit([new_task("work", {"n": 1}, idempotency_key="k")]))
    assert sum((await backend.run(depths(backend.ops))).values()) == 1
    await backend.driver.aclose()


async def test_only_the_owner_may_read(tmp_path: Path) -> None:
    backend = await migrated(tmp_path / "tasks.db")
    assert {(file.name, file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} >= {
        ("tasks.db", 0o600),
        ("tasks.db.lock", 0o600),
        ("tasks.db-wal", 0o600),
    }
    await backend.driver.aclose()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    backend = await migrated(tmp_path / "tasks.db")
    await backend.driver.aclose()
    with pytest.raises(StoreUnusable, match="closed"):
        await backend.run(tallies(backend.ops))


async def test_what_the_settings_promise(tmp_path: Path) -> None:
    full = await backend_on(tmp_path / "tasks.db").driver.durability()
    assert (full.engine, full.settings["synchronous"]) == ("sqlite", "FULL")
    assert not any("power" in warning for warning in full.warnings)
    normal = engines.open(f"sqlite:///{tmp_path}/tasks.db", synchronous="NORMAL")
    assert any("power" in warning for warning in (await normal.driver.durability()).warnings)
    memory = await engines.open("sqlite://").driver.durability()
    assert any("memory" in warning for warning in memory.warnings)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_BUSY, StoreBusy),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusy),
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreReadOnly),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailable),
        (sqlite3.SQLITE_CORRUPT, NotAFairlaneStore),
        (sqlite3.SQLITE_CANTOPEN, AccessDenied),
        (sqlite3.SQLITE_MISUSE, StoreError),
    ],
)
def test_every_trouble_has_a_name(code: int, expected: type[StoreError]) -> None:
    driver = backend_on(Path("tasks.db")).driver
    assert isinstance(driver, SqliteDriver)
    error = sqlite3.OperationalError("trouble")
    error.sqlite_errorcode = code
    assert type(driver._database.translated(error)) is expected


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://u:s3cret@host/tasks.db",
        "sqlite:///tasks.db?password=s3cret",
        "sqlite:///tasks.db#s3cret",
        "sqlite://u:s3cret@[",
        "sqlite:///tasks%00s3cret.db",
        "sqlite:///.",
        "mysql://u:s3cret@x",
        "tasks.db",
        "",
    ],
)
def test_a_url_that_makes_no_sense(url: str) -> None:
    with pytest.raises(InvalidStoreURL, match="sqlite:///") as refused:
        engines.open(url)
    assert "s3cret" not in str(refused.value)


async def test_a_thread_that_cannot_be_started_now_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with engines.open(f"sqlite:///{tmp_path}/q.db", patience=1.0) as backend:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", no_more)
            with pytest.raises((StoreError, RuntimeError)):
                await backend.run(backend.ops.migrate())
        await backend.run(backend.ops.migrate())
