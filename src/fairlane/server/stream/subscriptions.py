"""Which events a client wants."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlane.server.stream.items import Item
from fairlane.wire.events import EventQuery, EventType, Subscribe


class Subscription(msgspec.Struct, frozen=True):
    """A filter of events; None means all.

    `task_ids` and `queues` restrict events about tasks and queues. An event about neither passes if
    its type is named in `types`, or if there are no such restrictions.
    """

    types: frozenset[str] | None = None
    task_ids: frozenset[str] | None = None
    queues: frozenset[str] | None = None

    def wants(self, item: Item) -> bool:
        """Return whether an event passes."""
        types = self.types
        if types is None:
            if item.figure:
                return False
        elif item.type not in types:
            return False
        return _within(self.task_ids, item.task_id, named=types is not None) and _within(
            self.queues, item.queue, named=types is not None
        )

    def names_any(self, types: frozenset[EventType]) -> bool:
        """Return whether one of these types is named."""
        return self.types is not None and not self.types.isdisjoint(types)

    @property
    def progress(self) -> bool:
        """Whether progress is wanted."""
        return self.types is None or EventType.PROGRESS in self.types

    def shown(self) -> dict[str, Any]:
        """Return the subscription as the client sees it."""
        return {
            "subscribe": sorted(self.types or ()),
            "task_ids": sorted(self.task_ids or ()),
            "queues": sorted(self.queues or ()),
        }


def _within(names: frozenset[str] | None, name: str | None, *, named: bool) -> bool:
    if names is None:
        return True
    return named if name is None else name in names


def by_message(message: Subscribe) -> Subscription:
    """Return the subscription in a WebSocket message."""
    return _subscription(message.subscribe, message.task_ids, message.queues)


def by_query(query: EventQuery) -> Subscription:
    """Return the subscription in a query."""
    return _subscription(query.type, query.task_id, query.queue)


def _subscription(
    types: tuple[EventType, ...], task_ids: tuple[str, ...], queues: tuple[str, ...]
) -> Subscription:
    return Subscription(
        frozenset(map(str, types)) or None, frozenset(task_ids) or None, frozenset(queues) or None
    )
