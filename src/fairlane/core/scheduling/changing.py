"""What operators change: drop, pause, resume."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.core import firing
from fairlane.core import schedule_history as history
from fairlane.core.documents import Document, Documents, rewrites, write
from fairlane.core.errors import InvalidSchedule
from fairlane.core.flow import Flow
from fairlane.core.quotas import Made, give_back
from fairlane.core.schedules import Missed, Pause, Schedule, checked_note, is_schedule_id
from fairlane.core.scheduling.declaring import check_version
from fairlane.core.scheduling.stored import KIND, counted, document_of, read, schedule_of

replace = msgspec.structs.replace


@rewrites
def drop_schedule(self: Documents, schedule_id: str, *, version: int | None = None) -> Flow[bool]:
    if not is_schedule_id(schedule_id):
        return False
    _, (stored,) = yield from self.read_documents(KIND, [schedule_id])
    if stored is None:
        return False
    if version is not None:
        check_version(schedule_id, schedule_of(stored), version)
    yield from give_back(self, Made.SCHEDULES, schedule_id)
    yield from history.drop(self, [schedule_id])
    yield from write(self, KIND, [], [stored])
    return True


@rewrites
def pause_schedule(
    self: Documents, schedule_id: str, *, note: str = "", until: int | None = None
) -> Flow[Schedule]:
    checked_note(note)
    now, stored, schedule = yield from read(self, schedule_id)
    if until is not None and until <= now:
        raise InvalidSchedule("until lies in the past: a pause ends later than now.")
    standing = schedule.standing
    since = now if standing.pause is None else standing.pause.since
    pause = Pause(since, until, note)
    if standing.pause == pause:
        return schedule
    return (yield from _change(self, schedule, stored, now, pause=pause))


@rewrites
def resume_schedule(
    self: Documents, schedule_id: str, *, missed: Missed = Missed.SKIP
) -> Flow[Schedule]:
    now, stored, schedule = yield from read(self, schedule_id)
    if schedule.standing.pause is None:
        return schedule
    resumed, runs = firing.resume(schedule, now, missed)
    counts = yield from counted(self, [(schedule_id, run) for run in runs])
    return (yield from _change(self, resumed, stored, now, counts))


def _change(
    self: Documents,
    schedule: Schedule,
    stored: Document,
    now: int,
    counts: Sequence[Document] = (),
    **changes: object,
) -> Flow[Schedule]:
    """Write a schedule that somebody has changed."""
    version = schedule.standing.version + 1
    standing = replace(schedule.standing, updated_at=now, version=version, **changes)
    changed = replace(schedule, standing=standing)
    yield from write(self, KIND, [document_of(changed, stored), *counts])
    return changed
