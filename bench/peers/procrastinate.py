"""Procrastinate: one process with twenty tasks at once; it keeps that a task succeeded.

`threads`: its handler is a `def`, which it runs on threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from procrastinate import App, PsycopgConnector

from bench.loops import use_uvloop
from bench.peers.marks import Marks
from bench.peers.peer import Command, Peer, choice, module, url

MARKS = Marks()
use_uvloop()

app = App(connector=PsycopgConnector(conninfo=url(), min_size=4, max_size=24))


async def on_the_loop(value: int) -> int:
    MARKS.made()
    return value


def on_a_thread(value: int) -> int:
    MARKS.made()
    return value


noop = app.task(on_a_thread if choice("loop") == "threads" else on_the_loop, name="noop")


class OnProcrastinate:
    CONCURRENT = True

    async def open(self) -> None:
        await app.open_async()
        await app.schema_manager.apply_schema_async()

    async def submit(self, value: int) -> None:
        await noop.defer_async(value=value)

    async def submit_many(self, values: Sequence[int]) -> None:
        await noop.batch_defer_async(*[{"value": value} for value in values])

    def workers(self) -> Sequence[Command]:
        options = ("-a", "bench.peers.procrastinate.app", "--log-level", "error")
        return [module("procrastinate", *options, "worker", "-c", "20")]

    async def finished(self) -> int:
        row = await app.connector.execute_query_one_async(
            "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"
        )
        return int(row["count"])

    async def close(self) -> None:
        await app.close_async()


def peer() -> Peer:
    return OnProcrastinate()
