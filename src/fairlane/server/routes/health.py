"""`/healthz` and `/readyz`: for programs that start, watch and stop servers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from fairlane import __version__
from fairlane.core.errors import StoreUnavailable
from fairlane.core.ids import new_id
from fairlane.server.auth import secret_of
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


class Ready(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The server and its store answer. The rest is told to callers who may read."""

    status: Literal["ready"]
    version: str | msgspec.UnsetType = msgspec.UNSET
    durability: DurabilityView | msgspec.UnsetType = msgspec.UNSET


async def healthz(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Check that the server runs. The store is not asked."""
    return Response(Alive())


async def readyz(services: Services, call: Call[None, None]) -> Response:
    """Check that the store can be read. With a token, if tokens are required, the response says
    what its settings guarantee."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            await services.run(services.ops.get([new_id()]))
            if not await _may_know(services, call):
                return Response(Ready(status="ready"))
            found = await services.backend.driver.durability()
    except TimeoutError:
        raise StoreUnavailable(f"It did not answer within {READY_SECONDS:g} s.") from None
    durability = DurabilityView(found.engine, found.settings, found.warnings)
    return Response(Ready(status="ready", version=__version__, durability=durability))


async def _may_know(services: Services, call: Call[None, None]) -> bool:
    """Return whether the caller has a token that is not bound, or none is required."""
    if not await services.tokens.required():
        return True
    secret = secret_of(call.headers)
    token = None if secret is None else await services.tokens.token(secret)
    return token is not None and token.bounds is None


OPERATIONS: Final = [
    Operation("GET", "/healthz", healthz, OPEN, returns=Alive),
    Operation("GET", "/readyz", readyz, OPEN, returns=Ready),
]
