"""How long does it take to look? Statistics, lists and totals with millions of tasks stored.

Each should answer in under 50 ms with 1,000,000 queued and 1,000,000 finished tasks.

    python -m bench.reads [--store sqlite] [--queued 1000000] [--finished 1000000]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from statistics import median
from typing import Any

from bench import machine, stores
from bench.engine import Fairlane
from bench.growth import fill
from bench.loops import use_uvloop
from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.filters import EVERYTHING, Filter, new_filter
from fairlane.core.flow import Op
from fairlane.core.submission import new_task

CALLS = 20


async def scatter(backend: Backend) -> str:
    """A few tasks of other kinds among the many; the oldest of them is answered."""
    tasks = [
        new_task("rare", {"n": n}, queue="other", priority=n % 11, tags={"team": "red"})
        for n in range(200)
    ]
    accepted = await backend.run(backend.ops.submit(tasks))
    await backend.run(backend.ops.cancel([answer.task_id for answer in accepted[:100]]))
    await backend.run(backend.ops.sample())
    return accepted[0].task_id


def questions(backend: Backend, task_id: str) -> dict[str, Op[Any]]:
    ops = backend.ops
    filters: dict[str, Filter] = {
        "newest": EVERYTHING,
        "queued": new_filter(status="queued"),
        "completed": new_filter(status="completed"),
        "cancelled": new_filter(status="cancelled"),
        "dead letters (none)": new_filter(status="dead_letter"),
        "type noop, completed": new_filter(type="noop", status="completed"),
        "type rare": new_filter(type="rare"),
        "tag of few": new_filter(tags={"team": "red"}),
        "tag of none": new_filter(tags={"team": "green"}),
        "priority of none": new_filter(priority=1, status="completed"),
        "a worker's": new_filter(worker="nobody"),
    }
    asked: dict[str, Op[Any]] = {
        f"page: {name}": ops.page(each, 50) for name, each in filters.items()
    }
    asked["total"] = ops.total(new_filter(status="queued", type="noop"))
    asked["total by tag"] = ops.total(new_filter(tags={"team": "red"}))
    asked["stats"] = ops.stats()
    asked["position"] = ops.position([task_id])
    asked["why"] = ops.why(task_id)
    return asked


async def look(store: str, queued: int, finished: int) -> None:
    with stores.opened(store) as (name, url):
        ours = Fairlane(url)
        await ours.open()
        await fill(ours, queued, finished)
        await ours.close()
        async with engines.open(url) as backend:
            task_id = await scatter(backend)
            print(f"\n{name}: ms, median and longest of {CALLS} calls, {queued:,} + {finished:,}")
            for what, op in questions(backend, task_id).items():
                steal = machine.Steal()
                times = []
                for _ in range(CALLS):
                    began = time.perf_counter()
                    await backend.run(op)
                    times.append((time.perf_counter() - began) * 1_000)
                print(
                    f"  {what:<28} {median(times):7.1f} {max(times):7.1f}"
                    f"   steal {steal.percent():.0f} %"
                )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--queued", type=int, default=1_000_000)
    parser.add_argument("--finished", type=int, default=1_000_000)
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("sqlite", "postgres", "redis"):
        await look(store, options.queued, options.finished)


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
