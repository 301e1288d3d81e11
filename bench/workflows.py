"""What do workflows cost, beside plain tasks in the same run?

- A gather of 10, 100 and 998 tasks that do nothing, beside as many plain tasks: both are claimed
  and settled in batches, without a handler.
- A graph of 999 tasks with up to three parents each, stored in one call, beside 999 plain tasks.
- The bytes that gathers add which are nested up to six deep, by task and dependency.
- A hop: from the end of a handler to the start of its child's, in a worker that has nothing else
  to do. It includes the report of the end.
- Plain tasks in a store with workflows that wait, beside a store without any.

    python -m bench.workflows [--store sqlite] [--tasks 10000] [--rounds 5]

`bench/canvas.py` runs workflows that are hard for queues beside Celery.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from statistics import median, quantiles
from urllib.parse import urlsplit

import psycopg
from redis import Redis

from bench import machine, stores
from bench.engine import Fairlane as Engine
from bench.loops import use_uvloop
from fairlane import Fairlane
from fairlane.core import limits
from fairlane.core.ids import new_ids, new_run, numbered
from fairlane.core.inputs import Input
from fairlane.core.membership import placed
from fairlane.core.model import Membership, NewTask
from fairlane.core.submission import new_task
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker

WIDTHS = (10, 100, 998)
BATCH = 100
DEPTHS = range(1, 7)
BRANCHES = 2
HOPS = 200
CHAIN = 21
WAITING = 100
"""Workflows that wait, of 100 tasks each."""


def workflow(parents: Sequence[Sequence[int]], delay: float = 0.0) -> list[NewTask]:
    """Tasks that take the results of their parents, which are given by their places."""
    first = new_run(len(parents))
    return [
        placed(
            new_task("noop", {"n": 1}, delay_seconds=0.0 if of else delay),
            first,
            place + 1,
            Membership(f"n{place}", len(parents)),
            [numbered(first, each + 1) for each in of],
            {"results": Input(tuple(range(len(of))), many=True)} if of else {},
        )
        for place, of in enumerate(parents)
    ]


def gathered(width: int) -> list[NewTask]:
    return workflow([*([()] * width), range(width)])


def plain(count: int) -> list[NewTask]:
    return [new_task("noop", {"n": 1}, task_id=each) for each in new_ids(count)]


async def submit(ours: Engine, tasks: Sequence[NewTask], whole: int) -> None:
    """Submit tasks in batches. `whole`: as many tasks belong together, and are in one batch."""
    step = limits.SUBMIT_BATCH // whole * whole
    for start in range(0, len(tasks), step):
        await ours.submit(tasks[start : start + step])


async def drained(ours: Engine) -> tuple[float, int]:
    """Claim and settle until nothing is left: seconds, and tasks."""
    began, done = time.perf_counter(), 0
    while claimed := await ours.claim(BATCH):
        await ours.settle(claimed, [b"1"] * len(claimed))
        done += len(claimed)
    return time.perf_counter() - began, done


# -- questions -------------------------------------------------------------------------------------


async def gathers(ours: Engine, tasks: int, rounds: int) -> None:
    print("\n| gather of | share of plain drain | cost of an end, to that of a plain task |")
    print("|---:|---:|---:|")
    for width in WIDTHS:
        shares = []
        for _ in range(rounds):
            flows = max(1, tasks // (width + 1))
            ready = [task for _ in range(flows) for task in gathered(width)]
            await submit(ours, ready, width + 1)
            took, done = await drained(ours)
            assert done == len(ready)
            await submit(ours, plain(done), 1)
            took_plain, done_plain = await drained(ours)
            assert done_plain == done
            shares.append(took_plain / took)
        share = median(shares)
        print(f"| {width} | {100 * share:.0f} % | {1 / share:.2f} × |")


async def graphs(ours: Engine, rounds: int) -> None:
    luck = random.Random(1)
    size = limits.WORKFLOW_NODES
    parents = [
        sorted({luck.randrange(place) for _ in range(min(place, luck.randrange(4)))})
        for place in range(size)
    ]
    edges = sum(map(len, parents))
    found = []
    for _ in range(max(5, rounds)):
        graph, alone = workflow(parents), plain(size)
        found.append((await took(ours, graph), await took(ours, alone)))
    await drained(ours)
    graph_ms, alone_ms = (1_000 * median(each) for each in zip(*found, strict=True))
    print(
        f"\nA graph of {size} tasks and {edges:,} dependencies is stored in {graph_ms:.0f} "
        f"ms, {size} plain tasks in {alone_ms:.0f} ms: {graph_ms / alone_ms:.1f} ×."
    )


async def took(ours: Engine, tasks: Sequence[NewTask]) -> float:
    began = time.perf_counter()
    await ours.submit(tasks)
    return time.perf_counter() - began


def nested(depth: int) -> list[Sequence[int]]:
    """Gathers in gathers: the parents of each task. The last task takes what is below it."""
    parents: list[Sequence[int]] = []

    def add(depth: int) -> int:
        of = [add(depth - 1) for _ in range(BRANCHES)] if depth else []
        parents.append(of)
        return len(parents) - 1

    add(depth)
    return parents


async def bytes_stored(store: str) -> None:
    print("\n| nested gathers, deep | tasks | dependencies | bytes for each of both |")
    print("|---:|---:|---:|---:|")
    for depth in DEPTHS:
        parents = nested(depth)
        edges = sum(map(len, parents))
        copies = max(1, 3_000 // len(parents))
        if len(parents) > limits.WORKFLOW_NODES:
            print(f"| {depth} | {len(parents):,} | {edges:,} | more than a workflow may have |")
            continue
        with stores.opened(store) as (_, url):
            ours = Engine(url)
            await ours.open()
            before = size_of(url)
            for _ in range(copies):
                await ours.submit(workflow(parents))
            after = size_of(url)
            await ours.close()
        each = (after - before) / copies / (len(parents) + edges)
        print(f"| {depth} | {len(parents):,} | {edges:,} | {each:,.0f} |")


def size_of(url: str) -> int:
    """The bytes that a store takes, of disk or of memory."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        with closing(sqlite3.connect(parts.path[1:] if parts.netloc else parts.path)) as store:
            ((pages,),) = store.execute("PRAGMA page_count").fetchall()
            ((size,),) = store.execute("PRAGMA page_size").fetchall()
        return int(pages * size)
    if parts.scheme.startswith("postgres"):
        with psycopg.connect(url) as connection:
            ((size,),) = connection.execute(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
                " WHERE relkind = 'r' AND relnamespace = 'fairlane'::regnamespace"
            ).fetchall()
        return int(size)
    with Redis.from_url(url) as client:
        return int(client.info("memory")["used_memory"])


