"""Dramatiq on Redis, with results: two processes of eight threads."""

from __future__ import annotations

from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench.peers import keys
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, module, url

MARKS = Marks()

broker = RedisBroker(url=url())
broker.add_middleware(Results(backend=RedisBackend(url=url())))
dramatiq.set_broker(broker)


def handler(value: int) -> int:
    MARKS.made()
    return value


noop = dramatiq.actor(handler, actor_name="noop", store_results=True)


class OnDramatiq:
    CONCURRENT = False

    async def open(self) -> None:
        broker.client.ping()

    async def submit(self, value: int) -> None:
        noop.send(value)

    def workers(self) -> Sequence[Command]:
        return [module("dramatiq", "bench.peers.dramatiq", "-p", "2", "-t", "8")]

    async def finished(self) -> int:
        return keys.count(url(), "?" * 32)  # results are named by the MD5 of their names

    async def close(self) -> None:
        broker.close()


def peer() -> Peer:
    return OnDramatiq()
