"""events, tail: the journal is read."""

from __future__ import annotations

import re
from typing import Any

from fairlane.core import limits
from fairlane.core.errors import InvalidCursor
from fairlane.core.flow import Flow, reads
from fairlane.core.lanes import Lane
from fairlane.core.model import Event, Events
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.rows import passage_of
from fairlane.engines.postgres.statements import load

SQL = load("events")

Place = tuple[int, int]
"""The position of a journal entry: the transaction that wrote it, and a number."""

_BEFORE_ALL = (0, 0)
_CURSOR = re.compile(r"([0-9]{1,19})-([0-9]{1,18})\Z")


@reads
def events(self: Context, after: str | None, limit: int) -> Flow[Events]:
    place = _BEFORE_ALL if after is None else _place_of(after)
    xid, n = place
    rows = yield Query(SQL["events"], (str(xid), n, limits.BATCH))
    # The cursor is of another cluster, or this one lost its last transactions.
    ahead = xid >= int(rows[0][2])
    if ahead:
        place = _BEFORE_ALL
        rows = yield Query(SQL["events"], ("0", 0, limits.BATCH))
    floor = _place(rows[0])
    found: list[Event] = []
    lanes: dict[int, Lane | None] = {}
    reached = max(place, floor)
    for row in rows:
        _, _, _, *entry = row
        if entry[0] is None or len(found) >= limit:
            break
        at, passage = passage_of(entry)
        if passage.lane and passage.lane not in lanes:
            lanes[passage.lane] = yield from self.catalogue.lane(passage.lane)
        reached = _place(entry)
        found += passage.events(_cursor(reached), at, lanes.get)
    return Events(found, _cursor(reached), ahead or (after is not None and place < floor))


def adopt_journal() -> Flow[None]:
    """Renumber the journal if it was restored from another cluster.

    Transaction ids begin again in a new cluster. Without this, the entries from before and the
    floor would lie ahead of all new entries. If two processes renumber at once, one waits for the
    other and renumbers again, which resets readers once more.
    """
    ((restored,),) = yield Query(SQL["is_restored"])
    if restored:
        yield Query(SQL["renumber"])


@reads
def tail(self: Context) -> Flow[str]:
    rows = yield Query(SQL["tail"])
    return _cursor(max(_place(row) for row in rows))


def _place(row: tuple[Any, ...]) -> Place:
    """Return the position at the beginning of a row."""
    return int(row[0]), row[1]


def _cursor(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def _place_of(cursor: str) -> Place:
    found = _CURSOR.match(cursor) if isinstance(cursor, str) else None
    if found is None:
        raise InvalidCursor
    xid, n = found.groups()
    return int(xid), int(n)