async def hops(url: str) -> None:
    """From the end of a handler to the start of the next in its chain."""
    app = Fairlane(url)
    found: list[float] = []

    @app.task
    async def stamp(before: int = 0) -> int:
        now = time.monotonic_ns()
        if before:
            found.append((now - before) / 1e6)
        return time.monotonic_ns()

    worker = Worker(app, Config())
    running = asyncio.create_task(worker.run(signals=False))
    while len(found) < HOPS:
        chain = stamp.prepare().then(stamp)
        for _ in range(CHAIN - 2):
            chain = chain.then(stamp)
        flow = await app.submit(chain)
        await flow.result(timeout=60)
    worker.stop()
    await running
    await app.aclose()
    p50, p99 = median(found), quantiles(found, n=100)[-1]
    print(
        f"\nA hop takes {p50:.1f} ms (p50), {p99:.1f} ms (p99): {len(found)} in chains of {CHAIN}."
    )


async def plain_beside(store: str, tasks: int, rounds: int) -> None:
    with stores.opened(store) as (_, bare_url), stores.opened(store) as (_, full_url):
        bare, full = Engine(bare_url), Engine(full_url)
        for ours in (bare, full):
            await ours.open()
        for _ in range(WAITING):
            await full.submit(workflow([*([()] * 99), range(99)], delay=1e6))
        ratios = []
        for turn in range(max(5, rounds)):
            times = {}
            for name, ours in sorted({"bare": bare, "full": full}.items(), reverse=turn % 2 == 1):
                await submit(ours, plain(tasks), 1)
                times[name], done = await drained(ours)
                assert done == tasks
            ratios.append(times["bare"] / times["full"])
        for ours in (bare, full):
            await ours.close()
    print(
        f"\nPlain tasks beside {WAITING} workflows of 100 tasks that wait: {median(ratios):.2f} × "
        f"the rate without them ({min(ratios):.2f}–{max(ratios):.2f})."
    )


async def measure(store: str, tasks: int, rounds: int) -> None:
    with stores.opened(store) as (name, url):
        print(f"\n## {name}")
        ours = Engine(url)
        await ours.open()
        await submit(ours, plain(tasks), 1)
        await drained(ours)  # not counted
        await gathers(ours, tasks, rounds)
        await graphs(ours, rounds)
        await ours.close()
    with stores.opened(store) as (_, url):
        await hops(url)
    await bytes_stored(store)
    await plain_beside(store, tasks, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", action="append", choices=stores.NAMES)
    parser.add_argument("--tasks", type=int, default=10_000, help="In a backlog.")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    use_uvloop()
    print(machine.describe())
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}")
    for store in options.store or ("sqlite", "postgres", "redis"):
        steal, others = machine.Steal(), machine.busy_percent(1.0)
        asyncio.run(measure(store, options.tasks, options.rounds))
        print(f"\n{others:.0f} % of the CPU in use right before, {steal.percent():.0f} % steal.")


if __name__ == "__main__":
    main()
