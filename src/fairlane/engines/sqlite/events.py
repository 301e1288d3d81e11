"""events, tail: reading the journal."""

from __future__ import annotations

from fairlane.core import journal, limits
from fairlane.core.errors import InvalidCursor
from fairlane.core.flow import Flow, reads
from fairlane.core.model import Event, Events
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import Context

SQL = statements(__package__, "events")

_DIGITS = 18  # as many as surely fit into an integer


@reads
def events(self: Context, after: str | None, limit: int) -> Flow[Events]:
    position = _position(after)
    yield from self.catalogue.refresh()
    oldest = (yield Execute(SQL["oldest"])).fetchone()
    rows = (yield Execute(SQL["events"], (position, limits.BATCH))).fetchall()
    ahead = not rows and position > (yield from _newest())
    if ahead:  # a cursor of another file, or of a later time of this one
        position = 0
        rows = yield Execute(SQL["events"], (position, limits.BATCH))
    found: list[Event] = []
    reached = position
    for number, at, entry in rows:
        if len(found) >= limit:
            break
        reached = number
        for passage in journal.decode(entry) if entry else ():
            found += passage.events(str(number), at, self.catalogue.known_lane)
    missed = after is not None and oldest is not None and position < oldest[0] - 1
    return Events(found, str(reached), ahead or missed)


@reads
def tail(self: Context) -> Flow[str]:
    return str((yield from _newest()))


def _newest() -> Flow[int]:
    ((newest,),) = yield Execute(SQL["tail"])
    return int(newest)


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= _DIGITS):
        raise InvalidCursor
    return int(cursor)
