"""schedules, put_schedule, drop_schedule, fire: what is to be submitted again and again."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.errors import InvalidSchedule
from fairlane.core.flow import Flow, reads, transacts, writes
from fairlane.core.schedules import NewSchedule, Schedule, checked, schedule_of
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("schedules")


@reads
def schedules(self: Context) -> Flow[list[Schedule]]:
    rows = yield Query(SQL["schedules"])
    return sorted((schedule_of(*row) for row in rows), key=lambda schedule: schedule.schedule_id)


@transacts
def put_schedule(self: Context, schedule: NewSchedule) -> Flow[Schedule]:
    checked(schedule)
    yield Query(SQL["lock"])
    ((others,),) = yield Query(SQL["count_others"], (schedule.schedule_id,))
    if others >= limits.SCHEDULES:
        raise InvalidSchedule(
            f"At most {limits.SCHEDULES:,} schedules are kept: drop one that is no longer needed."
        )
    values = (schedule.schedule_id, schedule.definition, schedule.next_at)
    (row,) = yield Query(SQL["put"], values)
    return schedule_of(*row)


@writes
def drop_schedule(self: Context, schedule_id: str) -> Flow[bool]:
    return bool((yield Query(SQL["drop"], (schedule_id,))))


@writes
def fire(self: Context, schedule_id: str, tick: int, next_at: int | None) -> Flow[bool]:
    return bool((yield Query(SQL["fire"], (schedule_id, tick, next_at))))
