"""Tasks of a schedule besides its ticks: run it now, backfill it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.core import firing, limits
from fairlane.core.documents import Document, Overtaken, rewrites
from fairlane.core.errors import InvalidSchedule
from fairlane.core.flow import Flow
from fairlane.core.ids import checked as checked_task_id
from fairlane.core.ids import numbered
from fairlane.core.model import NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.recurrence import ticks_between
from fairlane.core.schedules import Outcome, Overlap, Schedule, ScheduleRun, most_at_once
from fairlane.core.scheduling.stored import KIND, Scheduled, counted, document_of, read

replace = msgspec.structs.replace


@rewrites
def run_schedule(
    self: Scheduled, schedule_id: str, task_id: str, *, tick: int | None = None
) -> Flow[str]:
    checked_task_id(task_id)
    now, stored, schedule = yield from read(self, schedule_id)
    run = ScheduleRun(now if tick is None else tick, Outcome.MANUAL, task_id)
    task = firing.task_of(schedule, task_id, run.tick, chosen=True)
    yield from _submit_besides(self, stored, schedule, [task], run)
    return task_id


@rewrites
def backfill_schedule(
    self: Scheduled,
    schedule_id: str,
    task_id: str,
    since: int,
    until: int,
    *,
    overlap: Overlap | None = None,
) -> Flow[list[str]]:
    checked_task_id(task_id)
    now, stored, schedule = yield from read(self, schedule_id)
    ticks = backfilled(schedule, since, until, now)
    parent: str | None = None
    tasks: list[NewTask] = []
    for number, tick in enumerate(ticks):
        task = firing.task_of(schedule, numbered(task_id, number), tick, parent, chosen=True)
        tasks.append(task)
        if (overlap or schedule.policy.overlap) is not Overlap.ALLOW:
            parent = task.task_id
    if tasks:
        newest = tasks[-1].task_id
        run = ScheduleRun(ticks[-1], Outcome.MANUAL, newest, len(ticks), "backfill")
        yield from _submit_besides(self, stored, schedule, tasks, run)
    return [task.task_id for task in tasks]


def backfilled(schedule: Schedule, since: int, until: int, now: int | None = None) -> list[int]:
    """Return the ticks from a time to before another. Raises InvalidSchedule for too many, and for
    ticks after now."""
    if min(until, firing.NEVER) - since > limits.BACKFILL_SECONDS * MICROSECONDS:
        raise InvalidSchedule("A backfill covers at most 100 years: backfill it in parts.")
    ticks = ticks_between(schedule.rule, since, until, limits.SUBMIT_BATCH + 1)
    if len(ticks) > limits.SUBMIT_BATCH:
        raise InvalidSchedule(
            f"More than {limits.SUBMIT_BATCH:,} ticks lie in this time: backfill it in parts."
        )
    most = most_at_once(schedule.payload)
    if len(ticks) > most:
        raise InvalidSchedule(
            f"With this payload at most {most:,} tasks are submitted at once, and {len(ticks):,} "
            "ticks lie in this time: backfill it in parts."
        )
    if now is not None and ticks and ticks[-1] > now:
        raise InvalidSchedule(
            "Ticks of this time are still to come, and are fired then: backfill up to now."
        )
    return ticks


def _submit_besides(
    self: Scheduled,
    stored: Document,
    schedule: Schedule,
    tasks: Sequence[NewTask],
    run: ScheduleRun,
) -> Flow[None]:
    """Submit tasks besides the ticks of a schedule, once however often it is repeated."""
    if any(each.task_id == run.task_id for each in schedule.standing.runs):
        return
    changed = replace(schedule, standing=firing.recorded(schedule.standing, [run]))
    counts = yield from counted(self, [(schedule.schedule_id, run)])
    puts = [document_of(changed, stored), *counts]
    if (yield from self.submit_along(tasks, KIND, puts)) is None:
        raise Overtaken
