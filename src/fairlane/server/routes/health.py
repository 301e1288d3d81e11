"""`/healthz` and `/readyz`: for whoever starts, watches and stops servers."""

from __future__ import annotations

import asyncio
from typing import Final

from fairlane import __version__
from fairlane.core.errors import StoreUnavailable
from fairlane.core.ids import new_id
from fairlane.server.answers import Answer
from fairlane.server.operations import OPEN, Call, Operation
from fairlane.server.services import Services
from fairlane.wire.health import Alive, Ready, ready_of

READY_SECONDS: Final = 1.0
"""A store that takes longer than this to look for one task is as good as away."""


async def healthz(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """The process answers; the store is not asked."""
    return Answer(Alive())


async def readyz(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """The store can be read, and what it promises."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            # A task that is not there is looked for where the others are.
            await services.run(services.ops.get([new_id()]))
            durability = await services.app.backend.driver.durability()
    except TimeoutError:
        raise StoreUnavailable(f"It did not answer within {READY_SECONDS:g} s.") from None
    return Answer(ready_of(__version__, durability))


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/healthz",
        handler=healthz,
        summary="Whether the server lives",
        scopes=OPEN,
        returns=Alive,
    ),
    Operation(
        method="GET",
        path="/readyz",
        handler=readyz,
        summary="Whether the server can do its work",
        scopes=OPEN,
        returns=Ready,
    ),
]
