"""What a client wants to hear of."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlane.server.stream.items import Item
from fairlane.wire.events import FIGURES, EventQuery, EventType, Subscribe


class Subscription(msgspec.Struct, frozen=True):
    """A filter; None is no limit.

    Tasks and queues limit what is about tasks and queues. What is about neither passes if it was
    asked for by name, and otherwise only where there are no such limits.
    """

    types: frozenset[str] | None = None
    task_ids: frozenset[str] | None = None
    queues: frozenset[str] | None = None

    def wants(self, item: Item) -> bool:
        """Whether an event passes."""
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
        """Whether one of these was asked for by name."""
        return self.types is not None and not self.types.isdisjoint(types)

    @property
    def figures(self) -> bool:
        """Whether anything is wanted that is not in the journal."""
        return self.names_any(FIGURES)

    @property
    def progress(self) -> bool:
        """Whether progress is wanted."""
        return self.types is None or EventType.PROGRESS in self.types

    def shown(self) -> dict[str, Any]:
        """As a client is told."""
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
    """As a client said."""
    return _subscription(message.subscribe, message.task_ids, message.queues)


def by_query(query: EventQuery) -> Subscription:
    """As an address says."""
    return _subscription(query.type, query.task_id, query.queue)


def _subscription(
    types: tuple[EventType, ...], task_ids: tuple[str, ...], queues: tuple[str, ...]
) -> Subscription:
    return Subscription(
        frozenset(map(str, types)) or None, frozenset(task_ids) or None, frozenset(queues) or None
    )
