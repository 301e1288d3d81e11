"""`/healthz` and `/readyz`: for programs that start, watch and stop servers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from fairlane import __version__
from fairlane.core.errors import StoreUnavailable
from fairlane.core.ids import new_id
from fairlane.server.operations import OPEN, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services

READY_SECONDS: Final = 1.0
"""A store that needs longer to look up one task counts as away."""


class Alive(msgspec.Struct, frozen=True):
    """The server answers."""

    status: Literal["ok"] = "ok"


class DurabilityView(msgspec.Struct, frozen=True):
    """What the store's settings guarantee; `warnings` say how tasks can get lost."""

    engine: str
    settings: Mapping[str, str]
    warnings: tuple[str, ...]


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The server and its store answer."""

    status: Literal["ready"] = "ready"
    version: str
    durability: DurabilityView


async def healthz(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Check that the server runs. The store is not asked."""
    return Response(Alive())


async def readyz(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Check that the store can be read. The response says what its settings guarantee."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            await services.run(services.ops.get([new_id()]))
            found = await services.backend.driver.durability()
    except TimeoutError:
        raise StoreUnavailable(f"It did not answer within {READY_SECONDS:g} s.") from None
    durability = DurabilityView(found.engine, found.settings, found.warnings)
    return Response(Ready(version=__version__, durability=durability))


OPERATIONS: Final = [
    Operation("GET", "/healthz", healthz, OPEN, returns=Alive),
    Operation("GET", "/readyz", readyz, OPEN, returns=Ready),
]
