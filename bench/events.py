"""How soon do clients of `/ws` hear of what happens, and what do those cost that do nothing?

- So many clients listen and nothing happens: CPU time of the server process.
- A process of its own runs tasks at a rate (submitted, claimed and settled in small batches, so
  three transitions each); one client hears of all. From the time that the store had acknowledged
  a transition to the time that the client had the event.
- The same load while clients listen that read nothing, and one that sends pings and reads nothing:
  the most memory that the server process takes on top of what it had.

    python -m bench.events [--store sqlite] [--clients 200] [--seconds 15] [--rate 1000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from typing import IO
from urllib.parse import urlsplit

from websockets.asyncio.client import connect

from bench import machine, stores
from bench.http import Target, server
from bench.loops import use_uvloop
from fairlane import Fairlane
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, NewWorker
from fairlane.core.outcomes import Completed
from fairlane.core.submission import new_task
from fairlane.runtime.execution import settlement_of

BEATS_A_SECOND = 50
SETTLING_SECONDS = 2
SILENT = 10
"""Clients that read nothing."""
PING = b"\x89\xfd\0\0\0\0" + b"x" * 125
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


async def be_load(url: str, rate: int) -> None:
    """Run tasks at a rate, until killed."""
    worker = new_id()
    each = rate // BEATS_A_SECOND
    async with Fairlane(url) as app:
        ops = app.backend.ops
        await app.run(ops.register(NewWorker(worker, capacity=1_000_000)))
        due = time.monotonic()
        while True:
            accepted = await app.run(ops.submit([new_task("work") for _ in range(each)]))
            _acknowledge("task.submitted", [task.task_id for task in accepted])
            grant = await app.run(ops.claim(Ask(worker, new_id(), each)))
            _acknowledge("task.started", [task.task_id for task in grant.tasks])
            done = [settlement_of(task, Completed(b"null"), 0.001) for task in grant.tasks]
            await app.run(ops.settle(done))
            _acknowledge("task.completed", [task.task_id for task in grant.tasks])
            due = max(due + 1 / BEATS_A_SECOND, time.monotonic() - 1)
            await asyncio.sleep(due - time.monotonic())


def _acknowledge(type: str, task_ids: list[str]) -> None:
    print(json.dumps([time.time(), type, task_ids]), flush=True)


Acknowledged = dict[tuple[str, str], float]
"""When the store had acknowledged a transition of a task."""


@contextmanager
def load(url: str, rate: int) -> Iterator[Acknowledged]:
    """Load from another process, and what it said of it."""
    command = [sys.executable, "-m", "bench.events", "--load", url, "--rate", str(rate)]
    known: Acknowledged = {}

    def read(lines: IO[str]) -> None:
        for line in lines:
            at, type, task_ids = json.loads(line)
            known.update(((type, task_id), at) for task_id in task_ids)

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reading = threading.Thread(target=read, args=(process.stdout,))
        reading.start()
        try:
            yield known
        finally:
            process.kill()
            reading.join()


def address(target: Target) -> str:
    """Of live events."""
    return f"ws{target.url.removeprefix('http')}/ws"


def memory(target: Target) -> float:
    """Megabytes."""
    status = Path(f"/proc/{target.process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def idle(target: Target, clients: int, seconds: float) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(clients):
            socket = await stack.enter_async_context(connect(address(target), proxy=None))
            await socket.recv()
        await asyncio.sleep(SETTLING_SECONDS)
        before = target.cpu_seconds()
        await asyncio.sleep(seconds)
        share = 100 * (target.cpu_seconds() - before) / seconds
        print(f"  {clients} idle clients for {seconds:g} s: {share:.1f} % of a core")


async def latency(target: Target, seconds: float, acknowledged: Acknowledged) -> None:
    arrivals: list[tuple[tuple[str, str], float]] = []
    async with connect(address(target), proxy=None, max_queue=None) as socket:
        began = time.monotonic()
        before = target.cpu_seconds()
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLING_SECONDS + seconds):
                while True:
                    event = json.loads(await socket.recv())
                    arrived = time.time()
                    if "task_id" in event["data"] and time.monotonic() > began + SETTLING_SECONDS:
                        arrivals.append(((event["type"], event["data"]["task_id"]), arrived))
        share = 100 * (target.cpu_seconds() - before) / (SETTLING_SECONDS + seconds)
    # An event may well be there before whoever made the transition has heard of it.
    known = [(at, acknowledged[what]) for what, at in arrivals if what in acknowledged]
    times = [max(0.0, 1_000 * (at - then)) for at, then in known]
    if len(times) < 2:
        raise SystemExit(f"Only {len(times)} events were heard of: nothing can be said of them.")
    cuts = quantiles(times, n=100)
    print(
        f"  {len(times) / seconds:,.0f} events a second to one client: {median(times):.0f} ms at "
        f"the median, {cuts[98]:.0f} ms at the 99th percentile, {max(times):.0f} ms at most "
        f"(server: {share:.0f} % of a core)"
    )


async def silent(target: Target, clients: int, seconds: float, *, pings: bool = False) -> None:
    """Clients that read nothing of what they are sent."""
    place = urlsplit(target.url)
    before = most = memory(target)
    writers = []
    for _ in range(clients):
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1_024)
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        writers.append(writer)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if pings and not writers[0].is_closing():
            with suppress(TimeoutError, ConnectionError, RuntimeError):  # dropped
                async with asyncio.timeout(0.1):
                    writers[0].write(PING * 100)
                    await writers[0].drain()
        else:
            await asyncio.sleep(0.1)
        most = max(most, memory(target))
    for writer in writers:
        writer.transport.abort()
    kind = "pings and reads nothing" if pings else "reads nothing"
    print(
        f"  {clients} of whom each {kind}, for {seconds:g} s: at most "
        f"{(most - before) / clients:.1f} MB for each of them ({before:.0f} MB before)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    options = parser.parse_args()
    use_uvloop()
    if options.load:
        asyncio.run(be_load(options.load, options.rate))
        return
    print(machine.describe())
    for store in options.store or ["sqlite", "postgres", "redis"]:
        busy = machine.busy_percent(1.0)
        with stores.opened(store) as (name, url), server(url, "bench.polls") as target:
            print(f"\n{name} (others keep the machine {busy:.0f} % busy)")
            asyncio.run(idle(target, options.clients, options.seconds))
            with load(url, options.rate) as acknowledged:
                asyncio.run(latency(target, options.seconds, acknowledged))
                asyncio.run(silent(target, SILENT, options.seconds))
                asyncio.run(silent(target, 1, options.seconds, pings=True))


if __name__ == "__main__":
    main()
