"""The audit log as `/api/v1/audit` and `fairlane audit --json` show it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from fairlane.core import limits
from fairlane.core.audit import Audit, AuditPage
from fairlane.wire.times import Moment, iso

PAGE = 100


class AuditEntry(msgspec.Struct, frozen=True):
    """An entry: when, who, what, to what, and from which address."""

    entry_id: str
    timestamp: Moment
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    address: str


class AuditList(msgspec.Struct, frozen=True):
    """Entries, newest first. `next_cursor`: where to continue, null at the end."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cursor of the page, and its size."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE)] = PAGE
    cursor: str | None = None


def encode_audit(page: AuditPage) -> AuditList:
    """Return a page of the audit log as JSON shows it."""
    return AuditList([_entry(each) for each in page.entries], page.next_cursor)


def _entry(found: Audit) -> AuditEntry:
    return AuditEntry(
        entry_id=found.entry_id,
        timestamp=iso(found.at),
        actor=found.actor,
        action=found.action,
        subject=found.subject,
        detail=msgspec.json.decode(found.detail),
        address=found.address,
    )
