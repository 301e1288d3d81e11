"""Does deleting old tasks hold up claims?

100,000 finished tasks are pruned while another connection goes on claiming and settling. No claim
should take more than 50 ms longer than it does undisturbed.

    python -m bench.pruning [--store sqlite] [--finished 100000]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from statistics import median, quantiles

from bench import machine, stores
from bench.engine import Fairlane
from bench.growth import fill
from bench.loops import use_uvloop
from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.ids import new_ids
from fairlane.core.retention import Retention

QUEUED = 20_000
BATCH = 10
AT_ONCE = Retention(completed=0)


async def claims(ours: Fairlane, until: asyncio.Event) -> list[float]:
    """Milliseconds of each claim, until told to stop."""
    times = []
    while not until.is_set():
        began = time.perf_counter()
        claimed = await ours.claim(BATCH)
        times.append((time.perf_counter() - began) * 1_000)
        await ours.settle(claimed, [b"null"] * len(claimed))
        await ours.submit(ours.prepare(new_ids(BATCH)))
    return times


async def prune(backend: Backend) -> int:
    deleted = 0
    while True:
        pruned = await backend.run(backend.ops.prune(AT_ONCE))
        deleted += pruned.tasks
        if pruned.tasks < 500:  # what is left ended just now
            return deleted


def told(what: str, times: list[float]) -> str:
    p99 = quantiles(times, n=100)[-1]
    return (
        f"  {what:<12} {median(times):7.2f} {p99:7.2f} {max(times):7.2f}  of {len(times):,} claims"
    )


async def measure(store: str, finished: int) -> None:
    with stores.opened(store) as (name, url):
        ours = Fairlane(url)
        await ours.open()
        await fill(ours, QUEUED, finished)
        async with engines.open(url) as other:
            print(f"\n{name}: ms of a claim of {BATCH}: median, p99, longest")
            done = asyncio.Event()
            undisturbed = asyncio.create_task(claims(ours, done))
            await asyncio.sleep(5)
            done.set()
            print(told("undisturbed", await undisturbed))
            steal, done = machine.Steal(), asyncio.Event()
            disturbed = asyncio.create_task(claims(ours, done))
            began = time.perf_counter()
            deleted = await prune(other)
            took = time.perf_counter() - began
            done.set()
            print(told("pruning", await disturbed))
            print(f"  {deleted:,} deleted in {took:.1f} s, steal {steal.percent():.0f} %")
        await ours.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--finished", type=int, default=100_000)
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("sqlite", "postgres", "redis"):
        await measure(store, options.finished)


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
