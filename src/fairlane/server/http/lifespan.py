"""The lifespan of an ASGI application: startup and shutdown.

uvicorn logs an error and exits; here the caller gets the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[dict[str, Any]]:
    """Start the application, and stop it at the end. Yields the state for its requests."""
    state: dict[str, Any] = {}
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}

    async def run() -> None:
        await app(scope, inbox.get, outbox.put)

    running = asyncio.create_task(run())
    try:
        await _perform(running, inbox, outbox, "startup")
        try:
            yield state
        finally:
            await _perform(running, inbox, outbox, "shutdown")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _perform(
    running: asyncio.Task[None],
    inbox: asyncio.Queue[Message],
    outbox: asyncio.Queue[MutableMapping[str, Any]],
    event: str,
) -> None:
    inbox.put_nowait({"type": f"lifespan.{event}"})
    answer = asyncio.create_task(outbox.get())
    try:
        await asyncio.wait({running, answer}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done() or not answer.result()["type"].endswith("complete"):
            await running  # raises its error, or returns if it has no lifespan
    finally:
        answer.cancel()
