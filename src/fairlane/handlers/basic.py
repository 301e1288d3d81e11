"""Handlers that need nothing: to try things out, and to measure with."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec


async def echo(**payload: Any) -> dict[str, Any]:
    """Gives back its payload."""
    return payload


async def sleep(seconds: Annotated[float, msgspec.Meta(ge=0)]) -> dict[str, float]:
    """Waits so long."""
    await asyncio.sleep(seconds)
    return {"slept": seconds}
