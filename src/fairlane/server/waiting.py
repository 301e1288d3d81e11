"""Waiting before an answer is given: no longer than asked for, nor than anybody wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fairlane.server.operations import Call
from fairlane.server.requests import Gone
from fairlane.server.services import Services

T = TypeVar("T")


async def waited(
    services: Services, call: Call[Any, Any], work: Coroutine[Any, Any, T], seconds: float
) -> T | None:
    """What the work comes to; None when so much time has passed, or the server is to stop.

    Raises Gone when the client has left.
    """
    loop = asyncio.get_running_loop()
    working = loop.create_task(work)
    leaving = loop.create_task(_ended(call))
    stopping = loop.create_task(services.stopping.wait())
    try:
        await asyncio.wait(
            (working, leaving, stopping), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if working.done():
            return working.result()
        if leaving.done():
            raise Gone
        return None
    finally:
        for task in (working, leaving, stopping):
            task.cancel()


async def _ended(call: Call[Any, Any]) -> None:
    await call.left()
