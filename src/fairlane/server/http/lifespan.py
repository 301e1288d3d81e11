"""The beginning and the end of an application's life, as ASGI has it.

uvicorn's own logs what goes wrong and exits; here the caller gets the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[dict[str, Any]]:
    """Start the application, and stop it at the end; yields what it keeps for its requests."""
    state: dict[str, Any] = {}
    told: asyncio.Queue[Message] = asyncio.Queue()
    said: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}

    async def life() -> None:
        await app(scope, told.get, said.put)

    living = asyncio.create_task(life())
    try:
        await _answered(living, told, said, "startup")
        try:
            yield state
        finally:
            await _answered(living, told, said, "shutdown")
    finally:
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)


async def _answered(
    living: asyncio.Task[None],
    told: asyncio.Queue[Message],
    said: asyncio.Queue[MutableMapping[str, Any]],
    event: str,
) -> None:
    told.put_nowait({"type": f"lifespan.{event}"})
    answer = asyncio.create_task(said.get())
    try:
        await asyncio.wait({living, answer}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done() or not answer.result()["type"].endswith("complete"):
            await living  # which raises what went wrong, or knows nothing of lifespans
    finally:
        answer.cancel()
