"""The same workflows as `canvas_celery`, for Fairlane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from bench.peers.canvas import MEMBERS, NAP_SECONDS, TIMEOUT_SECONDS, WIDTH, Canvas, Found, note
from bench.peers.canvas import wait as wait_for
from bench.peers.peer import Command, module, url
from fairlane import Fail, Fairlane, TaskFailed, gather

app = Fairlane(url())


@app.task
async def one(value: int) -> int:
    return value


@app.task
async def broken(value: int) -> int:
    raise Fail(f"as asked of {value}")


@app.task
async def total(values: list[Any]) -> int:
    await asyncio.to_thread(note, "total")
    return len(values)


@app.task
async def nap(value: int) -> int:
    await asyncio.to_thread(note, "nap")
    await asyncio.sleep(NAP_SECONDS)
    return value


def nested(depth: int) -> Any:
    if not depth:
        return one.prepare(1)
    return gather(nested(depth - 1), nested(depth - 1)).then(total)


class OnFairlane:
    def open(self) -> None:
        app.backend.run_sync(app.backend.ops.migrate())

    def worker(self) -> Command:
        options = ("--app", "bench.peers.canvas_fairlane:app", "--concurrency", "2")
        return module("fairlane", "worker", *options)

    def one_fails(self) -> Found:
        members = [(broken if each == 1 else one).prepare(each) for each in range(MEMBERS)]
        flow = app.submit_sync(gather(*members).then(total))
        told = ""
        try:
            flow.result_sync(timeout=TIMEOUT_SECONDS)
        except TaskFailed as error:
            told = f"TaskFailed: {error}"
        wait_for(lambda: all(not node.live for node in flow.nodes_sync()))
        *others, callback = flow.nodes_sync()
        return {
            "callback": str(callback.state),
            "told": told,
            "others": sum(node.state == "completed" for node in others),
        }

    def submit_nested(self, depth: int) -> None:
        app.submit_sync(nested(depth))

    def begin_tree(self) -> list[Callable[[], None]]:
        flow = app.submit_sync(gather(*(nap.prepare(each) for each in range(WIDTH))).then(total))

        def whole() -> None:
            """flow.cancel_sync()"""
            flow.cancel_sync()

        return [whole]


def canvas() -> Canvas:
    return OnFairlane()
