"""RQ: two workers that run tasks in their own process instead of forking for each."""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis
from rq import Queue

from bench.peers import keys
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, module, url

MARKS = Marks()


def noop(value: int) -> int:
    MARKS.made()
    return value


class OnRQ:
    CONCURRENT = False

    async def open(self) -> None:
        self._redis = Redis.from_url(url())
        self._queue = Queue(connection=self._redis)

    async def submit(self, value: int) -> None:
        self._queue.enqueue(noop, value)

    async def submit_many(self, values: Sequence[int]) -> None:
        self._queue.enqueue_many([Queue.prepare_data(noop, (value,)) for value in values])

    def workers(self) -> Sequence[Command]:
        simple = ("--worker-class", "rq.worker.SimpleWorker", "--quiet")
        return [module("rq.cli", "worker", "--url", url(), *simple)] * 2

    async def finished(self) -> int:
        return keys.count(url(), "rq:results:*")

    async def close(self) -> None:
        self._redis.close()


def peer() -> Peer:
    return OnRQ()
