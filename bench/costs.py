"""What it costs that Fairlane can be watched: journal, counters, metrics and logs, each on top.

Four workers, each with a store of its own, drain backlogs of tasks that do nothing, by turns and
many times over: without journal and counters (no setting does that: `bench/peers/bookless.py` cuts
them out); as it comes; with a server beside it whose `/metrics` is asked for every second; and with
each transition in a log of JSON, too. A ratio is the median of the rounds' ratios. On a machine
that has other work to do, CPU time says more than tasks a second: that of the worker, and that of
store and server.

    python -m bench.costs [--store sqlite] [--rounds 20] [--tasks 5000]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from statistics import median, quantiles

from bench import machine, stores
from bench.loops import use_uvloop
from bench.peers.observed import CHOICES, Burst, Observed

NAMES = {
    "off": "neither journal nor counters",
    "books": "journal and counters: as it comes",
    "metrics": "and metrics, asked for every second",
    "logs": "and each transition in a log of JSON",
}
WARMING = 2
"""Rounds that do not count."""
HEAD = (
    "| | tasks/s | ratio | worker, µs of CPU a task | store and server | CPU of all, ratio |\n"
    "|---|---:|---:|---:|---:|---:|"
)

Bursts = dict[str, list[Burst]]


async def measure(urls: dict[str, str], rounds: int, tasks: int) -> Bursts:
    """What each choice took, round by round."""
    found: Bursts = {choice: [] for choice in CHOICES}
    async with AsyncExitStack() as stack:
        subjects = {choice: Observed(choice, url) for choice, url in urls.items()}
        for subject in subjects.values():
            stack.push_async_callback(subject.close)
            await subject.open()
        for turn in range(WARMING + rounds):
            # None is always the first, or the one after the slowest.
            order = CHOICES[turn % len(CHOICES) :] + CHOICES[: turn % len(CHOICES)]
            for choice in order if turn % 2 else reversed(order):
                burst = await subjects[choice].drained(tasks)
                if turn >= WARMING:
                    found[choice].append(burst)
        assert subjects["metrics"].scraped, "nobody asked for metrics"
        assert subjects["logs"].scraped, "nobody asked for metrics"
    return found


def show(found: Bursts) -> None:
    """As Markdown."""
    print(HEAD)
    for choice, bursts in found.items():
        rate = median(burst.rate for burst in bursts)
        worker = median(burst.worker for burst in bursts)
        beside = median(burst.beside for burst in bursts)
        rates = _ratio(found, choice, lambda burst: burst.rate)
        cpu = _ratio(found, choice, lambda burst: burst.cpu)
        print(f"| {NAMES[choice]} | {rate:,.0f} | {rates} | {worker:.1f} | {beside:.1f} | {cpu} |")


def _ratio(found: Bursts, choice: str, what: Callable[[Burst], float]) -> str:
    """To the one that has nothing on; and between which half of the rounds lie."""
    pairs = zip(found[choice], found["off"], strict=True)
    ratios = [what(burst) / what(bare) for burst, bare in pairs]
    if choice == "off" or len(ratios) < 2:
        return f"{median(ratios):.2f}"
    low, _, high = quantiles(ratios, n=4)
    return f"{median(ratios):.2f} ({low:.2f}–{high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", action="append", choices=stores.NAMES)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=5_000, help="In a backlog; whole thousands.")
    options = parser.parse_args()
    use_uvloop()
    print(machine.describe())
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}")
    for store in options.store or ("sqlite", "postgres", "redis"):
        with ExitStack() as stack:
            opened = {choice: stack.enter_context(stores.opened(store)) for choice in CHOICES}
            urls = {choice: url for choice, (_, url) in opened.items()}
            others, steal, began = machine.busy_percent(1.0), machine.Steal(), time.monotonic()
            found = asyncio.run(measure(urls, options.rounds, options.tasks))
            print(f"\n## {opened['off'][0]}\n")
            show(found)
        took = time.monotonic() - began
        print(
            f"\n{options.rounds} rounds of {options.tasks:,} tasks each in {took:.0f} s, "
            f"{steal.percent():.0f} % steal; {others:.0f} % of the CPU in use right before."
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
