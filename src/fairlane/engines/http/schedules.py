"""put, list, drop, pause, resume, run, backfill: schedules of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fairlane.core import limits
from fairlane.core.errors import NotAFairlaneStore, NotSupported, UnknownSchedule
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.ids import checked as checked_task_id
from fairlane.core.schedules import (
    Missed,
    NewSchedule,
    Overlap,
    Schedule,
    checked_note,
    checked_owner,
    is_schedule_id,
)
from fairlane.core.scheduling import SchedulePage, checked_batch, unknown
from fairlane.engines.http.calls import NO_CONTENT, Call, decode, get, part, post
from fairlane.engines.http.decode_schedules import schedule_of
from fairlane.engines.http.errors import code_of, error_of
from fairlane.engines.http.workers import WORKERS
from fairlane.http_client import Reply
from fairlane.wire.schedule_changes import BackfillReply, RunReply
from fairlane.wire.schedule_views import ScheduleList, SchedulesReply, ScheduleView
from fairlane.wire.schedules import request_of
from fairlane.wire.times import iso_of, iso_of_or_none

SCHEDULES: Final = "/api/v1/schedules"
_STORE: Final = "/internal/store/schedules"


@writes
def put_schedules(
    _: object,
    schedules: Sequence[NewSchedule],
    *,
    owner: str | None = None,
    version: int | None = None,
    allow_unknown_type: bool = True,
) -> Flow[list[Schedule]]:
    checked_batch(schedules)
    sent = [request_of(each, allow_unknown_type=allow_unknown_type) for each in schedules]
    body: dict[str, Any] = {"schedules": sent, "version": version}
    path = _STORE
    if checked_owner(owner) is not None:
        body["owner"] = owner
        path = f"{WORKERS}/schedules"
    try:
        answer = yield from post(path, body, SchedulesReply)
    except NotAFairlaneStore:
        raise NotSupported("The server is too old to keep schedules.") from None
    return [schedule_of(each) for each in answer.schedules]


@reads
def schedules(_: object, schedule_ids: Sequence[str]) -> Flow[list[Schedule | None]]:
    checked_batch(schedule_ids)
    found: list[Schedule | None] = []
    for each in schedule_ids:
        found += [(yield from _find(each))]
    return found


def _find(schedule_id: str) -> Flow[Schedule | None]:
    if not is_schedule_id(schedule_id):
        return None
    reply: Reply = yield Call("GET", f"{SCHEDULES}/{part(schedule_id)}")
    if code_of(reply) == UnknownSchedule.code:
        return None
    return schedule_of(decode(reply, ScheduleView))


@reads
def schedule_page(
    _: object, cursor: str | None = None, limit: int = limits.SCHEDULE_PAGE
) -> Flow[SchedulePage]:
    query: dict[str, Any] = {"limit": limit, "runs": limits.SCHEDULE_RUNS}
    if cursor is not None:
        query["cursor"] = cursor
    answer = yield from get(SCHEDULES, ScheduleList, query)
    return SchedulePage([schedule_of(each) for each in answer.schedules], answer.next_cursor)


@writes
def drop_schedule(_: object, schedule_id: str, *, version: int | None = None) -> Flow[bool]:
    if not is_schedule_id(schedule_id):
        return False
    headers = () if version is None else (("if-match", f'"{version}"'),)
    reply: Reply = yield Call("DELETE", f"{SCHEDULES}/{part(schedule_id)}", headers=headers)
    if reply.status == NO_CONTENT:
        return True
    error = error_of(reply)
    if isinstance(error, UnknownSchedule):
        return False
    raise error


@writes
def pause_schedule(
    _: object, schedule_id: str, *, note: str = "", until: int | None = None
) -> Flow[Schedule]:
    checked_note(note)
    body = {"note": note, "until": iso_of_or_none(until)}
    return schedule_of((yield from post(_path(schedule_id, "pause"), body, ScheduleView)))


@writes
def resume_schedule(_: object, schedule_id: str, *, missed: Missed = Missed.SKIP) -> Flow[Schedule]:
    body = {"missed": missed}
    return schedule_of((yield from post(_path(schedule_id, "resume"), body, ScheduleView)))


@writes
def run_schedule(
    _: object, schedule_id: str, task_id: str, *, tick: int | None = None
) -> Flow[str]:
    body = {"task_id": checked_task_id(task_id), "at": iso_of_or_none(tick)}
    return (yield from post(_path(schedule_id, "run"), body, RunReply)).task_id


@writes
def backfill_schedule(
    _: object,
    schedule_id: str,
    task_id: str,
    since: int,
    until: int,
    *,
    overlap: Overlap | None = None,
) -> Flow[list[str]]:
    body = {
        "task_id": checked_task_id(task_id),
        "since": iso_of(since),
        "until": iso_of(until),
        "overlap": overlap,
    }
    answer = yield from post(_path(schedule_id, "backfill"), body, BackfillReply)
    return list(answer.task_ids)


def _path(schedule_id: str, verb: str) -> str:
    """Return the path of a call about a schedule. Raises UnknownSchedule for what cannot be one."""
    if not is_schedule_id(schedule_id):
        raise unknown(schedule_id)
    return f"{SCHEDULES}/{part(schedule_id)}/{verb}"
