"""events, tail: read the journal.

Entries are numbered 0-1, 0-2, … without a gap, so a reader notices when it has missed one.
"""

from __future__ import annotations

import re

from fairlane.core import limits
from fairlane.core.errors import InvalidCursor
from fairlane.core.flow import Flow, reads
from fairlane.core.model import Event, Events
from fairlane.engines.redis.context import Context, pairs
from fairlane.engines.redis.rows import passage_of
from fairlane.engines.redis.scripts import script

EVENTS = script("events")

_CURSOR = re.compile(r"0-(0|[1-9][0-9]{0,18})\Z")


@reads
def events(self: Context, after: str | None, limit: int) -> Flow[Events]:
    limit = max(1, limit)
    begin = 0 if after is None else _number(after)
    last, entries, version = yield from self.call(EVENTS, _cursor(begin + 1), limit, limits.BATCH)
    newest = _number(last.decode())
    oldest = _number(entries[0][0].decode()) if entries else newest + 1
    reset = after is not None and begin + 1 != oldest
    if reset and begin > newest:  # a cursor of an earlier store under this prefix
        last, entries, version = yield from self.call(EVENTS, _cursor(0), limit, limits.BATCH)
    if version != self.catalogue.version:
        yield from self.refresh()  # a number may stand for another lane now
    found: list[Event] = []
    cursor = _cursor(newest) if reset or after is None else after
    for name, fields in entries:
        cursor = name.decode()
        (_, at), *passages = pairs(fields)
        for passage in map(passage_of, passages):
            found += passage.events(cursor, int(at), self.catalogue.lanes.get)
    return Events(found, cursor, reset)


@reads
def tail(self: Context) -> Flow[str]:
    last, *_ = yield from self.call(EVENTS, _cursor(0), 0, 0)
    cursor: str = last.decode()
    return cursor


def _number(cursor: str) -> int:
    match = _CURSOR.match(cursor) if isinstance(cursor, str) else None
    if match is None:
        raise InvalidCursor
    return int(match[1])


def _cursor(number: int) -> str:
    return f"0-{number}"
