"""The audit log as JSON shows it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from fairlane.core import limits
from fairlane.core.audit import Audit
from fairlane.wire.times import Moment, iso

PAGE = 100


class AuditEntry(msgspec.Struct, frozen=True):
    """Something that was done: when, by whom, what, to what, and from where."""

    entry_id: str
    timestamp: Moment
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    address: str


class AuditList(msgspec.Struct, frozen=True):
    """Entries, the newest first. `next_cursor` is where to go on, null when that was all."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which page, and how long."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE)] = PAGE
    cursor: str | None = None


def entry_of(found: Audit) -> AuditEntry:
    """An entry as JSON shows it."""
    return AuditEntry(
        entry_id=found.entry_id,
        timestamp=iso(found.at),
        actor=found.actor,
        action=found.action,
        subject=found.subject,
        detail=msgspec.json.decode(found.detail),
        address=found.address,
    )
