"""Taskiq on a Redis list, with results: two processes."""

from __future__ import annotations

from collections.abc import Sequence

from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend

from bench.peers import keys
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, module, url

MARKS = Marks()

broker = ListQueueBroker(url()).with_result_backend(
    RedisAsyncResultBackend(url(), prefix_str="result")
)


async def handler(value: int) -> int:
    MARKS.made()
    return value


noop = broker.register_task(handler, "noop")


class OnTaskiq:
    CONCURRENT = True

    async def open(self) -> None:
        await broker.startup()

    async def submit(self, value: int) -> None:
        await noop.kiq(value)

    def workers(self) -> Sequence[Command]:
        options = ("--workers", "2", "--log-level", "ERROR")
        return [module("taskiq", "worker", "bench.peers.taskiq:broker", *options)]

    async def finished(self) -> int:
        return keys.count(url(), "result:*")

    async def close(self) -> None:
        await broker.shutdown()


def peer() -> Peer:
    return OnTaskiq()
