"""facts, events, tail, audit: the store's counters, journal and audit log."""

from __future__ import annotations

from typing import Any, Final

from fairlane.core.audit import AuditPage, checked_limit
from fairlane.core.facts import Facts
from fairlane.core.flow import Flow, reads
from fairlane.core.model import Events
from fairlane.engines.http import decode
from fairlane.engines.http.calls import get
from fairlane.wire.audit import AuditList
from fairlane.wire.events import EventPage

_STORE: Final = "/internal/store"


@reads
def facts(_: object) -> Flow[Facts]:
    return (yield from get(f"{_STORE}/facts", Facts))


@reads
def events(_: object, after: str | None, limit: int) -> Flow[Events]:
    return (yield from get(f"{_STORE}/events", Events, _page(limit, after)))


@reads
def tail(_: object) -> Flow[str]:
    return (yield from get("/api/v1/events", EventPage)).cursor


@reads
def audit(_: object, limit: int, cursor: str | None = None) -> Flow[AuditPage]:
    query = _page(checked_limit(limit), cursor)
    answer = yield from get("/api/v1/audit", AuditList, query)
    return AuditPage([decode.audit_of(each) for each in answer.entries], answer.next_cursor)


def _page(limit: int, cursor: str | None) -> dict[str, Any]:
    return {"limit": limit, **({} if cursor is None else {"cursor": cursor})}
