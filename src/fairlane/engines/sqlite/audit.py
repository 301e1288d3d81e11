"""record, audit: who changed what."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.audit import AuditPage, NewAudit, checked, checked_limit, entry_after, page_of
from fairlane.core.flow import Flow, reads, writes
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context

SQL = statements(__package__, "audit")


@writes
def record(self: Context, entries: Sequence[NewAudit]) -> Flow[None]:
    checked(entries)
    now = self.clock()
    yield ExecuteMany(SQL["record"], [(each.entry_id, now, each.encode()) for each in entries])
    yield Execute(SQL["trim"], (limits.BATCH, limits.AUDIT_ENTRIES))


@reads
def audit(self: Context, limit: int, cursor: str | None = None) -> Flow[AuditPage]:
    wanted = checked_limit(limit) + 1
    after = entry_after(cursor)
    if after is None:
        rows = yield Execute(SQL["newest"], (wanted,))
    else:
        rows = yield Execute(SQL["older"], (after, wanted))
    return page_of(rows, limit)
