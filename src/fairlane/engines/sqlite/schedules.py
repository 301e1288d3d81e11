"""schedules, put_schedule, drop_schedule, fire: what is submitted again and again."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.errors import InvalidSchedule
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.schedules import NewSchedule, Schedule, checked, schedule_of
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import Context

SQL = statements(__package__, "schedules")


@reads
def schedules(self: Context) -> Flow[list[Schedule]]:
    return [schedule_of(*row) for row in (yield Execute(SQL["schedules"]))]


@writes
def put_schedule(self: Context, schedule: NewSchedule) -> Flow[Schedule]:
    checked(schedule)
    ((full,),) = yield Execute(SQL["full"], (schedule.schedule_id, limits.SCHEDULES))
    if full:
        raise InvalidSchedule(f"There are {limits.SCHEDULES:,} schedules: drop one first.")
    values = (schedule.schedule_id, schedule.definition, schedule.next_at, self.clock())
    (row,) = yield Execute(SQL["put"], values)
    return schedule_of(*row)


@writes
def drop_schedule(self: Context, schedule_id: str) -> Flow[bool]:
    return bool((yield Execute(SQL["drop"], (schedule_id,))).rowcount)


@writes
def fire(self: Context, schedule_id: str, tick: int, next_at: int | None) -> Flow[bool]:
    return bool((yield Execute(SQL["fire"], (next_at, tick, schedule_id))).rowcount)
