"""Events to be sent to clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from fairlane.core.journal import Place, place_of
from fairlane.core.model import Event
from fairlane.wire.events import (
    FIGURES,
    LiveEvent,
    Notice,
    TaskData,
    encode_events,
    is_progress,
)
from fairlane.wire.runs import ProgressView
from fairlane.wire.times import iso

_encode: Final = msgspec.json.Encoder().encode


class Item:
    """An event. It is encoded once for all clients, when the first one wants it.

    `key`: a later item with the same key replaces this one, if it was not sent yet.
    """

    __slots__ = ("_text", "cursor", "event", "key", "place", "queue", "task_id", "type")

    def __init__(
        self,
        event: LiveEvent,
        place: Place = (),
        *,
        key: object = None,
        task_id: str | None = None,
        queue: str | None = None,
    ) -> None:
        self.event = event
        self._text = ""
        self.type = event.type
        self.cursor = None if isinstance(event.cursor, msgspec.UnsetType) else event.cursor
        self.place = place
        self.key = key
        self.task_id = task_id
        self.queue = queue

    @property
    def figure(self) -> bool:
        """Whether this is a figure: it does not come from the journal."""
        return self.type in FIGURES

    @property
    def text(self) -> str:
        """The event as JSON."""
        if not self._text:
            self._text = _encode(self.event).decode()
        return self._text


def live_item(type: str, data: Any, cursor: str | None = None, **options: Any) -> Item:
    """Return an event that does not come from the journal."""
    now = iso(datetime.now(UTC))
    given = msgspec.UNSET if cursor is None else cursor
    return Item(LiveEvent(type=type, timestamp=now, data=data, cursor=given), **options)


def notice(notice: Notice, data: Any = None, cursor: str | None = None) -> Item:
    """Return a notice about the stream itself. Every `reset` is sent; of other notices the last
    one replaces earlier ones."""
    key = None if notice is Notice.RESET else notice
    return live_item(notice.value, {} if data is None else data, cursor, key=key)


def items_of(
    events: Sequence[Event], after: str | None, progress: Mapping[str, ProgressView]
) -> list[Item]:
    """Return the items of whole journal entries: see `encode_events`."""
    items: list[Item] = []
    cursor: str | None = None
    place: Place = ()
    for event, live in encode_events(events, after, progress):
        if event.cursor != cursor:
            cursor = event.cursor
            place = place_of(cursor)
        queue = live.data.queue if isinstance(live.data, TaskData) else None
        key = (live.type, event.task_id) if is_progress(event) else None
        items.append(Item(live, place, key=key, task_id=event.task_id, queue=queue))
    return items
