"""`/internal/store`: the store's own books, for Fairlane's client over HTTP.

What others want to know of them stands in `/api/v1`, in words that stay: `queue/stats`, `events`.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from fairlane.core import limits
from fairlane.core.facts import Facts
from fairlane.core.model import Events
from fairlane.server.answers import Answer
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.services import Services


class JournalQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to go on from (from the oldest, if left out), and about how far."""

    cursor: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE)] = 100


async def facts(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """Counters, the ends of what is queued, limits, workers: all at one glance."""
    return Answer(await services.run(services.ops.facts()))


async def journal(services: Services, call: Call[None, JournalQuery]) -> Answer:
    """Transitions, oldest first, by the names that the store has for them."""
    return Answer(await services.run(services.ops.events(call.query.cursor, call.query.limit)))


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/internal/store/facts",
        handler=facts,
        summary="The counters themselves",
        scopes=READ,
        returns=Facts,
    ),
    Operation(
        method="GET",
        path="/internal/store/events",
        handler=journal,
        summary="The journal itself",
        scopes=READ,
        query=JournalQuery,
        returns=Events,
    ),
]
