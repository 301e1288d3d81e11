"""Clients that go on submitting over HTTP, whatever happens, and know what they were told."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from fairlane.core.ids import new_id
from tests.e2e.history.lines import Invoke, Ok, Recorder, Unknown, digest
from tests.server.http.kit import Client, Reply

PAUSE_SECONDS = 0.02
BROKEN = (ConnectionError, asyncio.IncompleteReadError)
ACCEPTED = (200, 201)
TURNS = 10
"""After about so many submissions a client connects anew, perhaps to another process."""


class Seen(NamedTuple):
    """An answer, and how long it took."""

    reply: Reply
    seconds: float


class HttpLoad:
    """So many clients at once, each with a connection of its own; one that breaks is made anew."""

    def __init__(self, port: int, recorder: Recorder) -> None:
        self._port = port
        self._recorder = recorder
        self._numbers = itertools.count(1)
        self._turns = itertools.count(1)
        self._name = new_id()
        self.keys: set[str] = set()
        self.accepted = 0
        self.broken = 0
        self.refusals: list[Seen] = []
        self._news = asyncio.Condition()
        self._open: set[Client] = set()

    @asynccontextmanager
    async def running(self, clients: int = 8) -> AsyncIterator[None]:
        """Until the end of the block; then whoever still waits for an answer gets one."""
        over = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(clients):
                    group.create_task(self._submit_on(over))
                try:
                    yield
                finally:
                    over.set()
        finally:
            for client in [*self._open]:
                await self._leave(client)

    async def more(self, count: int, seconds: float) -> None:
        """Until so many more submissions are accepted."""
        enough = self.accepted + count
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(lambda: self.accepted >= enough)

    async def refused(self, count: int, seconds: float) -> None:
        """Until so many more submissions are refused."""
        enough = len(self.refusals) + count
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(lambda: len(self.refusals) >= enough)

    async def _submit_on(self, over: asyncio.Event) -> None:
        client: Client | None = None
        while not over.is_set():
            payload = b'{"n":%d}' % next(self._numbers)
            key = f"{self._name}:{payload.decode()}"
            self.keys.add(key)
            client = await self._insist(client, payload, key)
            if next(self._turns) % TURNS == 0:
                await self._leave(client)
                client = None
            await asyncio.sleep(PAUSE_SECONDS)

    async def _insist(self, client: Client | None, payload: bytes, key: str) -> Client:
        """Ask until it is accepted; answers the connection that was left."""
        body = b'{"task_type":"work","parameters":%s}' % payload
        head = (
            "POST /api/v1/tasks HTTP/1.1",
            f"host: 127.0.0.1:{self._port}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            f"idempotency-key: {key}",
        )
        request = "\r\n".join([*head, "", ""]).encode() + body
        while True:
            call, begun = new_id(), time.monotonic()
            self._recorder.write(Invoke, call=call, op="submit", payload=digest(payload), key=key)
            try:
                client = client or await self._connect()
                reply = await client.ask(request)
            except BROKEN:
                self._recorder.write(Unknown, call=call)
                self.broken += 1
                if client is not None:
                    await self._leave(client)
                client = None
            else:
                if reply.status in ACCEPTED:
                    task = json.loads(reply.body)["task_id"]
                    self._recorder.write(Ok, call=call, task=task)
                    await self._tell(1, None)
                    return client
                # A store that went away in the middle may have done it.
                self._recorder.write(Unknown, call=call)
                await self._tell(0, Seen(reply, time.monotonic() - begun))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _connect(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self._port))
        self._open.add(client)
        return client

    async def _leave(self, client: Client) -> None:
        self._open.discard(client)
        await client.close()

    async def _tell(self, accepted: int, refusal: Seen | None) -> None:
        async with self._news:
            self.accepted += accepted
            if refusal is not None:
                self.refusals.append(refusal)
            self._news.notify_all()
