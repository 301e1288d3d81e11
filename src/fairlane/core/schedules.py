"""Schedules as stores keep them: a definition nobody but the scheduler reads, and a next tick.

A tick is fired by whoever gets to move the schedule on from it (`Control.fire`), and the task it
submits carries an idempotency key made from schedule and tick: one firing per tick, however many
schedulers run and wherever one of them dies.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from fairlane.core import encryption, limits, sealing
from fairlane.core.documents import Document, Documents, Written, every, rewrites, write
from fairlane.core.errors import InvalidSchedule
from fairlane.core.flow import Flow, reads
from fairlane.core.model import moment, moment_or_none
from fairlane.core.text import NAME_RULE, is_name, shown


class NewSchedule(msgspec.Struct, frozen=True):
    """A schedule to be stored. `definition` is JSON; `next_at` (microseconds) is None when it is
    not to fire."""

    schedule_id: str
    definition: bytes
    next_at: int | None = None


class Schedule(msgspec.Struct, frozen=True):
    """A schedule as it stands. `version` grows with every change but those by firing."""

    schedule_id: str
    definition: bytes
    next_at: datetime | None
    last_at: datetime | None
    created_at: datetime
    updated_at: datetime
    version: int


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """The first line of its document; the rest is the definition. `at` is when it was made."""

    next_at: int | None
    last_at: int | None
    updated_at: int
    version: int


_head_decoder = msgspec.json.Decoder(_Head)


def _parts_of(stored: Document) -> tuple[_Head, bytes]:
    head, _, definition = stored.value.partition(b"\n")
    return _head_decoder.decode(head), definition


def _value_of(head: _Head, definition: bytes) -> bytes:
    return msgspec.json.encode(head) + b"\n" + definition


def _schedule_of(stored: Document) -> Schedule:
    """Return a stored schedule as a user sees it."""
    head, definition = _parts_of(stored)
    return Schedule(
        schedule_id=stored.id,
        definition=definition,
        next_at=moment_or_none(head.next_at),
        last_at=moment_or_none(head.last_at),
        created_at=moment(stored.at),
        updated_at=moment(head.updated_at),
        version=head.version,
    )


def key_of(schedule_id: str, tick: int) -> str:
    """Return the idempotency key of the task that a tick submits."""
    return f"schedule:{schedule_id}:{tick}"


def checked(schedule: NewSchedule) -> NewSchedule:
    """Return the schedule, if it can be stored."""
    if not is_name(schedule.schedule_id) or len(schedule.schedule_id) > _ID_LENGTH:
        raise InvalidSchedule(
            f"A schedule's id has {NAME_RULE}, and at most {_ID_LENGTH} of them. "
            f"Got {shown(schedule.schedule_id)}."
        )
    if len(schedule.definition) > limits.SCHEDULE_BYTES:
        raise InvalidSchedule(
            f"A schedule takes at most {limits.SCHEDULE_BYTES:,} bytes, not "
            f"{len(schedule.definition):,}."
        )
    return schedule


# Its id has to fit into an idempotency key, beside a tick.
_ID_LENGTH = 200


# Operations, see `store`.

_KIND = "schedule"

replace = msgspec.structs.replace


@reads
def schedules(self: Documents) -> Flow[list[Schedule]]:
    _, found = yield from every(self, _KIND)
    return sorted(map(_schedule_of, found), key=lambda schedule: schedule.schedule_id)


@rewrites
def put_schedule(self: Documents, schedule: NewSchedule) -> Flow[Schedule]:
    checked(schedule)
    if not sealing.is_sealed(schedule.definition):
        yield from encryption.refuse_plain(self)
    now, (stored,) = yield from self.read_documents(_KIND, [schedule.schedule_id])
    if stored is None:
        stored = Document(schedule.schedule_id, b"", now)
        head = _Head(schedule.next_at, None, now, 1)
    else:
        old, _ = _parts_of(stored)
        head = _Head(schedule.next_at, old.last_at, now, old.version + 1)
    new = replace(stored, value=_value_of(head, schedule.definition))
    if (yield from write(self, _KIND, [new], most=limits.SCHEDULES)) is Written.FULL:
        raise InvalidSchedule(
            f"At most {limits.SCHEDULES:,} schedules are kept: drop one that is no longer needed."
        )
    return _schedule_of(new)


@rewrites
def drop_schedule(self: Documents, schedule_id: str) -> Flow[bool]:
    _, (stored,) = yield from self.read_documents(_KIND, [schedule_id])
    if stored is not None:
        yield from write(self, _KIND, [], [stored])
    return stored is not None


@rewrites
def fire(self: Documents, schedule_id: str, tick: int, next_at: int | None) -> Flow[bool]:
    _, (stored,) = yield from self.read_documents(_KIND, [schedule_id])
    if stored is None:
        return False
    head, definition = _parts_of(stored)
    if head.next_at != tick:
        return False
    moved = replace(head, next_at=next_at, last_at=tick)
    yield from write(self, _KIND, [replace(stored, value=_value_of(moved, definition))])
    return True
