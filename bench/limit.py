"""What an engine gives at best: the same batches driven by a bare loop, with no queue around them.

The simplest thing that hands out tasks and keeps what became of them: one table with the usual
columns, or one blob a task. No lanes, fences, retries, journal, counters. Each task is claimed, run
(payload decoded, a no-op awaited, result encoded) and settled. `bench.engine` runs beside it.

    python -m bench.limit [--store URL] [--batch 1 10 100 500]
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar
from urllib.parse import urlsplit

import asyncpg
import msgspec
from redis.asyncio import Redis

from bench import machine, stores
from bench.loops import use_uvloop
from fairlane.core.ids import new_id, new_ids

PAYLOAD = b'{"value":12345}'
WORKER = new_id()
BATCHES = (1, 10, 100, 500)
P = ParamSpec("P")
T = TypeVar("T")

TOTALS = {1: 400, 10: 4_000, 100: 20_000, 500: 40_000}


class Loop(Protocol):
    """One way to store tasks, hand them out and keep their results."""

    async def open(self) -> None: ...
    def prepare(self, ids: Sequence[str]) -> Sequence[Any]: ...
    async def submit(self, tasks: Sequence[Any]) -> None: ...
    async def claim(self, count: int) -> Sequence[Any]: ...
    def payload(self, task: Any) -> bytes: ...
    async def settle(self, claimed: Sequence[Any], results: Sequence[bytes]) -> None: ...
    async def close(self) -> None: ...


class BareSqlite:
    """Blocks; in an event loop, where nothing may, each call is handed to a thread."""

    def __init__(self, path: Path, colour: str) -> None:
        self._path = path
        self._blocks = colour == "sync"

    async def _call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._blocks:
            return work(*args, **kwargs)
        return await asyncio.to_thread(work, *args, **kwargs)

    async def open(self) -> None:
        self._db = db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(
            "CREATE TABLE IF NOT EXISTS bare (id TEXT PRIMARY KEY, type TEXT NOT NULL,"
            " state INTEGER NOT NULL, priority INTEGER NOT NULL, created_at INTEGER NOT NULL,"
            " started_at INTEGER, finished_at INTEGER, worker TEXT, payload BLOB, result BLOB)"
        )
        db.execute(
            "CREATE INDEX IF NOT EXISTS bare_ready ON bare (priority DESC, created_at, id)"
            " WHERE state = 0"
        )

    def prepare(self, ids: Sequence[str]) -> Sequence[Any]:
        return ids

    async def submit(self, ids: Sequence[Any]) -> None:
        await self._call(self._submit, ids)

    def _submit(self, ids: Sequence[Any]) -> None:
        now = time.time_ns() // 1000
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(
            "INSERT INTO bare (id, type, state, priority, created_at, payload)"
            " VALUES (?, 'noop', 0, 5, ?, ?)",
            [(id, now, PAYLOAD) for id in ids],
        )
        self._db.execute("COMMIT")

    async def claim(self, count: int) -> Sequence[Any]:
        return await self._call(self._claim, count)

    def _claim(self, count: int) -> Sequence[Any]:
        self._db.execute("BEGIN IMMEDIATE")
        rows = self._db.execute(
            "UPDATE bare SET state = 1, worker = ?, started_at = ? WHERE id IN ("
            " SELECT id FROM bare WHERE state = 0 ORDER BY priority DESC, created_at, id LIMIT ?)"
            " RETURNING id, payload",
            (WORKER, time.time_ns() // 1000, count),
        ).fetchall()
        self._db.execute("COMMIT")
        return rows

    def payload(self, task: Any) -> bytes:
        payload: bytes = task[1]
        return payload

    async def settle(self, claimed: Sequence[Any], results: Sequence[bytes]) -> None:
        await self._call(self._settle, claimed, results)

    def _settle(self, claimed: Sequence[Any], results: Sequence[bytes]) -> None:
        now = time.time_ns() // 1000
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(
            "UPDATE bare SET state = 2, finished_at = ?, result = ? WHERE id = ? AND state = 1",
            [(now, result, id) for (id, _), result in zip(claimed, results, strict=True)],
        )
        self._db.execute("COMMIT")

    async def close(self) -> None:
        self._db.close()


class BarePostgres:
    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> None:
        self._db = await asyncpg.connect(self._url)
        await self._db.execute(
            """
            DROP TABLE IF EXISTS bare;
            CREATE TABLE bare (
                id uuid PRIMARY KEY, type text NOT NULL DEFAULT 'noop',
                state smallint NOT NULL DEFAULT 0, priority smallint NOT NULL DEFAULT 5,
                created_at timestamptz NOT NULL DEFAULT now(), started_at timestamptz,
                finished_at timestamptz, worker text, payload bytea, result bytea
            ) WITH (fillfactor = 70);
            CREATE INDEX bare_ready ON bare (priority DESC, created_at, id) WHERE state = 0;
            """
        )

    def prepare(self, ids: Sequence[str]) -> Sequence[Any]:
        return ids

    async def submit(self, ids: Sequence[Any]) -> None:
        await self._db.execute(
            "INSERT INTO bare (id, payload) SELECT * FROM unnest($1::uuid[], $2::bytea[])",
            ids,
            [PAYLOAD] * len(ids),
        )

    async def claim(self, count: int) -> Sequence[Any]:
        rows: Sequence[Any] = await self._db.fetch(
            "UPDATE bare SET state = 1, worker = $2, started_at = now() WHERE id = ANY(ARRAY("
            " SELECT id FROM bare WHERE state = 0"
            " ORDER BY priority DESC, created_at, id LIMIT $1 FOR UPDATE SKIP LOCKED))"
            " RETURNING id, payload",
            count,
            WORKER,
        )
        return rows

    def payload(self, task: Any) -> bytes:
        payload: bytes = task[1]
        return payload

    async def settle(self, claimed: Sequence[Any], results: Sequence[bytes]) -> None:
        await self._db.execute(
            "UPDATE bare SET state = 2, finished_at = now(), result = done.result"
            " FROM unnest($1::uuid[], $2::bytea[]) AS done (id, result)"
            " WHERE bare.id = done.id AND bare.state = 1",
            [row[0] for row in claimed],
            results,
        )

    async def close(self) -> None:
        await self._db.execute("DROP TABLE IF EXISTS bare")
        await self._db.close()


class BareRedis:
    """One blob a task, a list of what is ready: not even a priority."""

    _SUBMIT = """
        local ids, blobs = {}, {}
        for i = 1, #ARGV, 2 do
            blobs[i] = KEYS[2] .. ARGV[i]; blobs[i + 1] = ARGV[i + 1]; ids[#ids + 1] = ARGV[i]
        end
        redis.call('MSET', unpack(blobs))
        redis.call('RPUSH', KEYS[1], unpack(ids))
    """
    _CLAIM = """
        local ids = redis.call('LPOP', KEYS[1], ARGV[1])
        if not ids then return {} end
        local keys = {}
        for i = 1, #ids do keys[i] = KEYS[2] .. ids[i] end
        return {ids, redis.call('MGET', unpack(keys))}
    """
    _SETTLE = """
        local blobs = {}
        for i = 1, #ARGV, 2 do blobs[i] = KEYS[2] .. ARGV[i]; blobs[i + 1] = ARGV[i + 1] end
        redis.call('MSET', unpack(blobs))
    """
    _KEYS = ("{bare}:ready", "{bare}:task:")

    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> None:
        self._db = Redis.from_url(self._url)
        self._submit, self._claim, self._settle = [
            await self._db.script_load(script)
            for script in (self._SUBMIT, self._CLAIM, self._SETTLE)
        ]

    async def _call(self, script: str, *args: Any) -> Any:
        return await self._db.evalsha(script, 2, *self._KEYS, *args)

    def prepare(self, ids: Sequence[str]) -> Sequence[Any]:
        return ids

    async def submit(self, ids: Sequence[Any]) -> None:
        encode = msgspec.msgpack.encode
        args: list[Any] = []
        for id in ids:
            args += (id, encode({"id": id, "type": "noop", "priority": 5, "payload": PAYLOAD}))
        await self._call(self._submit, *args)

    async def claim(self, count: int) -> Sequence[Any]:
        reply = await self._call(self._claim, count)
        decode = msgspec.msgpack.decode
        return [(id, decode(blob)) for id, blob in zip(*reply, strict=True)] if reply else []

    def payload(self, task: Any) -> bytes:
        payload: bytes = task[1]["payload"]
        return payload

    async def settle(self, claimed: Sequence[Any], results: Sequence[bytes]) -> None:
        encode = msgspec.msgpack.encode
        args: list[Any] = []
        for (id, task), result in zip(claimed, results, strict=True):
            args += (id, encode({**task, "state": "completed", "result": result}))
        await self._call(self._settle, *args)

    async def close(self) -> None:
        await self._db.aclose()


def colours(url: str) -> Sequence[str]:
    """In which ways a store is used: SQLite from ordinary code and from an event loop."""
    return ("sync", "async") if urlsplit(url).scheme == "sqlite" else ("async",)


def bare(url: str, colour: str) -> Loop:
    """The bare loop for this store."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        return BareSqlite(Path(urlsplit(url).path.removeprefix("/") + ".bare"), colour)
    return BarePostgres(url) if scheme.startswith("postgres") else BareRedis(url)


@asynccontextmanager
async def pair(url: str, colour: str) -> AsyncIterator[tuple[Loop, Loop]]:
    """Two bare loops on one table for `together`: of SQLite it is one, because one writes."""
    first = bare(url, colour)
    second = first if urlsplit(url).scheme == "sqlite" else bare(url, colour)
    loops = {id(each): each for each in (first, second)}.values()
    for each in loops:
        await each.open()
    try:
        yield first, second
    finally:
        for each in loops:
            await each.close()


async def noop(payload: Any) -> Any:
    """What every task does."""
    return payload


async def measure(loop: Loop, batch: int) -> tuple[float, float]:
    """Tasks a second: submitted, and claimed, run and settled."""
    total = TOTALS[batch]
    ids = new_ids(total)
    batches = [loop.prepare(ids[start : start + batch]) for start in range(0, total, batch)]
    began = time.perf_counter()
    for tasks in batches:
        await loop.submit(tasks)
    submitted = time.perf_counter()
    done = 0
    while ran := await work(loop, batch):
        done += ran
    settled = time.perf_counter()
    assert done == total, f"{done} of {total} tasks came back"
    return total / (submitted - began), total / (settled - submitted)


async def work(loop: Loop, batch: int) -> int:
    """Claim, run and settle one batch; answers how many tasks there were."""
    decode, encode = msgspec.json.decode, msgspec.json.encode
    claimed = await loop.claim(batch)
    if claimed:
        results = [encode(await noop(decode(loop.payload(task)))) for task in claimed]
        await loop.settle(claimed, results)
    return len(claimed)


async def together(submitting: Loop, working: Loop, batch: int) -> float:
    """Tasks a second that are submitted, claimed, run and settled, all at once.

    On two connections at the same time; by turns if both are the same one, as for a store that lets
    one write at a time.
    """
    total = TOTALS[batch]
    ids = new_ids(total)
    batches = [submitting.prepare(ids[start : start + batch]) for start in range(0, total, batch)]
    alternate = submitting is working

    async def submit() -> None:
        for tasks in batches:
            await submitting.submit(tasks)
            if alternate:
                await work(working, batch)

    async def settle() -> None:
        done = 0
        while done < total:
            done += await work(working, batch)

    began = time.perf_counter()
    await asyncio.gather(submit(), *([] if alternate else [settle()]))
    return total / (time.perf_counter() - began)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--batch", type=int, nargs="+", default=BATCHES, choices=BATCHES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("sqlite", "postgres", "redis"):
        with stores.opened(store) as (name, url):
            print(f"\n{name}: bare loop, best of {options.rounds}")
            for colour in colours(url):
                async with pair(url, colour) as (loop, other):
                    for batch in options.batch:
                        runs = [
                            (*await measure(loop, batch), await together(other, loop, batch))
                            for _ in range(options.rounds)
                        ]
                        submit, settle, both = (max(column) for column in zip(*runs, strict=True))
                        print(
                            f"  {colour:<5} batch {batch:>3}: submit {submit:>9,.0f}/s, "
                            f"claim+settle {settle:>9,.0f}/s, all at once {both:>9,.0f}/s"
                        )


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
