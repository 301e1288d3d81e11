"""Declaring schedules: what has not changed writes nothing, and a deployment moves no tick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fairlane.core import audit, encryption, firing, limits, sealing
from fairlane.core import schedule_history as history
from fairlane.core.documents import Document, Documents, Written, rewrites, write
from fairlane.core.errors import InvalidSchedule, ScheduleConflict
from fairlane.core.flow import Flow
from fairlane.core.priority import MICROSECONDS
from fairlane.core.schedules import NewSchedule, Schedule, Source, Standing, checked_owner
from fairlane.core.scheduling.stored import KIND, OWNER, checked_batch, document_of, schedule_of
from fairlane.core.scheduling.types import Handled, check_types

replace = msgspec.structs.replace


@rewrites
def put_schedules(
    self: Handled,
    schedules: Sequence[NewSchedule],
    *,
    owner: str | None = None,
    version: int | None = None,
    allow_unknown_type: bool = True,
) -> Flow[list[Schedule]]:
    checked_batch(schedules)
    checked_owner(owner)
    if any(not sealing.is_sealed(each.payload) for each in schedules):
        yield from encryption.refuse_plain(self)
    new = {each.schedule_id: each for each in schedules}
    if len(new) < len(schedules):
        raise InvalidSchedule("An id occurs twice in one batch: every schedule needs its own.")
    now, found = yield from self.read_documents(KIND, list(new))
    known = yield from history.joined(self, [schedule_of(each) for each in found])
    answers: list[Schedule] = []
    puts: list[Document] = []
    for each, stored, before in zip(new.values(), found, known, strict=True):
        if not _is_repeated(each, before, version, owner):
            check_version(each.schedule_id, before, version)
            _check_source(before, owner)
        after = _declared(each, before, now, owner)
        if after is not before:
            puts.append(document_of(after, stored))
        answers.append(after)
    if owner is None and not allow_unknown_type:
        yield from check_types(self, list(new.values()), known)
    if puts:
        # One place more than schedules: the counts.
        written = yield from write(self, KIND, puts, most=limits.SCHEDULES + 1)
        if written is Written.FULL:
            raise InvalidSchedule(
                f"At most {limits.SCHEDULES:,} schedules are kept: drop one that is not needed."
            )
    if owner is not None:
        yield from _note_owner(self, owner, now)
        yield from audit.record(self, _taken_over(known, owner)).flow()
    return answers


def _taken_over(before: Iterable[Schedule | None], owner: str) -> list[audit.NewAudit]:
    """Return entries for the audit log: which schedules of other applications this one has now."""
    return [
        audit.NewAudit.of(
            f"code:{owner}",
            audit.Action.TAKE_SCHEDULE,
            each.schedule_id,
            {"owner": owner, "before": each.standing.owner},
        )
        for each in before
        if each is not None and each.standing.owner != owner
    ]


def _is_repeated(
    new: NewSchedule, before: Schedule | None, version: int | None, owner: str | None
) -> bool:
    """Return whether a change was made before: its answer was lost, and it is sent again."""
    if before is None or version is None:
        return False
    found = before.standing
    made = (found.fingerprint, found.version, found.owner)
    return made == (new.fingerprint, version + 1, owner or "")


def check_version(schedule_id: str, before: Schedule | None, version: int | None) -> None:
    """Raise ScheduleConflict if a caller knows another version."""
    found = 0 if before is None else before.standing.version
    if version is not None and version != found:
        raise ScheduleConflict(
            f"The schedule {schedule_id} has version {found}, not {version}: it was changed "
            "meanwhile. Read it again, and repeat the change if it still makes sense."
        )


def _check_source(before: Schedule | None, owner: str | None) -> None:
    """Raise ScheduleConflict if code would replace what was made by hand, or the other way."""
    if before is None:
        return
    schedule_id, source = before.schedule_id, before.standing.source
    if owner is None and source is Source.CODE:
        raise ScheduleConflict(
            f"The schedule {schedule_id} is declared by the code of {before.standing.owner}, "
            "which would undo the change: change it there. It can be paused, resumed and run."
        )
    if owner is not None and source is Source.API:
        raise ScheduleConflict(
            f"The schedule {schedule_id} was made by hand, and the code of {owner} does not take "
            f"it over. Delete it (fairlane schedule delete {schedule_id}), or give the one in the "
            "code another id."
        )


def _declared(new: NewSchedule, before: Schedule | None, now: int, owner: str | None) -> Schedule:
    """Return a schedule as it stands after it was declared: `before`, if nothing changes."""
    about = (Source.API if owner is None else Source.CODE, owner or "")
    source, name = about
    if before is None:
        standing = Standing(
            since=now,
            left=new.policy.count,
            source=source,
            owner=name,
            seen_at=now,
            created_at=now,
            updated_at=now,
        )
        return _checked_first(_with(new, standing))
    old = before.standing
    if (old.fingerprint, old.source, old.owner) == (new.fingerprint, *about):
        seen = now - old.seen_at < limits.SCHEDULE_SEEN_SECONDS * MICROSECONDS
        if owner is None or seen:
            return before
        return replace(before, standing=replace(old, seen_at=now))
    standing = replace(
        old,
        source=source,
        owner=name,
        seen_at=now,
        updated_at=now,
        version=old.version + 1,
        failures=0,
        unjudged=(),
    )
    if new.policy.count != before.policy.count:
        standing = replace(standing, left=new.policy.count)
    if _moments(new) != _moments(before):
        standing = replace(standing, since=now, catch_up=None, catch_up_until=0)
    return _checked_first(_with(new, standing))


def _moments(schedule: NewSchedule | Schedule) -> tuple[object, ...]:
    """Return what decides when it fires. A change of anything else moves no tick."""
    return schedule.rule, schedule.policy.starts_at, schedule.policy.ends_at


def _with(new: NewSchedule, standing: Standing) -> Schedule:
    return firing.align(
        Schedule(
            schedule_id=new.schedule_id,
            rule=new.rule,
            template=new.template,
            payload=new.payload,
            policy=new.policy,
            note=new.note,
            standing=replace(standing, fingerprint=new.fingerprint),
        )
    )


def _checked_first(schedule: Schedule) -> Schedule:
    if schedule.standing.tick is None and schedule.standing.left != 0:
        raise InvalidSchedule(
            f"The schedule {schedule.schedule_id} would never fire: it ends before its next tick. "
            "Choose a later ends_at."
        )
    return schedule


def _note_owner(self: Documents, owner: str, now: int) -> Flow[None]:
    """Note that an application declares its schedules: those that it left out can be dropped."""
    _, (stored,) = yield from self.read_documents(OWNER, [owner])
    if stored is None or now - stored.at >= limits.SCHEDULE_SEEN_SECONDS * MICROSECONDS:
        version = 0 if stored is None else stored.version
        life = int(2 * limits.SCHEDULE_SECONDS * MICROSECONDS)
        yield from write(self, OWNER, [Document(owner, b"", now, now + life, version=version)])
