"""Workers that speak the worker protocol, as tests need them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.server.http.kit import SECONDS, Client, Reply
from tests.server.kit import Api, told

WORKERS = "/internal/workers"


class Worker:
    """A worker with a connection of its own."""

    def __init__(self, api: Api, worker_id: str, client: Client) -> None:
        self.api = api
        self.id = worker_id
        self.client = client

    async def ask(self, call: str, body: Any = None) -> Reply:
        return await self.client.ask(self.request(call, body))

    def request(self, call: str, body: Any = None) -> bytes:
        return self.api.request("POST", f"{WORKERS}/{self.id}/{call}", body)

    async def told(self, call: str, body: Any = None) -> Any:
        return told(await self.ask(call, body), 200)

    async def poll(self, capacity: int = 1, **fields: Any) -> list[dict[str, Any]]:
        body = {"available_capacity": capacity, **fields}
        tasks: list[dict[str, Any]] = (await self.told("poll", body))["tasks"]
        return tasks

    async def result(self, task_id: str, **fields: Any) -> Reply:
        return await self.ask("result", {"task_id": task_id, "status": "completed", **fields})


async def registered(api: Api, **fields: Any) -> Worker:
    answer = await api.post(f"{WORKERS}/register", fields)
    return Worker(api, answer["worker_id"], await api.connect())


class Poll:
    """A poll that is under way."""

    def __init__(self, worker: Worker, client: Client, answer: asyncio.Task[Reply]) -> None:
        self.worker = worker
        self.client = client
        self.answer = answer

    async def tasks(self) -> list[str]:
        """The ids of the tasks that it brings."""
        return [task["task_id"] for task in told(await self.answer, 200)["tasks"]]


async def waiting(api: Api, worker: Worker, **fields: Any) -> Poll:
    """A poll, on a connection of its own, that stands in line."""
    before = api.services.polls.waiting
    poll = await polling(api, worker, **{"wait_seconds": 60, **fields})
    await until(lambda: api.services.polls.waiting > before)
    return poll


async def polling(api: Api, worker: Worker, **fields: Any) -> Poll:
    """A poll on a connection of its own."""
    client = await api.connect()
    await client.send(worker.request("poll", fields))
    return Poll(worker, client, asyncio.create_task(client.answer()))


async def begun(api: Api, task_id: str) -> None:
    """Wait until the store knows that a task runs, which a poll's answer does not wait for."""
    async with asyncio.timeout(SECONDS):
        while (await api.world.task(task_id)).started_at is None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that nobody tells of."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
