"""Do claims get slower as tasks come and go, and while an old transaction stays open?

500,000 tasks are submitted, claimed and settled; the p99 of claims at the end should be at most
twice that at the start. Then a REPEATABLE READ transaction is held open for three minutes while 300
tasks a second run: at most three times. (The second part is for PostgreSQL, where an old snapshot
keeps dead rows from being swept.)

    python -m bench.churn [--store postgres] [--tasks 500000] [--seconds 180] [--rate 300]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from statistics import median, quantiles

import psycopg

from bench import machine, stores
from bench.engine import Fairlane
from bench.loops import use_uvloop
from fairlane.core.ids import new_ids

BATCH = 100
BACKLOG = 5_000
WINDOW = 200
"""Claims at the start and at the end that are compared."""


def p99(times: list[float]) -> float:
    return quantiles(times, n=100)[-1]


async def one(ours: Fairlane, batch: int) -> float:
    """Milliseconds of a claim; what it took is settled, and as much is submitted again."""
    began = time.perf_counter()
    claimed = await ours.claim(batch)
    took = (time.perf_counter() - began) * 1_000
    await ours.settle(claimed, [b"null"] * len(claimed))
    await ours.submit(ours.prepare(new_ids(batch)))
    return took


async def churn(ours: Fairlane, tasks: int) -> None:
    steal = machine.Steal()
    times = [await one(ours, BATCH) for _ in range(tasks // BATCH)]
    first, last = times[10 : 10 + WINDOW], times[-WINDOW:]
    print(
        f"  churn of {tasks:,}: median {median(first):.2f} -> {median(last):.2f} ms, "
        f"p99 {p99(first):.2f} -> {p99(last):.2f} ms: {p99(last) / p99(first):.2f} x"
        f"   steal {steal.percent():.0f} %"
    )


async def at_a_rate(ours: Fairlane, rate: float, seconds: float) -> list[float]:
    """Claims of ten at a steady pace."""
    times = []
    begin = time.perf_counter()
    while (now := time.perf_counter()) < begin + seconds:
        times.append(await one(ours, 10))
        await asyncio.sleep(max(0.0, begin + len(times) * 10 / rate - now))
    return times


async def under_an_old_snapshot(ours: Fairlane, url: str, rate: float, seconds: float) -> None:
    steal = machine.Steal()
    before = await at_a_rate(ours, rate, seconds / 3)
    with psycopg.connect(url) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT count(*) FROM pg_class")
        during = await at_a_rate(ours, rate, seconds)
    last = during[-WINDOW:]
    after = await at_a_rate(ours, rate, 60)
    print(
        f"  {rate:g}/s beside a transaction open for {seconds:g} s: p99 {p99(before):.2f} -> "
        f"{p99(last):.2f} ms at its end: {p99(last) / p99(before):.2f} x; "
        f"a minute after it {p99(after[-WINDOW:]):.2f} ms   steal {steal.percent():.0f} %"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--tasks", type=int, default=500_000)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--rate", type=float, default=300)
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("postgres",):
        with stores.opened(store) as (name, url):
            print(f"\n{name}")
            ours = Fairlane(url)
            await ours.open()
            await ours.submit(ours.prepare(new_ids(1_000)))
            for _ in range(BACKLOG // 1_000):
                await ours.submit(ours.prepare(new_ids(1_000)))
            await churn(ours, options.tasks)
            if url.startswith("postgres"):
                await under_an_old_snapshot(ours, url, options.rate, options.seconds)
            await ours.close()


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
