"""The audit log: who changed what, beside the tasks' own history.

An entry is written once what it tells of has been done. Entries are kept for a time, see
`limits.AUDIT_SECONDS`, and listed from the newest to the oldest. Nobody pushes out the entries of
others: an actor has a number of places (see `_placed`), and beyond the number of all entries the
actor that has most loses its oldest (see `excess_of`).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.cursors import cursor_of, item_of
from fairlane.core.documents import (
    Document,
    Documents,
    Order,
    Overtaken,
    Place,
    Written,
    rewrites,
    write,
    write_or_forget,
)
from fairlane.core.errors import BatchTooLarge, InvalidCursor, InvalidInput, InvalidLimit
from fairlane.core.filters import EVERYTHING, Filter
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import is_id, new_id
from fairlane.core.model import moment
from fairlane.core.retention import past
from fairlane.core.text import shown, storable


class Action(StrEnum):
    """What is recorded."""

    PAUSE = "flow.pause"
    RESUME = "flow.resume"
    LIMIT = "flow.limit"
    CHANGE_SETTINGS = "settings.change"
    SET_ENCRYPTION = "settings.encryption"
    DRAIN = "worker.drain"
    CANCEL = "task.cancel"
    REPLAY = "task.replay"
    DELETE = "task.delete"
    PUT_SCHEDULE = "schedule.put"
    TAKE_SCHEDULE = "schedule.take"
    DROP_SCHEDULE = "schedule.drop"
    PAUSE_SCHEDULE = "schedule.pause"
    RESUME_SCHEDULE = "schedule.resume"
    RUN_SCHEDULE = "schedule.run"
    BACKFILL_SCHEDULE = "schedule.backfill"
    PUBLISH = "definition.publish"
    DROP_DEFINITION = "definition.drop"
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


class Kept(msgspec.Struct, frozen=True):
    """An entry that is stored, without its text."""

    actor: str
    document: Document


def excess_of(kept: Iterable[Kept], count: int) -> list[Document]:
    """Return `count` entries to delete: each time the oldest of the actor that has most.

    `kept` begins with the oldest.
    """
    by_actor: dict[str, list[Document]] = {}
    for each in kept:
        by_actor.setdefault(each.actor, []).append(each.document)
    largest = [(-len(documents), actor) for actor, documents in by_actor.items()]
    heapq.heapify(largest)
    taken = dict.fromkeys(by_actor, 0)
    found: list[Document] = []
    while largest and len(found) < count:
        size, actor = heapq.heappop(largest)
        found.append(by_actor[actor][taken[actor]])
        taken[actor] += 1
        if size + 1:
            heapq.heappush(largest, (size + 1, actor))
    return found


# Operations, see `store`.

_KIND = "audit"
_ACTORS = "audit_actor"
"""Documents that count the entries of an actor, by a digest of its name."""
_CURSOR = "a"
_AT_DIGITS = 15


@rewrites
def record(self: Documents, entries: Sequence[NewAudit]) -> Flow[None]:
    checked(entries)
    if not entries:
        return
    unique = {entry.entry_id: entry for entry in entries}
    now, found = yield from self.read_documents(_KIND, list(unique))
    known = {each.id for each in found if each is not None}
    new = [entry for entry in unique.values() if entry.entry_id not in known]
    by_actor: dict[str, list[NewAudit]] = {}
    for entry in new:
        by_actor.setdefault(_digest(entry.actor), []).append(entry)
    if not new:
        return
    _, counts = yield from self.read_documents(_ACTORS, list(by_actor))
    counters: list[Document] = []
    puts: list[Document] = []
    drops: list[Document] = []
    for (actor, added), stored in zip(by_actor.items(), counts, strict=True):
        count = 0 if stored is None else int(stored.value)
        placed = _placed(actor, added, count, now)
        puts += placed
        if stored is None or count + len(added) > limits.AUDIT_ACTOR_ENTRIES:
            for each in placed:
                assert each.alias is not None
                taken = yield from self.find_document(_KIND, each.alias)
                if taken is not None:
                    drops.append(taken[1])
        version = 0 if stored is None else stored.version
        value = str(count + len(added)).encode()
        counters.append(Document(actor, value, now, version=version))
    # The places first: the process that has increased their number is the only one to use them.
    yield from write_or_forget(self, _ACTORS, counters, limits.AUDIT_ACTORS)
    if drops:
        yield from write(self, _KIND, [], drops)
    if (yield from write(self, _KIND, puts)) is Written.TAKEN:
        raise Overtaken  # of an actor that was forgotten, and comes back twice at once


def _placed(actor: str, entries: Sequence[NewAudit], count: int, now: int) -> list[Document]:
    """Return the documents of an actor's entries, after `count` earlier ones.

    Each has one of the actor's places, in turn. Who comes round takes the place of its oldest.
    """
    most = limits.AUDIT_ACTOR_ENTRIES
    return [
        Document(entry.entry_id, entry.encode(), now, alias=f"{actor} {number % most}")
        for number, entry in enumerate(entries, start=count)
    ][-most:]


def _digest(actor: str) -> str:
    """Return a name that every engine can store, and that no other actor has."""
    return sha256(actor.encode()).hexdigest()[:32]


@rewrites
def trim_audit(self: Documents) -> Flow[int]:
    now, oldest = yield from self.list_documents(_KIND, Order.OLDEST, limits.BATCH)
    until = past(limits.AUDIT_SECONDS, now)
    gone = [each for each in oldest if each.at <= until]
    if not gone:
        _, beyond = yield from self.list_documents(
            _KIND, Order.NEWEST, limits.BATCH, skip=limits.AUDIT_ENTRIES
        )
        if beyond:
            gone = excess_of((yield from _all(self)), len(beyond))
    if gone:
        yield from write(self, _KIND, [], gone)
    return len(gone)


def _all(self: Documents) -> Flow[list[Kept]]:
    """Read who made each entry, the oldest first."""
    found: list[Kept] = []
    after: Place | None = None
    while True:
        _, page = yield from self.list_documents(_KIND, Order.OLDEST, limits.PAGE, after)
        for each in page:
            actor = _stored_decoder.decode(each.value)[0]
            found.append(Kept(actor, msgspec.structs.replace(each, value=b"")))
            after = (each.at, each.id)
        if len(page) < limits.PAGE:
            return found


@reads
def audit(self: Documents, limit: int, cursor: str | None = None) -> Flow[AuditPage]:
    checked_limit(limit)
    after = None if cursor is None else _place_of(cursor)
    # One more than fits on the page tells whether there is another.
    _, found = yield from self.list_documents(_KIND, Order.NEWEST, limit + 1, after)
    page = found[:limit]
    entries = [
        Audit(each.id, moment(each.at), *_stored_decoder.decode(each.value)) for each in page
    ]
    return AuditPage(entries, _cursor_after(page[-1]) if len(found) > limit else None)


def _cursor_after(entry: Document) -> str:
    """Return a cursor that holds the place itself: the entry may be gone when it is used."""
    return cursor_of(_CURSOR, entry.id) + f"{entry.at:0{_AT_DIGITS}x}"


def _place_of(cursor: str) -> Place:
    digits = cursor[-_AT_DIGITS:] if isinstance(cursor, str) else ""
    entry_id = item_of(_CURSOR, cursor[:-_AT_DIGITS] if digits else cursor)
    if entry_id is None or set(digits) - set("0123456789abcdef"):
        raise InvalidCursor
    return (int(digits, 16), entry_id)


def _detail(detail: Mapping[str, Any]) -> str:
    # Once there and back: what no reader of JSON would take (half a character, not a number) goes.
    text = json.dumps(detail, default=str, ensure_ascii=False).encode("utf-8", "replace")
    encoded = msgspec.json.encode(json.loads(text)).decode("utf-8")
    if len(encoded) > limits.AUDIT_DETAIL_CHARACTERS:
        cut = storable(encoded, limits.AUDIT_DETAIL_CHARACTERS // 3)  # quotes get longer in quotes
        encoded = msgspec.json.encode({"cut": cut}).decode("utf-8")
    return encoded
