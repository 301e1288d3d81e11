"""Load on an HTTP server, from a process of its own: one core is enough for tens of thousands of
requests a second.

    python -m bench.load http://127.0.0.1:8000 [--connections 50] [--batch 1] [--rate 0]

Posts tasks over connections that are kept. Without a rate every connection sends as soon as it has
its answer; with one, requests are sent when they are due, and waiting for a free connection counts
as latency. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import deque
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from bench.limit import PAYLOAD
from bench.loops import use_uvloop

WARM_UP = 0.2
"""This share of the time is not counted."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one load came to."""

    requests_per_second: float
    tasks_per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    answered: int
    """All requests, those of the warm-up included."""
    failures: int
    """Answers other than 200 and 201, and connections lost."""
    unsent: int = 0
    """Requests that were due when the time was over: the rate was too high."""


class Tally:
    """Latencies since the warm-up."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self._before = 0
        self.failures = 0
        self.begin = time.perf_counter()

    def forget(self) -> None:
        """Begin here."""
        self._before = len(self.latencies)
        self.latencies.clear()
        self.failures = 0
        self.begin = time.perf_counter()

    def result(self, batch: int, unsent: int) -> Result:
        seconds = time.perf_counter() - self.begin
        latencies = sorted(self.latencies) or [0.0]
        rate = len(self.latencies) / seconds

        def percentile(share: float) -> float:
            return round(1_000 * latencies[min(len(latencies) - 1, int(share * len(latencies)))], 3)

        return Result(
            requests_per_second=round(rate, 1),
            tasks_per_second=round(rate * batch, 1),
            p50_ms=percentile(0.50),
            p95_ms=percentile(0.95),
            p99_ms=percentile(0.99),
            answered=self._before + len(self.latencies),
            failures=self.failures,
            unsent=unsent,
        )


class Pace:
    """When requests are due, and which connections are free to send them."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free: deque[Connection] = deque()
        self._due: deque[float] = deque()
        self._stopped = False

    def freed(self, connection: Connection, now: float) -> None:
        """A connection has its answer, or is new."""
        if self._stopped:
            return
        if not self._rate:
            connection.send(now)
        elif self._due:
            connection.send(self._due.popleft())
        else:
            self._free.append(connection)

    async def keep(self, seconds: float) -> None:
        """Let requests be due for so long."""
        if not self._rate:
            await asyncio.sleep(seconds)
            return
        begin = time.perf_counter()
        for number in range(int(self._rate * seconds)):
            due = begin + number / self._rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if self._free:
                self._free.popleft().send(due)
            else:
                self._due.append(due)

    def stop(self) -> int:
        """Nothing more; answers how many requests were due."""
        self._stopped = True
        return len(self._due)


class Connection(asyncio.Protocol):
    """Sends the same request again and again."""

    def __init__(self, request: bytes, tally: Tally, pace: Pace) -> None:
        self._request = request
        self._tally = tally
        self._pace = pace
        self._since = 0.0
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._pace.freed(self, time.perf_counter())

    def send(self, due: float) -> None:
        """Send the request that was due then."""
        self._since = due
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer = data = self._buffer + data if self._buffer else data
        head = data.find(b"\r\n\r\n")
        if head < 0:
            return
        at = data.lower().find(b"content-length: ", 0, head)
        if at < 0 or len(data) < head + 4 + int(data[at + 16 : data.index(b"\r", at)]):
            return
        self._buffer = b""
        now = time.perf_counter()
        self._tally.latencies.append(now - self._since)
        self._tally.failures += data[9:12] not in {b"200", b"201"}
        self._pace.freed(self, now)

    def connection_lost(self, _: Exception | None) -> None:
        self._tally.failures += 1


async def load(url: str, connections: int, batch: int, rate: float, seconds: float) -> Result:
    """Put load on a server."""
    address = urlsplit(url)
    assert address.hostname is not None
    tally, pace = Tally(), Pace(rate)
    request = post(address.netloc, batch)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: Connection(request, tally, pace), address.hostname, address.port or 80
        )
        for _ in range(connections)
    ]
    await pace.keep(WARM_UP * seconds)
    tally.forget()
    await pace.keep((1 - WARM_UP) * seconds)
    result = tally.result(batch, pace.stop())
    for transport, _ in made:
        transport.abort()
    return result


def post(host: str, batch: int) -> bytes:
    """A request that submits one task, or several."""
    task: dict[str, Any] = {"task_type": "noop", "parameters": msgspec.Raw(PAYLOAD)}
    path = "/api/v1/tasks" if batch == 1 else "/api/v1/tasks/batch"
    body = msgspec.json.encode(task if batch == 1 else {"tasks": [task] * batch})
    lines = (
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        "User-Agent: bench",
        "Accept: */*",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    use_uvloop()
    result = asyncio.run(load(args.url, args.connections, args.batch, args.rate, args.seconds))
    sys.stdout.write(msgspec.json.encode(result).decode() + "\n")


if __name__ == "__main__":
    main()
