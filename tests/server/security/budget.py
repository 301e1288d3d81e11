"""What a request costs the server: the longest time that it held the event loop, and memory."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from asyncio.events import Handle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

from tests.server.kit import JSON, Api

HELD_SECONDS = 0.05
"""How long one callback may hold the event loop, in CPU time: what others do on the machine does
not count."""
SIZES = 3
MEBIBYTE = 1024 * 1024
CONSTANT = 4 * MEBIBYTE
"""A request may take three times its size in memory, and this."""
OBJECTS = 16 * MEBIBYTE
"""What it may take besides if objects are built from it, which take up to 50 times the size of
their JSON: from a payload of 256 KiB that keys are made of, and from the schemas of definitions."""
TRIES = 4


class Cost:
    """What a request cost."""

    held = 0.0
    """The longest time that one callback held the loop."""
    peak = 0


@contextmanager
def without_the_rest() -> Iterator[None]:
    """What the tests and their modules hold is not the server's, and takes no time to be collected
    before each measurement."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def holding(cost: Cost) -> Iterator[None]:
    """Measure how long each callback holds the event loop of this thread."""
    run = Handle._run

    def measured(self: Handle) -> None:
        began = time.thread_time()
        run(self)
        cost.held = max(cost.held, time.thread_time() - began)

    gc.collect()
    Handle._run = measured  # type: ignore[method-assign]
    try:
        yield
    finally:
        Handle._run = run  # type: ignore[method-assign]


@contextmanager
def allocating(cost: Cost) -> Iterator[None]:
    """Measure how much memory is allocated at the most."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield
    finally:
        cost.peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()


def send(port: int, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
    """Send a request from another thread, which does not count as the server's work."""
    client = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {} if body is None else {"content-type": JSON}
        client.request(method, path, body, headers)
        reply = client.getresponse()
        return reply.status, reply.read()
    finally:
        client.close()


async def cost_of(api: Api, method: str, path: str, body: bytes | None, statuses: set[int]) -> Cost:
    """What a request costs."""

    return await cost_of_call(asking(api, method, path, body, statuses))


def asking(
    api: Api, method: str, path: str, body: bytes | None, statuses: set[int]
) -> Callable[[], None]:
    """A request that has to be answered with one of these statuses."""

    def ask() -> None:
        status, reply = send(api.port, method, path, body)
        assert status in statuses, f"{status}: {reply[:500]!r}"

    return ask


async def cost_of_call(call: Callable[[], None]) -> Cost:
    """What a call from another thread costs."""
    best = await time_of_call(call)
    with allocating(best):
        await asyncio.to_thread(call)
    return best


async def time_of_call(call: Callable[[], None]) -> Cost:
    """How long a call holds the loop: the best of a few tries, on a busy machine. What it costs in
    memory is not measured, because that takes several times as long."""
    best = Cost()
    best.held = float("inf")
    for _ in range(TRIES):
        cost = Cost()
        with holding(cost):
            await asyncio.to_thread(call)
        best.held = min(best.held, cost.held)
        if best.held < HELD_SECONDS:
            break
    return best


def check(cost: Cost, size: int, what: str, constant: int = CONSTANT) -> None:
    """The bounds hold."""
    assert cost.held < HELD_SECONDS, f"{what}: held the loop for {cost.held * 1000:.0f} ms"
    most = SIZES * size + constant
    assert cost.peak < most, f"{what}: took {cost.peak:,} bytes for {size:,}, at most {most:,}"


# -- bodies ----------------------------------------------------------------------------------------

SHAPES = {
    "lists": b"[]",
    "texts": b'"ab"',
    "numbers": b"1",
    "depth": b"[" * 90 + b"]" * 90,
    "mixed": b'"[",[]',
    "exponents": b"1e-300",
    "wide": '"\U0001f600\\n"'.encode(),
}


def filled(shape: str, size: int) -> bytes:
    """A JSON object of about this size, made of many values of one shape."""
    item = SHAPES[shape]
    return b'{"a":[' + b",".join([item] * ((size - 20) // (len(item) + 1))) + b"]}"


def joined(name: str, items: list[bytes]) -> bytes:
    """A body that is a list of items."""
    return b'{"' + name.encode() + b'":[' + b",".join(items) + b"]}"
