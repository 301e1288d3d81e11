"""The server process that clients of live events listen to is killed: they come back with their
cursor, and have missed nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.fixtures.serving import ServerProcess
from tests.fixtures.stores import World
from tests.server.http.kit import Client
from tests.server.stream.kit import Stream

SECONDS = 60.0
TASKS = 10
PAUSE_SECONDS = 0.05
GONE = (OSError, EOFError, WebSocketException)

Event = dict[str, Any]
Listen = Callable[[int, str | None], AsyncIterator[Event]]


async def by_socket(port: int, cursor: str | None) -> AsyncIterator[Event]:
    query = "" if cursor is None else f"?cursor={cursor}"
    async with connect(f"ws://127.0.0.1:{port}/ws{query}", proxy=None) as socket:
        async for message in socket:
            yield json.loads(message)


async def by_stream(port: int, cursor: str | None) -> AsyncIterator[Event]:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    try:
        head = ["GET /api/v1/events HTTP/1.1", "host: 127.0.0.1", "accept: text/event-stream"]
        if cursor is not None:
            head.append(f"last-event-id: {cursor}")
        assert (await client.ask("\r\n".join([*head, "", ""]).encode())).status == 200
        stream = Stream(client)
        while True:
            yield json.loads((await stream.next())["data"])
    finally:
        await client.close()


class Follower:
    """A client that comes back, from where it was."""

    def __init__(self, listen: Listen, port: int) -> None:
        self._listen = listen
        self._port = port
        self._news = asyncio.Condition()
        self._cursor: str | None = None
        self.visits = 0
        self.heard: list[str] = []

    async def follow(self) -> None:
        while True:
            try:
                async for event in self._listen(self._port, self._cursor):
                    await self._note(event)
            except GONE:
                await asyncio.sleep(PAUSE_SECONDS)

    async def _note(self, event: Event) -> None:
        self._cursor = event.get("cursor", self._cursor)
        async with self._news:
            assert event["type"] != "reset"
            if event["type"] == "ready":
                self.visits += 1
            if event["type"] == "task.submitted":
                self.heard.append(event["data"]["task_id"])
            self._news.notify_all()

    async def there(self) -> None:
        """Until it listens."""
        await self._until(lambda: self.visits > 0)

    async def back(self) -> None:
        """Until it listens again, after it has heard of what it had missed."""
        await self._until(lambda: self.visits > 1)

    async def heard_of(self, task_id: str) -> None:
        """Until it knows of a task."""
        await self._until(lambda: task_id in self.heard)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS), self._news:
            await self._news.wait_for(condition)


async def test_nothing_is_missed_when_the_server_is_killed(world: World, tmp_path: Path) -> None:
    with ServerProcess(world.url, tmp_path, migrate=False) as server:
        followers = [Follower(each, server.port) for each in (by_socket, by_stream)]
        following = [asyncio.create_task(each.follow()) for each in followers]
        try:
            for each in followers:
                await each.there()
            told = [await world.submit() for _ in range(TASKS)]
            for each in followers:
                await each.heard_of(told[0])
            server.kill()
            told += [await world.submit() for _ in range(TASKS)]
            await asyncio.to_thread(server.start)
            told += [await world.submit() for _ in range(TASKS)]
            for each in followers:
                await each.heard_of(told[-1])
                assert each.heard == told
                await each.back()
                assert each.visits == 2
        finally:
            for task in following:
                task.cancel()
            await asyncio.wait(following)
