"""`/internal/store`: the store's counters and journal, for Fairlane's client over HTTP.

For everyone else there is `/api/v1`, whose shapes are stable: `queue/stats`, `events`.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from fairlane.core import limits
from fairlane.core.facts import Facts
from fairlane.core.model import Events
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services


class JournalQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cursor to continue from (default: the oldest entry), and about how many events."""

    cursor: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE)] = 100


async def facts(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Read counters, heads of the queues, limits and workers together."""
    return Response(await services.run(services.ops.facts()))


async def journal(services: Services, call: Call[None, JournalQuery]) -> Response:
    """Read the journal, oldest first, with the store's own names."""
    return Response(await services.run(services.ops.events(call.query.cursor, call.query.limit)))


OPERATIONS: Final = [
    Operation("GET", "/internal/store/facts", facts, READ, returns=Facts),
    Operation("GET", "/internal/store/events", journal, READ, query=JournalQuery, returns=Events),
]
