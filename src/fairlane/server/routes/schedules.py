"""`/api/v1/schedules`: tasks that are submitted again and again, by a rule."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from fairlane.core import limits
from fairlane.core.audit import Action
from fairlane.core.errors import ScheduleConflict
from fairlane.core.ids import new_id
from fairlane.core.quotas import Made
from fairlane.core.recurrence import preview
from fairlane.core.retry import check_pause
from fairlane.core.schedules import NewSchedule, Schedule, checked_time
from fairlane.core.scheduling import backfilled, checked_batch, unknown
from fairlane.core.tokens import Scope
from fairlane.server.errors import InvalidRequest
from fairlane.server.operations import ADMIN, READ, SUBMIT, WORKER, Call, Operation
from fairlane.server.quotas import take_quota
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.server.tasks import template_of
from fairlane.wire.schedule_changes import (
    BackfillReply,
    BackfillRequest,
    PauseRequest,
    PreviewRequest,
    PreviewView,
    ResumeRequest,
    RunReply,
    RunRequest,
)
from fairlane.wire.schedule_views import (
    ScheduleList,
    ScheduleQuery,
    SchedulesReply,
    ScheduleView,
    encode_listed,
    encode_schedule,
    encode_ticks,
)
from fairlane.wire.schedules import Declarations, ScheduleBatch, SchedulePatch, ScheduleRequest

PATH: Final = "/api/v1/schedules"

_ETAG: Final = re.compile(rb'"([0-9]{1,15})"')


async def list_schedules(services: Services, call: Call[None, ScheduleQuery]) -> Response:
    """List schedules, those first that are due next. One that is fired meanwhile may come twice."""
    query = call.query
    page = await services.run(services.ops.schedule_page(query.cursor, query.limit))
    # In a thread, like every search for ticks that can take long: a rule may fire once in 28 years.
    shown = await asyncio.to_thread(encode_listed, page.schedules, query.runs)
    return Response(ScheduleList(shown, page.next_cursor))


async def create_schedule(services: Services, call: Call[ScheduleRequest, None]) -> Response:
    """Create a schedule. It goes on from now: its first tick is the next one."""
    new = call.body.schedule(await template_of(services, call.body.defined_type))
    allow = call.body.allow_unknown_type is True
    op = services.ops.put_schedules([new], version=0, allow_unknown_type=allow)
    try:
        (created,) = await services.run(op)
    except ScheduleConflict:
        raise ScheduleConflict(
            f"There is a schedule {new.schedule_id} already: change that one, or use another id."
        ) from None
    return _shown(created, 201)


async def get_schedule(services: Services, call: Call[None, None]) -> Response:
    """Read a schedule, with its next 5 ticks and its last 100 runs."""
    return _shown(await _find(services, call))


async def patch_schedule(services: Services, call: Call[SchedulePatch, None]) -> Response:
    """Change a schedule; what is left out stays. If the rule changes, it goes on from now; a change
    of anything else moves no tick. With an `If-Match` that is not its ETag, nothing is changed
    (409), nor if code declares it."""
    version = _version_of(call)
    found = await _find(services, call)
    new = call.body.applied(found, await template_of(services, call.body.defined_type))
    wanted = found.standing.version if version is None else version
    allow = call.body.allow_unknown_type is True
    op = services.ops.put_schedules([new], version=wanted, allow_unknown_type=allow)
    (changed,) = await services.run(op)
    return _shown(changed)


async def delete_schedule(services: Services, call: Call[None, None]) -> Response:
    """Delete a schedule. Its tasks stay. With an `If-Match` that is not its ETag, nothing is
    changed (409)."""
    op = services.ops.drop_schedule(_id_of(call), version=_version_of(call))
    if not await services.run(op):
        raise unknown(_id_of(call))
    return Response(status=204)


async def pause(services: Services, call: Call[PauseRequest, None]) -> Response:
    """Pause a schedule, until a time or until it is resumed. Ticks of that time are not fired."""
    request = call.body
    until = None if request.until is None else checked_time("until", request.until)
    op = services.ops.pause_schedule(_id_of(call), note=request.note, until=until)
    return _shown(await services.run(op))


async def resume(services: Services, call: Call[ResumeRequest, None]) -> Response:
    """Resume a schedule. `missed` says what becomes of the ticks of the pause."""
    op = services.ops.resume_schedule(_id_of(call), missed=call.body.missed)
    return _shown(await services.run(op))


async def run(services: Services, call: Call[RunRequest, None]) -> Response:
    """Submit a task of a schedule now, besides its ticks."""
    request = call.body
    tick = None if request.at is None else checked_time("at", request.at)
    task_id = new_id() if request.task_id is None else request.task_id
    op = services.ops.run_schedule(_id_of(call), task_id, tick=tick)
    return Response(RunReply(await services.run(op)), 201)


async def backfill(services: Services, call: Call[BackfillRequest, None]) -> Response:
    """Submit the tasks of ticks of the past again, or only count them. Unless they may overlap,
    each waits for the one before. Ticks to come are refused (422)."""
    request, schedule_id = call.body, _id_of(call)
    since, until = checked_time("since", request.since), checked_time("until", request.until)
    if request.dry_run:
        now = (await services.run(services.ops.facts())).now
        ticks = backfilled(await _find(services, call), since, until, now)
        return Response(BackfillReply(len(ticks), ()), changed=False)
    task_id = new_id() if request.task_id is None else request.task_id
    op = services.ops.backfill_schedule(schedule_id, task_id, since, until, overlap=request.overlap)
    task_ids = await services.run(op)
    return Response(BackfillReply(len(task_ids), tuple(task_ids)))


async def preview_rule(services: Services, call: Call[PreviewRequest, None]) -> Response:  # noqa: ARG001
    """Return a rule in words and its next ticks, with a note where the clock is set."""
    request = call.body
    rule = request.rule()
    after = datetime.now(UTC) if request.after is None else request.after
    ticks = await asyncio.to_thread(preview, rule, checked_time("after", after), request.count)
    return Response(PreviewView(rule.in_words(), encode_ticks(ticks)))


async def put_schedules(services: Services, call: Call[ScheduleBatch, None]) -> Response:
    """Create or change up to 100 schedules, all or none. One that is the same stays as it is."""
    new = await _all_of(services, call.body)
    allow = call.body.allow_unknown_type
    op = services.ops.put_schedules(new, version=call.body.version, allow_unknown_type=allow)
    found = await services.run(op)
    return Response(_reply(found))


async def declare(services: Services, call: Call[Declarations, None]) -> Response:
    """Declare the schedules of an application: a worker does so when it starts, and every hour. One
    that is the same stays as it is. One that was made over the API stays, too (409). It takes the
    scope `submit`, because schedules submit tasks."""
    batch = call.body
    new = await _all_of(services, batch)
    checked_batch(new)
    if Scope.ADMIN not in call.identity.scopes:
        for each in new:
            check_pause(each.template.spec.retry, each.template.max_retries)
    ids = [each.schedule_id for each in new]
    await take_quota(services, call.identity, Made.SCHEDULES, ids)
    before = await services.run(services.ops.schedules(ids))
    op = services.ops.put_schedules(new, owner=batch.owner, version=batch.version)
    found = await services.run(op)
    return Response(_reply(found), changed=_versions(before) != _versions(found))


async def _all_of(services: Services, batch: ScheduleBatch) -> list[NewSchedule]:
    return [
        each.schedule(await template_of(services, each.defined_type)) for each in batch.schedules
    ]


def _versions(schedules: Sequence[Schedule | None]) -> list[int]:
    return [0 if each is None else each.standing.version for each in schedules]


def _reply(schedules: Sequence[Schedule]) -> SchedulesReply:
    return SchedulesReply(encode_listed(schedules, limits.SCHEDULE_RUNS))


def _id_of(call: Call[Any, None]) -> str:
    return call.path["schedule_id"]


async def _find(services: Services, call: Call[Any, None]) -> Schedule:
    (found,) = await services.run(services.ops.schedules([_id_of(call)]))
    if found is None:
        raise unknown(_id_of(call))
    return found


def _version_of(call: Call[Any, None]) -> int | None:
    """Return the version that the schedule must have; None: any."""
    given = call.headers.get(b"if-match")
    if given is None or given.strip() == b"*":
        return None
    found = _ETAG.fullmatch(given.strip())
    if found is None:
        raise InvalidRequest('If-Match takes the ETag of a schedule, such as "3", or *.')
    return int(found[1])


def _shown(schedule: Schedule, status: int = 200) -> Response:
    etag = b'"%d"' % schedule.standing.version
    return Response(encode_schedule(schedule), status, ((b"etag", etag),))


def _change(method: str, path: str, handler: Any, action: Action, **more: Any) -> Operation:
    more = {"returns": ScheduleView, **more}
    return Operation(method, f"{PATH}{path}", handler, ADMIN, action=action, **more)


OPERATIONS: Final = [
    Operation("GET", PATH, list_schedules, READ, query=ScheduleQuery, returns=ScheduleList),
    _change("POST", "", create_schedule, Action.PUT_SCHEDULE, body=ScheduleRequest, status=201),
    # Before the paths that take any id: a schedule that is called so can only be listed.
    Operation(
        "POST",
        f"{PATH}/preview",
        preview_rule,
        READ,
        body=PreviewRequest,
        returns=PreviewView,
    ),
    Operation("GET", f"{PATH}/{{schedule_id}}", get_schedule, READ, returns=ScheduleView),
    _change("PATCH", "/{schedule_id}", patch_schedule, Action.PUT_SCHEDULE, body=SchedulePatch),
    _change(
        "DELETE", "/{schedule_id}", delete_schedule, Action.DROP_SCHEDULE, returns=None, status=204
    ),
    _change(
        "POST",
        "/{schedule_id}/pause",
        pause,
        Action.PAUSE_SCHEDULE,
        body=PauseRequest,
        optional_body=True,
    ),
    _change(
        "POST",
        "/{schedule_id}/resume",
        resume,
        Action.RESUME_SCHEDULE,
        body=ResumeRequest,
        optional_body=True,
    ),
    _change(
        "POST",
        "/{schedule_id}/run",
        run,
        Action.RUN_SCHEDULE,
        body=RunRequest,
        optional_body=True,
        returns=RunReply,
        status=201,
    ),
    _change(
        "POST",
        "/{schedule_id}/backfill",
        backfill,
        Action.BACKFILL_SCHEDULE,
        body=BackfillRequest,
        returns=BackfillReply,
    ),
    Operation(
        "POST",
        "/internal/store/schedules",
        put_schedules,
        ADMIN,
        body=ScheduleBatch,
        returns=SchedulesReply,
        action=Action.PUT_SCHEDULE,
    ),
    Operation(
        "POST",
        "/internal/workers/schedules",
        declare,
        WORKER,
        besides=SUBMIT,
        body=Declarations,
        returns=SchedulesReply,
        action=Action.PUT_SCHEDULE,
    ),
]
