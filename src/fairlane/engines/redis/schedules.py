"""schedules, put_schedule, drop_schedule, fire."""

from __future__ import annotations

import struct

from fairlane.core import limits
from fairlane.core.errors import InvalidSchedule
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.schedules import NewSchedule, Schedule, checked, schedule_of
from fairlane.engines.redis.context import Context, pairs
from fairlane.engines.redis.scripts import script

SCHEDULES = script("schedules")
PUT_SCHEDULE = script("put_schedule")
DROP_SCHEDULE = script("drop_schedule")
FIRE = script("fire")

# next_at, last_at, created_at, updated_at, version; then the definition
_HEAD = struct.Struct(">qqQQI")
_NEVER = -(2**63)


@reads
def schedules(self: Context) -> Flow[list[Schedule]]:
    stored = yield from self.call(SCHEDULES)
    return [_schedule(schedule_id, each) for schedule_id, each in sorted(pairs(stored))]


@writes
def put_schedule(self: Context, schedule: NewSchedule) -> Flow[Schedule]:
    checked(schedule)
    schedule_id = schedule.schedule_id.encode()
    stored = yield from self.call(
        PUT_SCHEDULE,
        limits.SCHEDULES,
        schedule_id,
        _time(schedule.next_at),
        _time(None),
        schedule.definition,
    )
    if stored == b"full":
        raise InvalidSchedule(
            f"No further schedule is accepted: {limits.SCHEDULES:,} exist. Drop some first."
        )
    return _schedule(schedule_id, stored)


@writes
def drop_schedule(self: Context, schedule_id: str) -> Flow[bool]:
    return bool((yield from self.call(DROP_SCHEDULE, schedule_id)))


@writes
def fire(self: Context, schedule_id: str, tick: int, next_at: int | None) -> Flow[bool]:
    return bool((yield from self.call(FIRE, schedule_id, _time(tick), _time(next_at))))


def _time(microseconds: int | None) -> bytes:
    return struct.pack(">q", _NEVER if microseconds is None else microseconds)


def _schedule(schedule_id: bytes, stored: bytes) -> Schedule:
    next_at, last_at, created_at, updated_at, version = _HEAD.unpack_from(stored)
    return schedule_of(
        schedule_id.decode(),
        stored[_HEAD.size :],
        None if next_at == _NEVER else next_at,
        None if last_at == _NEVER else last_at,
        created_at,
        updated_at,
        version,
    )
