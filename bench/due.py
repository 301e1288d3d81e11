"""Are tasks that come due together claimed at once, and in the right order?

A million tasks of three levels become due in the same second, and a few urgent ones after them. The
first claims are timed and their order is checked; then maintenance moves the rest while claims go
on.

    python -m bench.due [--store sqlite] [--tasks 1000000]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from statistics import median

from bench import machine, stores
from bench.loops import use_uvloop
from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.ids import new_id
from fairlane.core.limits import SUBMIT_BATCH
from fairlane.core.model import Ask, NewWorker
from fairlane.core.submission import new_task

LEVELS = ("low", "medium", "high")
URGENT = 5
CLAIMS, SLOTS = 20, 40
DELAY = 36_000


async def fill(backend: Backend, count: int) -> None:
    for first in range(0, count, SUBMIT_BATCH):
        priority = LEVELS[first // SUBMIT_BATCH % len(LEVELS)]
        tasks = [
            new_task(f"type-{n % 10}", {"n": n}, priority=priority, delay_seconds=DELAY)
            for n in range(first, min(first + SUBMIT_BATCH, count))
        ]
        await backend.run(backend.ops.submit(tasks))
    urgent = [new_task("urgent", priority="critical", delay_seconds=DELAY) for _ in range(URGENT)]
    await backend.run(backend.ops.submit(urgent))


async def claims(backend: Backend, worker: str, count: int) -> tuple[list[float], list[int]]:
    """(milliseconds of each claim, levels in the order of the claims)."""
    times, levels = [], []
    for _ in range(count):
        began = time.perf_counter()
        grant = await backend.run(backend.ops.claim(Ask(worker, new_id(), SLOTS)))
        times.append((time.perf_counter() - began) * 1_000)
        levels += [task.level for task in grant.tasks]
    return times, levels


async def measure(store: str, count: int) -> None:
    with stores.opened(store) as (name, url):
        async with engines.open(url) as backend, engines.open(url) as other:
            await backend.run(backend.ops.migrate())
            worker = await backend.run(backend.ops.register(NewWorker(new_id(), lease=2 * DELAY)))
            await fill(backend, count)
            await claims(backend, worker, 1)  # the first of a process prepares
            await backend.run(backend.ops.shift_clock(DELAY + 600))
            steal = machine.Steal()
            times, levels = await claims(backend, worker, CLAIMS)
            assert levels == sorted(levels, reverse=True), "out of order"
            assert levels.count(10) == URGENT, "the urgent ones are missing"
            print(f"\n{name}: {count:,} tasks due at once, claims of {SLOTS}, ms")
            print(
                f"  first {times[0]:.1f}, median of the first {CLAIMS} {median(times):.1f}, "
                f"longest {max(times):.1f}; in order"
            )
            began = time.perf_counter()
            moving = asyncio.create_task(move_all(other))
            during: list[float] = []
            while not moving.done():
                some, _ = await claims(backend, worker, 1)
                during += some
                await asyncio.sleep(0.01)
            took = time.perf_counter() - began
            print(
                f"  maintenance and claims moved the rest in {took:.1f} s; meanwhile a claim took "
                f"{median(during):.1f}, at most {max(during):.1f}; steal {steal.percent():.0f} %"
            )


async def move_all(backend: Backend) -> None:
    while (await backend.run(backend.ops.move_due())).more:  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("sqlite", "postgres", "redis"):
        await measure(store, options.tasks)


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
