"""`/api/v1/events`: events, live or a page at a time."""

from __future__ import annotations

from typing import Final

from fairlane.server.auth import may_keep_reading
from fairlane.server.errors import InvalidRequest
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.server.stream import sse
from fairlane.server.stream.clients import Client
from fairlane.server.stream.subscriptions import by_query
from fairlane.wire.events import EventPage, EventQuery

MOST_CURSOR: Final = 64


async def events(services: Services, call: Call[None, EventQuery]) -> Response:
    """Follow events. With `Accept: text/event-stream`: live events, after `cursor` or
    `Last-Event-ID` if given. Otherwise: one page of events after the cursor. Without a cursor:
    events from now on."""
    subscription = by_query(call.query)
    hub = services.hub
    if sse.KIND in call.headers.get(b"accept", b""):
        client = Client(subscription, may_keep_reading(services.tokens, call.headers))
        past = await hub.past(_last_seen(call))
        hub.check_room()
        return sse.EventStream(hub=hub, client=client, past=past, left=call.left)
    cursor = call.query.cursor
    if cursor is None:
        return Response(EventPage((), await hub.reader.tail(), reset=False))
    stretch = await hub.reader.resume(cursor, call.query.limit)
    found = tuple(item.event for item in stretch.items if subscription.wants(item))
    return Response(EventPage(found, stretch.cursor, stretch.reset))


def _last_seen(call: Call[None, EventQuery]) -> str | None:
    """Return the cursor: a browser that reconnects sends it in a header, with the same URL."""
    header = call.headers.get(b"last-event-id")
    if not header:
        return call.query.cursor
    if len(header) > MOST_CURSOR:
        raise InvalidRequest("Last-Event-ID is not a cursor.")
    return header.decode("latin-1")


OPERATIONS: Final = [
    Operation("GET", "/api/v1/events", events, READ, query=EventQuery, returns=EventPage),
]
