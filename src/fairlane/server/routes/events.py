"""`/api/v1/events`: what happens, as it happens or a page at a time."""

from __future__ import annotations

from typing import Final

from fairlane.server.answers import Answer
from fairlane.server.errors import Unfit
from fairlane.server.gate import welcome
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.services import Services
from fairlane.server.stream import sse
from fairlane.server.stream.clients import Client
from fairlane.server.stream.subscriptions import by_query
from fairlane.wire.events import EventPage, EventQuery

MOST_CURSOR: Final = 64


async def events(services: Services, call: Call[None, EventQuery]) -> Answer:
    """With `Accept: text/event-stream`, events as they happen, after `cursor` or `Last-Event-ID` if
    there is one; otherwise one page of what happened after the cursor. Without a cursor: from now.
    """
    subscription = by_query(call.query)
    hub = services.hub
    if sse.KIND in call.headers.get(b"accept", b""):
        client = Client(subscription, welcome(services.keys, call.headers))
        past = await hub.past(_last_seen(call))
        hub.check_room()
        return sse.EventStream(hub=hub, client=client, past=past, left=call.left)
    cursor = call.query.cursor
    if cursor is None:
        return Answer(EventPage((), await hub.reader.tail(), reset=False))
    stretch = await hub.reader.resume(cursor, call.query.limit)
    found = tuple(item.event for item in stretch.items if subscription.wants(item))
    return Answer(EventPage(found, stretch.cursor, stretch.reset))


def _last_seen(call: Call[None, EventQuery]) -> str | None:
    """Where to go on: a browser that reconnects says so in a header, by the same address."""
    header = call.headers.get(b"last-event-id")
    if not header:
        return call.query.cursor
    if len(header) > MOST_CURSOR:
        raise Unfit("Last-Event-ID is not a cursor.")
    return header.decode("latin-1")


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/events",
        handler=events,
        summary="Follow what happens",
        scopes=READ,
        query=EventQuery,
        returns=EventPage,
    ),
]
