"""Which event loop benchmarks run on."""

from __future__ import annotations

import asyncio


def use_uvloop() -> None:
    """As Fairlane's own worker and server do where it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
