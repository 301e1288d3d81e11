"""What a claim costs where there are thousands of lanes.

First each lane has a task: a worker that may take none of them, one that may take a single other
type, and one that may take all claim one task. Then all tasks have run, and the same workers claim
again.

    python -m bench.lanes [--store sqlite] [--lanes 9000]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from statistics import median
from typing import Any

from bench import machine, stores
from bench.loops import use_uvloop
from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.ids import new_id
from fairlane.core.limits import SUBMIT_BATCH
from fairlane.core.model import Ask, NewWorker
from fairlane.core.outcomes import Completed
from fairlane.core.settlement import Settlement
from fairlane.core.submission import new_task

CLAIMS = 10
GPU = frozenset({"gpu"})
WORKERS: dict[str, dict[str, Any]] = {
    "none": {},
    "another type": {"types": frozenset({"other"})},
    "all": {"capabilities": GPU},
}


async def fill(backend: Backend, lanes: int) -> None:
    for first in range(0, lanes, SUBMIT_BATCH):
        tasks = [
            new_task(f"type-{n}", required_capabilities=GPU)
            for n in range(first, min(first + SUBMIT_BATCH, lanes))
        ]
        await backend.run(backend.ops.submit(tasks))


async def drain(backend: Backend, worker: str) -> None:
    run, ops = backend.run, backend.ops
    while tasks := (await run(ops.claim(Ask(worker, new_id(), 500, capabilities=GPU)))).tasks:
        done = [
            Settlement(task.task_id, task.attempt, worker, Completed(b"null"), task, 0.0)
            for task in tasks
        ]
        await run(ops.settle(done))


async def show(backend: Backend, worker: str, title: str) -> None:
    for name, options in WORKERS.items():
        times = []
        for _ in range(CLAIMS):
            began = time.perf_counter()
            await backend.run(backend.ops.claim(Ask(worker, new_id(), 1, **options)))
            times.append((time.perf_counter() - began) * 1_000)
        print(f"  {title}, may take {name:<12}: {median(times):>7.2f} ms", flush=True)


async def measure(store: str, lanes: int) -> None:
    with stores.opened(store) as (name, url):
        async with engines.open(url) as backend:
            await backend.run(backend.ops.migrate())
            worker = await backend.run(backend.ops.register(NewWorker(new_id(), lease=36_000.0)))
            print(f"\n{name}: a claim of one task, median of {CLAIMS}")
            await show(backend, worker, "no lanes")
            await fill(backend, lanes)
            await show(backend, worker, f"{lanes:,} lanes with a task")
            await drain(backend, worker)
            await show(backend, worker, f"{lanes:,} empty lanes")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--lanes", type=int, default=9_000)
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("sqlite", "postgres", "redis"):
        await measure(store, options.lanes)


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
