"""The audit log: who changed what, beside the tasks' own history.

An entry is written once what it tells of has been done. The newest are kept, see
`limits.AUDIT_ENTRIES`, and listed from the newest to the oldest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.cursors import cursor_of, item_of
from fairlane.core.documents import Document, Documents, Order, Place, rewrites, write
from fairlane.core.errors import BatchTooLarge, InvalidInput, InvalidLimit
from fairlane.core.filters import EVERYTHING, Filter
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import is_id, new_id
from fairlane.core.model import moment
from fairlane.core.text import shown, storable


class Action(StrEnum):
    """What is recorded."""

    PAUSE = "flow.pause"
    RESUME = "flow.resume"
    LIMIT = "flow.limit"
    CHANGE_SETTINGS = "settings.change"
    DRAIN = "worker.drain"
    CANCEL = "task.cancel"
    REPLAY = "task.replay"
    DELETE = "task.delete"
    PUT_SCHEDULE = "schedule.put"
    DROP_SCHEDULE = "schedule.drop"
    CREATE_TOKEN = "token.create"
    REVOKE_TOKEN = "token.revoke"
    ROTATE_TOKEN = "token.rotate"
    REMAKE = "store.remake"
    SIGN_IN = "session.create"
    SIGN_OUT = "session.end"


class NewAudit(msgspec.Struct, frozen=True):
    """Something that was done, to be recorded. `detail` is JSON. See `of`."""

    entry_id: str
    actor: str
    action: str
    subject: str = ""
    detail: str = "{}"
    address: str = ""

    @classmethod
    def of(
        cls,
        actor: str,
        action: Action,
        subject: str = "",
        detail: Mapping[str, Any] | None = None,
        *,
        address: str = "",
    ) -> NewAudit:
        """Return an entry whose texts are cut to size and safe to store anywhere.

        `actor` is a token's name, or `cli:` and the user's; `address` is where a request came from.
        """
        return cls(
            entry_id=new_id(),
            actor=storable(actor, limits.NAME_LENGTH),
            action=action.value,
            subject=storable(subject, limits.AUDIT_SUBJECT_CHARACTERS),
            detail=_detail(detail or {}),
            address=storable(address, limits.NAME_LENGTH),
        )

    def encode(self) -> bytes:
        """As its document holds it."""
        return _stored.encode((self.actor, self.action, self.subject, self.detail, self.address))


_stored = msgspec.json.Encoder()
_stored_decoder = msgspec.json.Decoder(tuple[str, str, str, str, str])


class Audit(msgspec.Struct, frozen=True):
    """Something that was done. `detail` is JSON."""

    entry_id: str
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str
    address: str


class AuditPage(msgspec.Struct, frozen=True):
    """Entries, newest first. `next_cursor` is where to go on, None when that was all."""

    entries: list[Audit]
    next_cursor: str | None


def subject_of(queue: str | None, type: str | None) -> str:
    """Return what was paused or limited, in words."""
    if queue is not None:
        return f"queue {queue}"
    return "everything" if type is None else f"type {type}"


def detail_of(filter: Filter) -> dict[str, Any]:
    """Return which tasks were meant: what a filter asks for, by name."""
    asked = {name: getattr(filter, name) for name in filter.__struct_fields__}
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in asked.items()
        if value != getattr(EVERYTHING, name)
    }


def checked(entries: Sequence[NewAudit]) -> None:
    """Raise unless these can be recorded at once."""
    if len(entries) > limits.BATCH:
        raise BatchTooLarge(f"At most {limits.BATCH:,} entries at once, not {len(entries):,}.")
    if not all(is_id(entry.entry_id) for entry in entries):
        raise InvalidInput(
            "An entry of the audit log has a UUID for its id: make it by NewAudit.of."
        )


def checked_limit(limit: int) -> int:
    """Return how many entries may be asked for at once."""
    if isinstance(limit, int) and not isinstance(limit, bool) and 1 <= limit <= limits.PAGE:
        return limit
    raise InvalidLimit(f"From 1 to {limits.PAGE:,} entries are listed at once, not {shown(limit)}.")


# Operations, see `store`.

_KIND = "audit"
_CURSOR = "a"


@rewrites
def record(self: Documents, entries: Sequence[NewAudit]) -> Flow[None]:
    checked(entries)
    if not entries:
        return
    values = {entry.entry_id: entry.encode() for entry in entries}
    now, found = yield from self.read_documents(_KIND, list(values))
    known = {each.id for each in found if each is not None}
    new = [Document(each, value, now) for each, value in values.items() if each not in known]
    if new:
        yield from write(self, _KIND, new)
    _, excess = yield from self.list_documents(
        _KIND, Order.NEWEST, limits.BATCH, skip=limits.AUDIT_ENTRIES
    )
    if excess:
        yield from write(self, _KIND, [], excess)


@reads
def audit(self: Documents, limit: int, cursor: str | None = None) -> Flow[AuditPage]:
    checked_limit(limit)
    last = item_of(_CURSOR, cursor)
    after: Place | None = None
    if last is not None:
        _, (entry,) = yield from self.read_documents(_KIND, [last])
        if entry is None:
            return AuditPage([], None)  # what came after it has gone before it
        after = (entry.at, entry.id)
    # One more than fits on the page tells whether there is another.
    _, found = yield from self.list_documents(_KIND, Order.NEWEST, limit + 1, after)
    entries = [
        Audit(each.id, moment(each.at), *_stored_decoder.decode(each.value))
        for each in found[:limit]
    ]
    more = len(found) > limit
    return AuditPage(entries, cursor_of(_CURSOR, entries[-1].entry_id) if more else None)


def _detail(detail: Mapping[str, Any]) -> str:
    # Once there and back: what no reader of JSON would take (half a character, not a number) goes.
    text = json.dumps(detail, default=str, ensure_ascii=False).encode("utf-8", "replace")
    encoded = msgspec.json.encode(json.loads(text)).decode("utf-8")
    if len(encoded) > limits.AUDIT_DETAIL_CHARACTERS:
        cut = storable(encoded, limits.AUDIT_DETAIL_CHARACTERS // 3)  # quotes get longer in quotes
        encoded = msgspec.json.encode({"cut": cut}).decode("utf-8")
    return encoded
