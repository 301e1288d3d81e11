"""What Fairlane's engines do, beside the bare loop, as ratios in one run.

Everything is on: lanes, fences, journal, counters. One process, one operation at a time, in the
colour of its bare loop: SQLite from ordinary code and from an event loop, the servers from a loop.

    python -m bench.engine [--store URL] [--batch 100 500] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from statistics import median
from typing import Any, TypeVar

from bench import machine, stores
from bench.limit import BATCHES, PAYLOAD, bare, colours, measure
from bench.loops import use_uvloop
from fairlane import engines
from fairlane.core.flow import Op
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, NewTask, NewWorker, Verdict
from fairlane.core.outcomes import Completed
from fairlane.core.settlement import Settlement
from fairlane.core.submission import new_task

T = TypeVar("T")


class Fairlane:
    """An engine in the shape of a bare loop."""

    def __init__(self, url: str, colour: str = "async") -> None:
        self._backend = engines.open(url)
        self._blocks = colour == "sync"
        self._template = new_task("noop", PAYLOAD)

    async def _run(self, op: Op[T]) -> T:
        return self._backend.run_sync(op) if self._blocks else await self._backend.run(op)

    async def open(self) -> None:
        await self._run(self._backend.ops.migrate())
        self._worker = new_id()
        await self._run(self._backend.ops.register(NewWorker(self._worker, lease=3_600)))

    def prepare(self, ids: Sequence[str]) -> Sequence[NewTask]:
        like = self._template
        return [
            NewTask(
                id,
                like.type,
                like.queue,
                like.capabilities,
                like.level,
                like.payload,
                like.max_retries,
                like.timeout,
            )
            for id in ids
        ]

    async def submit(self, tasks: Sequence[NewTask]) -> None:
        await self._run(self._backend.ops.submit(tasks))

    async def claim(self, count: int) -> Sequence[Any]:
        ask = Ask(self._worker, new_id(), count)
        return (await self._run(self._backend.ops.claim(ask))).tasks

    def payload(self, task: Claimed) -> bytes:
        return task.payload

    async def settle(self, claimed: Sequence[Claimed], results: Sequence[bytes]) -> None:
        settlements = []
        for task, result in zip(claimed, results, strict=True):
            fence = (task.task_id, task.attempt, task.worker_id)
            settlements.append(Settlement(*fence, Completed(result), task, 0.0001))
        settled = await self._run(self._backend.ops.settle(settlements))
        assert all(answer.verdict is Verdict.APPLIED for answer in settled)

    async def close(self) -> None:
        await self._backend.driver.aclose()


async def compare(url: str, colour: str, batch: int, rounds: int) -> None:
    """Bare loop and engine by turns; the medians of both, and of their ratios."""
    plain, ours = bare(url, colour), Fairlane(url, colour)
    await plain.open()
    await ours.open()
    steal = machine.Steal()
    runs = [(await measure(plain, batch), await measure(ours, batch)) for _ in range(rounds)]
    await plain.close()
    await ours.close()
    cells = []
    for part, name in enumerate(("submit", "claim+settle")):
        limit = median(bare_run[part] for bare_run, _ in runs)
        mine = median(our_run[part] for _, our_run in runs)
        ratio = median(our_run[part] / bare_run[part] for bare_run, our_run in runs)
        cells.append(f"{name:<12} {limit:>9,.0f} {mine:>9,.0f} {ratio:>6.2f}")
    print(f"  {colour:<5} {batch:>4}  {cells[0]}   {cells[1]}   steal {steal.percent():.0f} %")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--batch", type=int, nargs="+", default=BATCHES, choices=BATCHES)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(machine.describe())
    for store in options.store or ("sqlite", "postgres", "redis"):
        with stores.opened(store) as (name, url):
            print(f"\n{name}: tasks/s by batch size: bare loop, Fairlane, ratio")
            for colour in colours(url):
                for batch in options.batch:
                    await compare(url, colour, batch, options.rounds)


if __name__ == "__main__":
    use_uvloop()
    asyncio.run(main())
