"""A SQLite store whose files are deleted or replaced below those who have them open."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import (
    NotAFairlaneStore,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    StoreError,
    StoreReplaced,
    StoreUnusable,
)
from fairlane.core.submission import new_task
from fairlane.engines.sqlite.driver_files import TRUST
from tests.fixtures.stores import get_all

BESIDE = ("-wal", "-shm")


def backend_on(path: Path, patience: float = 10.0) -> Backend:
    return engines.open(f"sqlite:///{path}", patience=patience)


async def made(path: Path, patience: float = 10.0) -> Backend:
    backend = backend_on(path, patience)
    await backend.run(backend.ops.migrate())
    return backend


async def submitted(backend: Backend, type: str = "work") -> str:
    (accepted,) = await backend.run(backend.ops.submit([new_task(type)]))
    return accepted.task_id


async def found_afresh(path: Path, task_ids: list[str]) -> list[str]:
    async with backend_on(path) as backend:
        return [task.task_id for task in await get_all(backend, task_ids) if task is not None]


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def log(path: Path) -> None:
    beside(path, "-wal").unlink()


def index(path: Path) -> None:
    beside(path, "-shm").unlink()


def log_and_index(path: Path) -> None:
    log(path)
    index(path)


def lock(path: Path) -> None:
    beside(path, ".lock").unlink()


@pytest.mark.parametrize("delete", [log, index, log_and_index, lock])
async def test_nothing_is_lost_with_a_file_beside_the_store(
    tmp_path: Path, delete: Callable[[Path], None]
) -> None:
    path = tmp_path / "tasks.db"
    async with await made(path) as one, backend_on(path) as other:
        acknowledged = [await submitted(one), await submitted(other)]
        assert None not in await get_all(other, acknowledged)
        delete(path)
        for _ in range(5):
            acknowledged += [await submitted(one), await submitted(other)]
            assert None not in await get_all(one, acknowledged)
        acknowledged.append(await asyncio.to_thread(lambda: sync_submitted(one)))
    assert await found_afresh(path, acknowledged) == acknowledged
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def sync_submitted(backend: Backend) -> str:
    (accepted,) = backend.run_sync(backend.ops.submit([new_task("work")]))
    return accepted.task_id


def deleted(path: Path, spare: Path) -> None:
    path.unlink()


def deleted_with_the_log(path: Path, spare: Path) -> None:
    path.unlink()
    log_and_index(path)


def emptied(path: Path, spare: Path) -> None:
    spare.touch()
    spare.replace(path)


@pytest.mark.parametrize("fault", [deleted, deleted_with_the_log, emptied])
async def test_a_store_that_is_gone_acknowledges_nothing(
    tmp_path: Path, fault: Callable[[Path, Path], None]
) -> None:
    path = tmp_path / "tasks.db"
    async with await made(path) as one:
        await submitted(one)
        await one.run(one.ops.workers())
        fault(path, tmp_path / "spare.db")
        for _ in range(3):
            with pytest.raises(SchemaMissing, match="migrate"):
                await submitted(one)
            with pytest.raises(SchemaMissing, match="migrate"):
                await one.run(one.ops.workers())
            with pytest.raises(SchemaMissing, match="migrate"):
                await one.run(one.ops.tail())
            with pytest.raises(SchemaMissing, match="migrate"):
                await asyncio.to_thread(lambda: sync_submitted(one))
        await one.run(one.ops.migrate())
        acknowledged = [await submitted(one), await submitted(one, "other")]
    assert await found_afresh(path, acknowledged) == acknowledged


async def test_a_deleted_file_is_not_made_again_by_who_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with await made(path) as one:
        await one.run(one.ops.workers())
        path.unlink()
        await asyncio.sleep(2 * TRUST)
        with pytest.raises(SchemaMissing, match="was deleted"):
            await one.run(one.ops.workers())
        with pytest.raises(SchemaMissing, match="was deleted"):
            await submitted(one)
        assert not path.exists()


async def test_another_store_in_its_place(tmp_path: Path) -> None:
    """With other lanes under the same numbers: what was cached of the first is forgotten."""
    path, spare = tmp_path / "tasks.db", tmp_path / "spare.db"
    async with await made(spare) as other:
        before = [await submitted(other, f"type-{n}") for n in range(3)]
    async with await made(path) as one, backend_on(path) as two:
        for backend in (one, two):
            await submitted(backend, "first")
            await submitted(backend, "second")
            await backend.run(backend.ops.workers())
        spare.replace(path)
        acknowledged = list(before)
        for backend in (one, two, one):
            task_id = await submitted(backend, "second")
            acknowledged.append(task_id)
            (task,) = await backend.run(backend.ops.get([task_id]))
            assert task is not None
            assert task.type == "second"
            assert None not in await get_all(backend, acknowledged)
    assert await found_afresh(path, acknowledged) == acknowledged


async def test_a_store_that_was_moved_takes_its_last_commits_along(tmp_path: Path) -> None:
    path, away = tmp_path / "tasks.db", tmp_path / "away.db"
    async with await made(path) as one:
        acknowledged = [await submitted(one) for _ in range(5)]
        path.rename(away)
        with pytest.raises(SchemaMissing):
            await submitted(one)
        assert await found_afresh(away, acknowledged) == acknowledged
        away.rename(path)
        acknowledged.append(await submitted(one))
    assert await found_afresh(path, acknowledged) == acknowledged


def garbage(spare: Path) -> None:
    spare.write_bytes(b"This is not a database. " * 1_000)


def foreign(spare: Path) -> None:
    with closing(sqlite3.connect(spare)) as db:
        db.execute("CREATE TABLE customers (name TEXT)")
        db.commit()


def newer(spare: Path) -> None:
    with closing(sqlite3.connect(spare)) as db:
        db.execute("PRAGMA user_version = 99")


def older(spare: Path) -> None:
    with closing(sqlite3.connect(spare)) as db:
        db.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (garbage, NotAFairlaneStore),
        (foreign, NotAFairlaneStore),
        (newer, SchemaTooNew),
        (older, SchemaTooOld),
    ],
)
async def test_what_cannot_be_used_in_its_place(
    tmp_path: Path, make: Callable[[Path], None], expected: type[StoreError]
) -> None:
    path, spare, kept = (tmp_path / name for name in ("tasks.db", "spare.db", "kept.db"))
    async with await made(path) as one:
        acknowledged = [await submitted(one)]
        await one.run(one.ops.workers())
        if make in (newer, older):
            with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(spare)) as copy:
                db.backup(copy)
        make(spare)
        path.rename(kept)
        before = spare.read_bytes()
        spare.rename(path)
        for _ in range(2):
            with pytest.raises(expected):
                await submitted(one)
            with pytest.raises(expected):
                await one.run(one.ops.workers())
        if make in (garbage, foreign):
            assert path.read_bytes() == before
        path.unlink()
        for end in BESIDE:
            beside(path, end).unlink(missing_ok=True)
        kept.rename(path)
        acknowledged.append(await submitted(one))
    assert await found_afresh(path, acknowledged) == acknowledged


def copy_nothing(path: Path, _: Path) -> None:
    path.write_bytes(b"")


def copy_garbage(path: Path, _: Path) -> None:
    path.write_bytes(b"This is not a database. " * 10_000)


def copy_an_old_store(path: Path, spare: Path) -> None:
    older(spare)
    path.write_bytes(spare.read_bytes())


@pytest.mark.parametrize("copy", [copy_nothing, copy_garbage, copy_an_old_store])
async def test_what_was_copied_over_it_is_refused(
    tmp_path: Path, copy: Callable[[Path, Path], None]
) -> None:
    """The same file by its inode, and so the log of another: nothing may be written."""
    path, spare = tmp_path / "tasks.db", tmp_path / "spare.db"
    for store in (path, spare):
        async with await made(store) as backend:
            await submitted(backend)
    async with backend_on(path) as one:
        await submitted(one)
        copy(path, spare)
        await asyncio.sleep(2 * TRUST)
        for _ in range(3):
            with pytest.raises(StoreUnusable, match="copied over"):
                await submitted(one)


async def test_a_migration_by_another_process_is_no_copy(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with await made(path) as backend:
        await submitted(backend)
    async with backend_on(path) as one:
        await submitted(one)
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 6")
            db.execute("PRAGMA wal_checkpoint(FULL)")
        await submitted(one)


async def test_a_folder_in_the_place_of_another(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "tasks.db"
    async with await made(path) as one:
        await submitted(one)
        await one.run(one.ops.workers())
        folder.rename(tmp_path / "old")
        folder.mkdir()
        with pytest.raises(SchemaMissing):
            await submitted(one)
        with pytest.raises(SchemaMissing):
            await one.run(one.ops.workers())
        await one.run(one.ops.migrate())
        acknowledged = [await submitted(one)]
    assert await found_afresh(path, acknowledged) == acknowledged


async def test_a_link_that_leads_elsewhere(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        await (await made(tmp_path / name / "tasks.db")).driver.aclose()
    link = tmp_path / "tasks.db"
    link.symlink_to(tmp_path / "one" / "tasks.db")
    async with backend_on(link) as backend:
        first = await submitted(backend)
        link.unlink()
        link.symlink_to(tmp_path / "two" / "tasks.db")
        second = await submitted(backend)
        assert second in await found_afresh(tmp_path / "two" / "tasks.db", [second])
        (tmp_path / "two" / "tasks.db").unlink()
        with pytest.raises(SchemaMissing):
            await submitted(backend)
        assert not (tmp_path / "two" / "tasks.db").exists()
    assert first in await found_afresh(tmp_path / "one" / "tasks.db", [first])


async def test_a_transaction_of_a_handler(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with await made(path) as one:
        async with one.driver.transaction() as transaction:
            await transaction.run(one.ops.submit([new_task("work")]))

        async def transact(then: Callable[[], None]) -> None:
            async with one.driver.transaction() as transaction:
                await transaction.run(one.ops.submit([new_task("work")]))
                then()

        with pytest.raises(StoreReplaced, match="replaced or deleted"):
            await transact(path.unlink)
        with pytest.raises(SchemaMissing):
            await transact(lambda: None)


async def test_whoever_waits_for_work_watches_the_new_file(tmp_path: Path) -> None:
    path, spare = tmp_path / "tasks.db", tmp_path / "spare.db"
    await (await made(spare)).driver.aclose()
    async with await made(path) as ours:
        listening = await ours.driver.listen()
        spare.replace(path)
        await submitted(ours)
        while await listening.wait(0.05):
            pass
        async with backend_on(path) as theirs:
            waiting = asyncio.create_task(listening.wait(20.0))
            await asyncio.sleep(0.05)
            await submitted(theirs)
            assert await waiting
        await listening.aclose()


WRITER = textwrap.dedent(
    """
    import sys
    from fairlane import engines
    from fairlane.core.errors import StoreError
    from fairlane.core.submission import new_task

    backend = engines.open(sys.argv[1], patience=5.0)
    print("ready", flush=True)
    for line in sys.stdin:
        task = new_task("work")
        try:
            backend.run_sync(backend.ops.submit([task]))
            print(task.task_id, flush=True)
        except StoreError as error:
            print(error.code, flush=True)
    """
)


@pytest.mark.parametrize("delete", [log, index, log_and_index, lock])
async def test_processes_agree_on_the_files(tmp_path: Path, delete: Callable[[Path], None]) -> None:
    path = tmp_path / "tasks.db"
    await (await made(path)).driver.aclose()
    command = [sys.executable, "-c", WRITER, f"sqlite:///{path}"]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]

    def submit(writer: subprocess.Popen[str]) -> str:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
        return writer.stdout.readline().strip()

    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    acknowledged = []
    for _ in range(3):
        acknowledged += [submit(writer) for writer in writers for _ in range(3)]
        delete(path)
        acknowledged += [submit(writer) for _ in range(3) for writer in writers]
    for writer in writers:
        writer.communicate()
    assert {len(each) for each in acknowledged} == {36}, "every submission was acknowledged"
    assert await found_afresh(path, acknowledged) == acknowledged
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
