"""Measures one queue once, and prints what it found as a line of JSON.

    python -m bench.peers.run NAME submit|drain|together|latency|latency_here|footprint

It runs in the environment of the queue; `bench.throughput` calls it. The store is named by the
environment, and empty.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from bench.loops import use_uvloop
from bench.peers.crew import Crew
from bench.peers.marks import cpu_seconds, resident
from bench.peers.peer import Peer, SubmitsMany, SubmitsSync

IN_FLIGHT = 100
BATCH = 500
Found = dict[str, Any]


async def rate(seconds: float, work: Callable[[], Awaitable[int]]) -> float:
    """Tasks a second, if this is done again and again for so long."""
    began = time.perf_counter()
    done = 0
    while (passed := time.perf_counter() - began) < seconds:
        done += await work()
    return done / passed


async def submit(peer: Peer, options: argparse.Namespace) -> Found:
    """Tasks a second: one after the other, a hundred under way, many in one go."""
    values = itertools.count()

    async def one() -> int:
        await peer.submit(next(values))
        return 1

    async def some() -> int:
        # What is under way together is started by one loop, and refilled as each returns.
        async def several() -> None:
            for _ in range(10):
                await peer.submit(next(values))

        await asyncio.gather(*(several() for _ in range(IN_FLIGHT)))
        return 10 * IN_FLIGHT

    found: Found = {"one": await rate(options.seconds, one)}
    if isinstance(peer, SubmitsSync):
        sync = peer

        async def blocking() -> int:
            sync.submit_sync(next(values))
            return 1

        found["sync"] = await rate(options.seconds, blocking)
    if peer.CONCURRENT:
        found["concurrent"] = await rate(options.seconds, some)
    if isinstance(peer, SubmitsMany):
        bulk = peer

        async def many() -> int:
            await bulk.submit_many(list(itertools.islice(values, BATCH)))
            return BATCH

        found["many"] = await rate(options.seconds, many)
    return found


async def fill(peer: Peer, tasks: int) -> None:
    """Submit so many in the quickest way there is."""
    values = iter(range(tasks))
    if isinstance(peer, SubmitsMany):
        while batch := list(itertools.islice(values, BATCH)):
            await peer.submit_many(batch)
        return

    async def one_by_one() -> None:
        for value in values:
            await peer.submit(value)

    await asyncio.gather(*(one_by_one() for _ in range(IN_FLIGHT if peer.CONCURRENT else 1)))


async def drain(peer: Peer, options: argparse.Namespace) -> Found:
    """Tasks a second, from the start of the first handler to the last stored result."""
    await fill(peer, options.tasks)
    with Crew(peer) as crew:
        await crew.begun(1)
        busy = sum(map(cpu_seconds, crew.pids()))
        end = await crew.done(options.tasks)
        busy = sum(map(cpu_seconds, crew.pids())) - busy
        began = crew.seen.starts()[0]
        # Some run a task more than once, now and then; whoever reads the numbers is told.
        repeated = crew.seen.count() - options.tasks
    return {
        "drain": options.tasks / (end - began) * 1e9,
        "cpu_us": busy / options.tasks * 1e6,
        "repeated": repeated,
    }


async def together(peer: Peer, options: argparse.Namespace) -> Found:
    """Tasks a second that are submitted, run and settled, all at once."""
    with Crew(peer) as crew:
        await peer.submit(0)
        await crew.done(1)
        began = time.monotonic_ns()
        await fill(peer, options.tasks)
        end = await crew.done(options.tasks + 1)
        return {"together": options.tasks / (end - began) * 1e9}


async def latency(peer: Peer, options: argparse.Namespace) -> Found:
    """Milliseconds from the call that submits to the start of the handler, one at a time."""
    here = options.measure == "latency_here"
    place = import_module(f"bench.peers.{options.name}").working_here() if here else nullcontext()
    with Crew(peer, none=here) as crew:
        async with place:
            for warmed in range(5):
                await peer.submit(warmed)
                await crew.begun(warmed + 1)
            sent: list[int] = []
            until = time.monotonic() + options.seconds
            while time.monotonic() < until and len(sent) < options.tasks:
                # Never in step with a queue that looks at intervals.
                await asyncio.sleep(random.uniform(0.005, 0.03))
                sent.append(time.monotonic_ns())
                await peer.submit(len(sent))
                await crew.begun(5 + len(sent))
            starts = crew.seen.starts()[5:]
    taken = [(start - begin) / 1e6 for begin, start in zip(sent, starts, strict=True)]
    return {"latency": taken}


async def footprint(peer: Peer, options: argparse.Namespace) -> Found:
    """A worker's memory after half of the tasks and after all, and what it does when idle."""
    with Crew(peer) as crew:
        await fill(peer, options.tasks // 2)
        await crew.done(options.tasks // 2)
        ((pid, imported),) = crew.seen.memory().items()
        half = resident(pid)
        await fill(peer, options.tasks // 2)
        await crew.done(options.tasks // 2 * 2)
        whole = resident(pid)
        await asyncio.sleep(2)  # until it has noticed that there is nothing left
        began, busy = time.monotonic(), cpu_seconds(pid)
        await asyncio.sleep(options.seconds)
        share = (cpu_seconds(pid) - busy) / (time.monotonic() - began)
    return {"imported": imported, "half": half, "all": whole, "idle": share}


MEASURES = {
    "submit": submit,
    "drain": drain,
    "together": together,
    "latency": latency,
    "latency_here": latency,
    "footprint": footprint,
}


async def measured(options: argparse.Namespace) -> Found:
    peer: Peer = import_module(f"bench.peers.{options.name}").peer()
    await peer.open()
    try:
        return await MEASURES[options.measure](peer, options)
    finally:
        await peer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name")
    parser.add_argument("measure", choices=MEASURES)
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    use_uvloop()
    print(json.dumps(asyncio.run(measured(options))))


if __name__ == "__main__":
    main()
