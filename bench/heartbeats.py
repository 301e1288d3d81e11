"""What does a heartbeat cost a worker that holds many tasks, with and without reconciliation?

Workers claim their tasks. Then they send heartbeats by turns: one alone, as before there was any
reconciliation; one as a worker does it, which compares what it holds with the store once in a
lease, so with every third heartbeat; and one only compares. A heartbeat is a commit, and takes as
long as the disk does; a comparison only reads. On a machine that has other work to do, the CPU time
says more: that of this process, which for SQLite is all there is.

    python -m bench.heartbeats [--store sqlite] [--tasks 500] [--others 0] [--rounds 300]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from contextlib import suppress
from statistics import fmean, median, quantiles
from typing import NamedTuple

from bench import machine, stores
from bench.loops import use_uvloop
from fairlane import engines
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.holdings import Comparison, Holdings, InHand, Run, read_all
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Beat, NewWorker
from fairlane.core.submission import new_task

WARMING = 20
BEATS_A_LEASE = 3
ALONE, RECONCILED, COMPARISON = (
    "a heartbeat without reconciliation",
    "a heartbeat with reconciliation, once in a lease",
    "a comparison by itself",
)
WAYS = (ALONE, RECONCILED, COMPARISON)


class Cost(NamedTuple):
    """In seconds."""

    wall: float
    cpu: float


class Subject:
    """A worker that holds tasks."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._worker_id = new_id()
        self._runs: frozenset[Run] = frozenset()
        self._comparison = Comparison()
        self._beats = 0

    async def hold(self, tasks: int) -> None:
        run, ops = self._backend.run, self._backend.ops
        await run(ops.register(NewWorker(self._worker_id, capacity=max(tasks, 1))))
        runs: set[Run] = set()
        while len(runs) < tasks:
            count = min(tasks - len(runs), limits.BATCH)
            await run(ops.submit([new_task("work", {"n": 1}) for _ in range(count)]))
            grant = await run(ops.claim(Ask(self._worker_id, new_id(), count)))
            runs.update((task.task_id, task.attempt) for task in grant.tasks)
        self._runs = frozenset(runs)

    async def measured(self, way: str) -> Cost:
        """Return what a heartbeat or a comparison takes."""
        self._beats += 1
        began, cpu = time.perf_counter(), time.process_time()
        if way != COMPARISON:
            await self._backend.run(self._backend.ops.heartbeat(Beat(self._worker_id, load=1)))
        if way == COMPARISON or (way == RECONCILED and self._beats % BEATS_A_LEASE == 0):
            await self._compare()
        return Cost(time.perf_counter() - began, time.process_time() - cpu)

    async def _compare(self) -> None:
        before = InHand(frozenset(self._runs))
        listed = await read_all(self._page)
        self._comparison.compare(listed, before, InHand(frozenset(self._runs)))
        assert not self._comparison.pending, "a healthy worker and its store disagree"

    async def _page(self, cursor: str | None) -> Holdings:
        op = self._backend.ops.holdings(self._worker_id, limits.BATCH, cursor)
        return await self._backend.run(op)


async def measure(url: str, tasks: int, others: int, rounds: int) -> dict[str, list[Cost]]:
    """Return how long heartbeats took, each way."""
    backend = engines.open(url)
    try:
        await backend.run(backend.ops.migrate())
        for _ in range(others):
            await Subject(backend).hold(tasks)
        subjects = {way: Subject(backend) for way in WAYS}
        for subject in subjects.values():
            await subject.hold(tasks)
        found: dict[str, list[Cost]] = {way: [] for way in WAYS}
        for number in range(WARMING + rounds):
            for way, subject in subjects.items():
                cost = await subject.measured(way)
                if number >= WARMING:
                    found[way].append(cost)
        return found
    finally:
        with suppress(Exception):
            await backend.driver.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--tasks", type=int, default=500, help="that each worker holds")
    parser.add_argument("--others", type=int, default=0, help="workers that hold as many beside")
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    use_uvloop()
    print(machine.describe())
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}")
    for store in options.store or ("sqlite", "postgres", "redis"):
        with stores.opened(store) as (name, url):
            found = asyncio.run(measure(url, options.tasks, options.others, options.rounds))
        print(f"\n## {name}: {options.tasks} tasks held\n")
        print("| | median, ms | mean, ms | 99 % | CPU, median, ms |\n|---|---:|---:|---:|---:|")
        for way, costs in found.items():
            wall, cpu = [cost.wall for cost in costs], [cost.cpu for cost in costs]
            values = (median(wall), fmean(wall), quantiles(wall, n=100)[98], median(cpu))
            print(f"| {way} | {' | '.join(f'{1e3 * value:.2f}' for value in values)} |")


if __name__ == "__main__":
    main()
