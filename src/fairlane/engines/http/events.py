"""facts, tallies, depths, events, tail, audit: what a store has written down."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from fairlane.core.audit import AuditPage, checked_limit
from fairlane.core.facts import Facts
from fairlane.core.flow import Flow, reads
from fairlane.core.model import Events
from fairlane.core.tally import Tally
from fairlane.engines.http import decode
from fairlane.engines.http.calls import get
from fairlane.wire.audit import AuditList
from fairlane.wire.events import EventPage

_STORE: Final = "/internal/store"


@reads
def facts(_: object) -> Flow[Facts]:
    return (yield from _facts())


@reads
def tallies(_: object) -> Flow[list[Tally]]:
    return (yield from _facts()).tallies


@reads
def depths(_: object) -> Flow[dict[tuple[str, int], int]]:
    found = yield from _facts()
    depths: Counter[tuple[str, int]] = Counter()
    for stream in found.streams:
        depths[found.lanes[stream.lane].queue, stream.level] += stream.depth
    return dict(depths)


@reads
def events(_: object, after: str | None, limit: int) -> Flow[Events]:
    return (yield from get(f"{_STORE}/events", Events, _stretch(limit, after)))


@reads
def tail(_: object) -> Flow[str]:
    return (yield from get("/api/v1/events", EventPage)).cursor


@reads
def audit(_: object, limit: int, cursor: str | None = None) -> Flow[AuditPage]:
    query = _stretch(checked_limit(limit), cursor)
    answer = yield from get("/api/v1/audit", AuditList, query)
    return AuditPage([decode.audit_of(each) for each in answer.entries], answer.next_cursor)


def _facts() -> Flow[Facts]:
    return (yield from get(f"{_STORE}/facts", Facts))


def _stretch(limit: int, cursor: str | None) -> dict[str, Any]:
    return {"limit": limit, **({} if cursor is None else {"cursor": cursor})}
