"""Handlers without side effects, for trials and measurements."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec


async def echo(**payload: Any) -> dict[str, Any]:
    """Return the payload."""
    return payload


async def sleep(seconds: Annotated[float, msgspec.Meta(ge=0)]) -> dict[str, float]:
    """Wait."""
    await asyncio.sleep(seconds)
    return {"slept": seconds}
