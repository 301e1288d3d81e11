"""record, audit: who changed what."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.audit import AuditPage, NewAudit, checked, checked_limit, entry_after, page_of
from fairlane.core.flow import Flow, reads, writes
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("audit")


@writes
def record(self: Context, entries: Sequence[NewAudit]) -> Flow[None]:
    checked(entries)
    columns = ([each.entry_id for each in entries], [each.encode() for each in entries])
    yield Query(SQL["record"], columns)
    yield Query(SQL["trim"], (limits.BATCH, limits.AUDIT_ENTRIES))


@reads
def audit(self: Context, limit: int, cursor: str | None = None) -> Flow[AuditPage]:
    wanted = checked_limit(limit) + 1
    after = entry_after(cursor)
    if after is None:
        rows = yield Query(SQL["newest"], (wanted,))
    else:
        rows = yield Query(SQL["older"], (after, wanted))
    return page_of(rows, limit)
