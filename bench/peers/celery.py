"""Celery on Redis, with results: two processes that take a hundred tasks ahead."""

from __future__ import annotations

from collections.abc import Sequence

from celery import Celery

from bench.peers import keys
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, module, url

MARKS = Marks()


def _address() -> str:
    # Its own name for a socket in the file system.
    return url().replace("unix://", "redis+socket://", 1)


app = Celery("bench", broker=_address(), backend=_address())
app.conf.update(
    worker_prefetch_multiplier=100,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


def handler(value: int) -> int:
    MARKS.made()
    return value


noop = app.task(name="noop")(handler)


class OnCelery:
    CONCURRENT = False

    async def open(self) -> None:
        app.connection_for_write().ensure_connection()

    async def submit(self, value: int) -> None:
        noop.delay(value)

    def workers(self) -> Sequence[Command]:
        options = ("--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR")
        return [module("celery", "-A", "bench.peers.celery", "worker", "-c", "2", *options)]

    async def finished(self) -> int:
        return keys.count(url(), "celery-task-meta-*")

    async def close(self) -> None:
        app.close()


def peer() -> Peer:
    return OnCelery()
