"""Does a claimed and settled batch cost more when much is stored?

The same batches with 1,000 tasks stored, and with 1,000,000 queued and 1,000,000 finished ones,
on two stores of one kind by turns. The ratio of the medians should be at most 1.5.

    python -m bench.growth [--store sqlite] [--queued 1000000] [--finished 1000000]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from statistics import median

from bench import machine, stores
from bench.engine import Fairlane
from bench.loops import use_uvloop
from fairlane.core.ids import new_ids

BATCHES = (10, 100, 500)
SMALL = 1_000


async def fill(ours: Fairlane, queued: int, finished: int) -> None:
    """Finish some tasks, leave others queued."""
    for _ in range(0, finished, 500):
        await ours.submit(ours.prepare(new_ids(500)))
        claimed = await ours.claim(500)
        await ours.settle(claimed, [b"null"] * len(claimed))
    for _ in range(0, queued, 1_000):
        await ours.submit(ours.prepare(new_ids(min(1_000, queued))))


async def one_round(ours: Fairlane, batch: int) -> float:
    """Milliseconds for one batch, claimed and settled; as much is submitted again afterwards."""
    began = time.perf_counter()
    claimed = await ours.claim(batch)
    await ours.settle(claimed, [b"null"] * len(claimed))
    took = time.perf_counter() - began
    assert len(claimed) == batch
    await ours.submit(ours.prepare(new_ids(batch)))
    return took * 1_000


async def compare(store: str, queued: int, finished: int, rounds: int) -> None:
    with stores.opened(store) as (name, small_url), stores.opened(store) as (_, large_url):
        small, large = Fairlane(small_url), Fairlane(large_url)
        for ours in (small, large):
            await ours.open()
        await fill(small, SMALL, SMALL)
        began = time.perf_counter()
        await fill(large, queued, finished)
        print(f"\n{name}: filled in {time.perf_counter() - began:.0f} s")
        for batch in BATCHES:
            steal = machine.Steal()
            times = [
                (await one_round(small, batch), await one_round(large, batch))
                for _ in range(rounds)
            ]
            little, much = (median(column) for column in zip(*times, strict=True))
            print(
                f"  batch {batch:>3}: {little:7.2f} ms with {SMALL:,}, {much:7.2f} ms with "
                f"{queued:,} + {finished:,}: {much / little:.2f} x   steal {steal.percent():.0f} %"
            )
        for ours in (small, large):
            await ours.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--queued", type=int, default=1_000_000)
    parser.add_argument("--finished", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("sqlite", "postgres", "redis"):
        await compare(store, options.queued, options.finished, options.rounds)


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
