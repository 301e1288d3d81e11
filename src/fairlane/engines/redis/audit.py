"""record, audit: who changed what."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core.audit import AuditPage, NewAudit, checked, checked_limit, entry_after, page_of
from fairlane.core.flow import Flow, reads, writes
from fairlane.engines.redis.context import Context, pairs
from fairlane.engines.redis.scripts import script

RECORD = script("record")
AUDIT = script("audit")


@writes
def record(self: Context, entries: Sequence[NewAudit]) -> Flow[None]:
    checked(entries)
    told = [part for each in entries for part in (each.entry_id, each.encode())]
    yield from self.call(RECORD, *told)


@reads
def audit(self: Context, limit: int, cursor: str | None = None) -> Flow[AuditPage]:
    wanted = checked_limit(limit) + 1
    found, entries = yield from self.call(AUDIT, wanted, entry_after(cursor) or b"")
    times = pairs(found)
    rows = [
        (entry_id.decode(), int(at), entry)
        for (entry_id, at), entry in zip(times, entries, strict=True)
    ]
    return page_of(rows, limit)
