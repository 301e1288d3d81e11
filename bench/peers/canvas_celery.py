"""Celery's chords and groups, as its documentation shows them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from celery import Celery, chord, group
from celery.exceptions import ChordError

from bench.peers.canvas import MEMBERS, NAP_SECONDS, TIMEOUT_SECONDS, WIDTH, Canvas, Found, note
from bench.peers.canvas import wait as wait_for
from bench.peers.peer import Command, module, url

app = Celery("canvas", broker=url().replace("unix://", "redis+socket://", 1))
app.conf.update(
    result_backend=url().replace("unix://", "redis+socket://", 1),
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


def _one(value: int) -> int:
    return value


def _broken(value: int) -> int:
    raise ValueError(f"as asked of {value}")


def _total(values: list[Any]) -> int:
    note("total")
    return len(values)


def _nap(value: int) -> int:
    note("nap")
    time.sleep(NAP_SECONDS)
    return value


one, broken, total, nap = (
    app.task(name=handler.__name__)(handler) for handler in (_one, _broken, _total, _nap)
)


def nested(depth: int) -> Any:
    if not depth:
        return one.s(1)
    return chord([nested(depth - 1), nested(depth - 1)], total.s())


class OnCelery:
    def open(self) -> None:
        app.connection_for_write().ensure_connection()

    def worker(self) -> Command:
        options = ("--without-gossip", "--without-mingle", "-l", "CRITICAL")
        return module("celery", "-A", "bench.peers.canvas_celery", "worker", "-c", "2", *options)

    def one_fails(self) -> Found:
        members = [broken.s(each) if each == 1 else one.s(each) for each in range(MEMBERS)]
        result = chord(members)(total.s())
        told = ""
        try:
            result.get(timeout=TIMEOUT_SECONDS)
        except ChordError as error:
            told = f"ChordError: {error}"
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what the caller learns)
            told = f"{type(error).__name__}: {error}"
        children = result.parent.results
        wait_for(lambda: all(each.ready() for each in children))
        return {
            "callback": result.state,
            "told": told,
            "others": sum(each.successful() for each in children),
        }

    def submit_nested(self, depth: int) -> None:
        nested(depth).apply_async()

    def begin_tree(self) -> list[Callable[[], None]]:
        result = chord(group(nap.s(each) for each in range(WIDTH)), total.s()).apply_async()

        def body() -> None:
            """result.revoke(terminate=True)"""
            result.revoke(terminate=True)

        def members() -> None:
            """result.parent.revoke(terminate=True), which is the group, and result.revoke()"""
            result.parent.revoke(terminate=True)
            result.revoke()

        return [body, members]


def canvas() -> Canvas:
    return OnCelery()
