"""A worker in the words of 000."""

from __future__ import annotations

from typing import Any, Self

from tests.server.http.kit import Reply
from tests.server.kit import Api, told
from tests.server.workers import Worker, registered


class Seat:
    """A worker that is registered."""

    def __init__(self, worker: Worker, capabilities: tuple[str, ...]) -> None:
        self._worker = worker
        self.worker_id = worker.id
        self._capabilities = list(capabilities)

    @classmethod
    async def taken(cls, api: Api, *capabilities: str) -> Self:
        worker = await registered(api, capabilities=list(capabilities), capacity=5)
        return cls(worker, capabilities)

    async def ask(self, verb: str, body: Any = None) -> Reply:
        return await self._worker.ask(verb, body)

    async def poll(self, available_capacity: int = 3) -> list[dict[str, Any]]:
        return await self._worker.poll(available_capacity, capabilities=self._capabilities)

    async def take(self, task_id: str) -> dict[str, Any]:
        """The one task that is to be had."""
        (task,) = await self.poll()
        assert task["task_id"] == task_id
        return task

    async def complete(self, task_id: str, result: bytes = b"null") -> None:
        """Take a task and report its result, to the letter."""
        await self.take(task_id)
        sent = b'{"task_id": "%s", "status": "completed", "result": %s}'
        told(await self.ask("result", sent % (task_id.encode(), result)), 200)

    async def fail(self, task_id: str, *, retriable: bool = True) -> None:
        """Take a task and report that it did not work."""
        await self.take(task_id)
        error = {"message": "out of paper", "retriable": retriable}
        sent = {"task_id": task_id, "status": "failed", "error": error}
        told(await self.ask("result", sent), 200)
