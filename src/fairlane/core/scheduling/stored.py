"""Schedules as documents: a line with the standing, a line with the definition, the payload."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from fairlane.core import firing, limits
from fairlane.core import schedule_history as history
from fairlane.core import tick_counts as counting
from fairlane.core.documents import Document, Documents, Place
from fairlane.core.errors import BatchTooLarge, InvalidCursor, UnknownSchedule
from fairlane.core.firing import due_at
from fairlane.core.flow import Flow, Op
from fairlane.core.model import Accepted, NewTask, Task
from fairlane.core.recurrence import Recurrence
from fairlane.core.schedules import (
    Policy,
    Schedule,
    ScheduleRun,
    Standing,
    Template,
    is_schedule_id,
)
from fairlane.core.text import is_name, shown
from fairlane.core.tick_counts import TickCounts

KIND: Final = "schedule"
COUNTS: Final = "#ticks"
"""The document with the counts of all ticks. No schedule could have this name."""
OWNER: Final = "schedule_owner"
"""The kind of documents that say when an application declared its schedules last."""

_Said = tuple[Recurrence, Template, Policy, str]
_standing_decoder: Final = msgspec.json.Decoder(Standing)
_said_decoder: Final = msgspec.json.Decoder(_Said)
_encoder: Final = msgspec.json.Encoder()


class Scheduled(Documents, Protocol):
    """What an engine implements besides documents."""

    def submit_along(
        self,
        tasks: Sequence[NewTask],
        kind: str,
        puts: Sequence[Document],
        cancels: Sequence[str] = (),
    ) -> Flow[list[Accepted] | None]:
        """Store tasks, write documents and cancel tasks in one step: everything, or nothing.

        Answers what `submit` does, or None if a document has changed since it was read. `cancels`:
        the tasks that new ones replace. Those that have ended stay as they are. Raises what
        `submit` raises; then nothing is changed either.
        """

    def heads(self, task_ids: Sequence[str]) -> Op[list[Task | None]]: ...


def _value_of(schedule: Schedule) -> bytes:
    said = (schedule.rule, schedule.template, schedule.policy, schedule.note)
    return b"\n".join([_encoder.encode(schedule.standing), _encoder.encode(said), schedule.payload])


def schedule_of(stored: Document | None) -> Schedule | None:
    """Return a stored schedule; None if there is none, or a version that stored it otherwise."""
    if stored is None or stored.id == COUNTS:
        return None
    standing, _, rest = stored.value.partition(b"\n")
    said, _, payload = rest.partition(b"\n")
    try:
        rule, template, policy, note = _said_decoder.decode(said)
        return Schedule(
            schedule_id=stored.id,
            rule=rule,
            template=template,
            payload=payload,
            policy=policy,
            note=note,
            standing=_standing_decoder.decode(standing),
        )
    except msgspec.DecodeError:
        return None


def document_of(schedule: Schedule, stored: Document | None) -> Document:
    version = 0 if stored is None else stored.version
    return Document(schedule.schedule_id, _value_of(schedule), due_at(schedule), version=version)


def read(self: Documents, schedule_id: str) -> Flow[tuple[int, Document, Schedule]]:
    """Read a schedule to change it. Raises UnknownSchedule."""
    if not is_schedule_id(schedule_id):
        raise unknown(schedule_id)
    now, (stored,) = yield from self.read_documents(KIND, [schedule_id])
    (schedule,) = yield from history.joined(self, [schedule_of(stored)])
    if stored is None or schedule is None:
        raise unknown(schedule_id)
    return now, stored, schedule


def unknown(schedule_id: object) -> UnknownSchedule:
    """Return the error for a schedule that does not exist."""
    return UnknownSchedule(f"There is no schedule {shown(schedule_id)}.")


def place_of(cursor: str | None) -> Place | None:
    """Return where a page begins. Raises InvalidCursor."""
    if cursor is None:
        return None
    at, _, schedule_id = cursor.partition(":")
    if not re.fullmatch(r"-?[0-9]{1,18}", at, re.ASCII) or not (
        is_name(schedule_id) or schedule_id == COUNTS
    ):
        raise InvalidCursor
    return int(at), schedule_id


def checked_batch(items: Sequence[object]) -> None:
    """Raise BatchTooLarge if these are too many at once."""
    if len(items) > limits.SCHEDULE_PAGE:
        raise BatchTooLarge(
            f"At most {limits.SCHEDULE_PAGE} schedules are handled at once, not {len(items):,}."
        )


def counted(
    self: Documents, handled: Sequence[tuple[str, ScheduleRun]], times: Iterable[int] = ()
) -> Flow[list[Document]]:
    """Return the document of counts with these ticks, if there are any.

    `times`: when those were to be fired that are fired now. This is the last look at the store's
    clock before they are stored.
    """
    if not handled:
        return []
    now, (stored,) = yield from self.read_documents(KIND, [COUNTS])
    before = TickCounts() if stored is None else counting.decode(stored.value)
    value = counting.encode(before.counted(now, handled, [now - time for time in times]))
    version = 0 if stored is None else stored.version
    return [Document(COUNTS, value, firing.NEVER, version=version)]
