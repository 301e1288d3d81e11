"""Only the connection that hears of new work is lost: work is found all the same, and soon heard
of again."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from redis import Redis

from fairlane import Fairlane
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker
from tests.e2e.chaos.arena import PATIENCE, Arena, until
from tests.e2e.history.lines import History
from tests.e2e.history.terms import Terms

FOUND_SECONDS = 5.0
"""An idle worker looks every second, whether or not it hears anything."""

on_servers = pytest.mark.parametrize("arena", ["postgres-newest", "redis"], indirect=True)


class Ears:
    """The connections to a store that do nothing but listen."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._redis = url.startswith("unix")

    def ids(self) -> set[int]:
        if self._redis:
            with Redis.from_url(self._url) as client:
                return {int(each["id"]) for each in client.client_list(_type="pubsub")}
        with psycopg.connect(self._url) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND query LIKE '%lock_shared(%' AND pid <> pg_backend_pid()"
            ).fetchall()
            return {pid for (pid,) in rows}

    def cut(self) -> set[int]:
        """Ends them; answers which they were."""
        ids = self.ids()
        if self._redis:
            with Redis.from_url(self._url) as client:
                assert client.client_kill_filter(_type="pubsub") == len(ids)
        else:
            with psycopg.connect(self._url) as connection:
                for pid in ids:
                    connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        return ids


def waits(history: History) -> list[float]:
    """Seconds between the acceptance of each task and its start."""
    accepted = {call.ok.task: call.ok.at for call in history.calls if call.ok}
    return [runs[0].start.at - accepted[task_id] for task_id, runs in history.runs.items()]


@on_servers
async def test_work_is_found_without_hearing_of_it(arena: Arena) -> None:
    ears = Ears(arena.app.url)
    await arena.worker()

    async def listens() -> bool:
        return len(ears.ids()) == 1

    for number in range(1, 4):
        await until(listens, "the worker listens (again)")
        ears.cut()
        await arena.client.submit("on-loop")
        await arena.drained()
        found = waits(arena.history())
        assert len(found) == number
        assert max(found) < FOUND_SECONDS
    await arena.judged(Terms())


@on_servers
async def test_hints_come_again(arena: Arena) -> None:
    """This worker looks for itself once in ten minutes: whatever it runs, it has heard of."""
    app = Fairlane(arena.app.url)
    heard: asyncio.Queue[int] = asyncio.Queue()

    @app.task(name="on-loop")
    async def on_loop(n: int) -> None:
        heard.put_nowait(n)

    ears = Ears(app.url)
    worker = Worker(app, Config(poll_interval=600.0, grace=0.0, maintenance=False))
    running = asyncio.create_task(worker.run(signals=False))

    async def listens() -> bool:
        return len(ears.ids() - gone) == 1

    gone: set[int] = set()
    try:
        for number in range(1, 4):
            await until(listens, "the worker listens (again)")
            await arena.client.submit("on-loop")
            async with asyncio.timeout(PATIENCE):
                assert await heard.get() == number
            gone = ears.cut()
    finally:
        worker.stop()
        await running
        await app.aclose()
