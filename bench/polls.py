"""What do workers cost that wait over HTTP, and how soon does a task reach one of them?

So many workers long-poll one server process, all alike, and nothing happens: the CPU time of that
process counts, not the time on the clock, for the machine may have other work. Then tasks are
submitted over HTTP one at a time; the time from sending one to its arrival at a worker is taken.

    python -m bench.polls [--store sqlite] [--workers 500] [--seconds 20] [--tasks 300]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

from bench import machine, stores
from bench.http import Target, server
from bench.loops import use_uvloop
from fairlane import Fairlane
from fairlane.server import create_app
from fairlane.server.http.listening import bind
from fairlane.server.http.serving import serve

WAIT_SECONDS = 20
SETTLING_SECONDS = 3
WORKERS = "/internal/workers"


async def be_server(url: str) -> None:
    """Serve a store, after printing the port, until killed."""
    (sock,) = bind("127.0.0.1", 0)
    print(sock.getsockname()[1], flush=True)
    async with Fairlane(url) as app:
        await serve(create_app(app), [sock], asyncio.Event())


class Client:
    """One connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connected(cls, address: str) -> Client:
        where = urlsplit(address)
        return cls(*await asyncio.open_connection(where.hostname, where.port))

    async def post(self, path: str, body: Any) -> Any:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        self._writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        size = int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return json.loads(await self._reader.readexactly(size))


class Arrivals:
    """When tasks arrived, by their number."""

    def __init__(self) -> None:
        self.polls = 0
        self._waiting: dict[int, asyncio.Future[float]] = {}

    def expect(self, number: int) -> asyncio.Future[float]:
        self._waiting[number] = asyncio.get_running_loop().create_future()
        return self._waiting[number]

    def note(self, number: int) -> None:
        self._waiting.pop(number).set_result(time.perf_counter())


async def work(address: str, arrivals: Arrivals) -> None:
    """A worker, until cancelled."""
    client = await Client.connected(address)
    worker_id = (await client.post(f"{WORKERS}/register", {}))["worker_id"]
    while True:
        arrivals.polls += 1
        wanted = {"available_capacity": 1, "wait_seconds": WAIT_SECONDS}
        for task in (await client.post(f"{WORKERS}/{worker_id}/poll", wanted))["tasks"]:
            arrivals.note(task["parameters"]["number"])
            done = {"task_id": task["task_id"], "attempt": task["attempt"], "status": "completed"}
            await client.post(f"{WORKERS}/{worker_id}/result", done)


async def measure(target: Target, workers: int, seconds: float, tasks: int) -> None:
    arrivals = Arrivals()
    working = [asyncio.create_task(work(target.url, arrivals)) for _ in range(workers)]
    await asyncio.sleep(SETTLING_SECONDS)
    before, polls = target.cpu_seconds(), arrivals.polls
    await asyncio.sleep(seconds)
    share = 100 * (target.cpu_seconds() - before) / seconds
    print(
        f"  {workers} idle workers for {seconds:g} s: {share:.1f} % of a core "
        f"({arrivals.polls - polls} polls began)"
    )
    submitter = await Client.connected(target.url)
    answers, times = [], []
    for number in range(tasks):
        arrival = arrivals.expect(number)
        sent = time.perf_counter()
        await submitter.post(
            "/api/v1/tasks", {"task_type": "noop", "parameters": {"number": number}}
        )
        answers.append(1_000 * (time.perf_counter() - sent))
        times.append(1_000 * (await arrival - sent))
        await asyncio.sleep(0.01)
    print(
        f"  {tasks} tasks, from submission to worker: {median(times):.1f} ms at the median, "
        f"{quantiles(times, n=100)[94]:.1f} ms at the 95th percentile "
        f"(the submission alone is answered after {median(answers):.1f} ms)"
    )
    for each in working:
        each.cancel()
    await asyncio.gather(*working, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    stores.add_argument(parser)
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    use_uvloop()
    if options.serve:
        asyncio.run(be_server(options.serve))
        return
    print(machine.describe())
    for store in options.store or ["sqlite", "postgres", "redis"]:
        with stores.opened(store) as (name, url), server(url, "bench.polls") as target:
            print(f"\n{name} (others keep the machine {machine.busy_percent():.0f} % busy)")
            asyncio.run(measure(target, options.workers, options.seconds, options.tasks))


if __name__ == "__main__":
    main()
