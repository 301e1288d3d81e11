"""`app.schedules`: the schedules in an application's store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar, Unpack

import msgspec

from fairlane.client.schedule_definitions import ScheduleOptions, preview_of, schedule_of
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.durations import Seconds
from fairlane.core.errors import InvalidLimit
from fairlane.core.flow import Flow, Op, perform, perform_async
from fairlane.core.ids import new_id
from fairlane.core.recurrence import rule_of
from fairlane.core.schedules import (
    Missed,
    NewSchedule,
    Overlap,
    checked_missed,
    checked_note,
    checked_overlap,
    checked_time,
)
from fairlane.core.schedules import Schedule as StoredSchedule
from fairlane.core.scheduling import SchedulePage
from fairlane.core.store import Operations
from fairlane.core.text import shown
from fairlane.runtime.calls import Handle, TaskSource
from fairlane.runtime.schedules import Preview, Schedule, ScheduleList, readable, readable_page
from fairlane.runtime.shapes import Prepared

T = TypeVar("T")

MOST = limits.SCHEDULE_PAGE


class SchedulingApplication(TaskSource, Protocol):
    """The part of the application that its schedules need."""

    @property
    def backend(self) -> Backend: ...
    async def run(self, op: Op[T]) -> T: ...
    def run_sync(self, op: Op[T]) -> T: ...


class InPlace(msgspec.Struct, frozen=True):
    """Runs what was submitted at once, if the application is `inline`."""

    run: Callable[[], Awaitable[None]]
    run_sync: Callable[[], None]


class Schedules:
    """The schedules in the store of an application: `app.schedules`.

    A schedule submits a task whenever its rule says so: a cron expression in a time zone, or an
    interval. Those that code declares (see `Fairlane.cron`) can be paused, resumed and run here,
    and are changed in the code. A call for a schedule that does not exist raises UnknownSchedule.
    """

    def __init__(
        self,
        app: SchedulingApplication,
        check: Callable[[Prepared[Any]], None],
        in_place: InPlace,
    ) -> None:
        self._app = app
        self._check = check
        self._in_place = in_place

    async def put(
        self,
        schedule_id: str,
        call: Prepared[Any],
        *,
        cron: str | None = None,
        tz: str | None = None,
        every: Seconds | None = None,
        offset: Seconds | None = None,
        version: int | None = None,
        allow_unknown_type: bool = False,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Create a schedule, or change it. The same again changes nothing.

        `call` is what its tasks are: `task.prepare(…)`, or `task.options(…).prepare(…)`. `every`
        is counted from 1970, and `offset` later. The options:

        - `missed`: what becomes of ticks that nobody fired in time: "skip", "once" (the newest one
          is fired for all of them; the default) or "all" (one after the other, at most `most`).
          Ticks older than `within` (24 h) are never fired.
        - `overlap`: what becomes of a tick while the last task has not ended: "skip" (the
          default), "queue" (one waits), "replace" (the last one is cancelled) or "allow".
        - `jitter`: up to this much later, spread evenly over schedules and ticks.
        - `starts_at`, `ends_at`, `count`: from when, until when, how many ticks.
        - `pause_after_failures`: pause after so many failed tasks in a row.
        - `note`: a line for people.

        With `version`, ScheduleConflict is raised unless the schedule has this version, 0 for one
        that does not exist. A task of another application raises UnknownType if no worker has
        published its type, and none that runs handles it, unless `allow_unknown_type`.
        """
        new = self._new(schedule_id, call, cron, tz, every, offset, options)
        allow = allow_unknown_type or self._defines(call)
        return self._readable(await self._run(_put(self._ops, new, version, allow=allow)))

    def put_sync(
        self,
        schedule_id: str,
        call: Prepared[Any],
        *,
        cron: str | None = None,
        tz: str | None = None,
        every: Seconds | None = None,
        offset: Seconds | None = None,
        version: int | None = None,
        allow_unknown_type: bool = False,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Blocking twin of `put`."""
        new = self._new(schedule_id, call, cron, tz, every, offset, options)
        allow = allow_unknown_type or self._defines(call)
        return self._readable(self._run_sync(_put(self._ops, new, version, allow=allow)))

    async def get(self, schedule_id: str) -> Schedule | None:
        """Return the schedule, or None if there is none."""
        found = await self._run(_get(self._ops, schedule_id))
        return None if found is None else self._readable(found)

    def get_sync(self, schedule_id: str) -> Schedule | None:
        """Blocking twin of `get`."""
        found = self._run_sync(_get(self._ops, schedule_id))
        return None if found is None else self._readable(found)

    async def list(self, limit: int = MOST, cursor: str | None = None) -> ScheduleList:
        """Return a page of the schedules, those first that are due next."""
        page = await self._run(_list(self._ops, limit, cursor))
        return readable_page(page, self._app.codecs)

    def list_sync(self, limit: int = MOST, cursor: str | None = None) -> ScheduleList:
        """Blocking twin of `list`."""
        page = self._run_sync(_list(self._ops, limit, cursor))
        return readable_page(page, self._app.codecs)

    async def delete(self, schedule_id: str, *, version: int | None = None) -> bool:
        """Delete a schedule. Returns False if there is none. Its tasks stay."""
        return await self._app.run(self._ops.drop_schedule(schedule_id, version=version))

    def delete_sync(self, schedule_id: str, *, version: int | None = None) -> bool:
        """Blocking twin of `delete`."""
        return self._app.run_sync(self._ops.drop_schedule(schedule_id, version=version))

    async def pause(
        self, schedule_id: str, *, note: str = "", until: datetime | None = None
    ) -> Schedule:
        """Pause a schedule, until a time or until it is resumed. No deployment resumes it."""
        op = _pause(self._ops, schedule_id, note, until)
        return self._readable(await self._app.run(op))

    def pause_sync(
        self, schedule_id: str, *, note: str = "", until: datetime | None = None
    ) -> Schedule:
        """Blocking twin of `pause`."""
        op = _pause(self._ops, schedule_id, note, until)
        return self._readable(self._app.run_sync(op))

    async def resume(self, schedule_id: str, *, missed: Missed | str = Missed.SKIP) -> Schedule:
        """Resume a schedule. `missed` says what becomes of the ticks in between: see `put`."""
        op = self._ops.resume_schedule(schedule_id, missed=checked_missed(missed))
        return self._readable(await self._app.run(op))

    def resume_sync(self, schedule_id: str, *, missed: Missed | str = Missed.SKIP) -> Schedule:
        """Blocking twin of `resume`."""
        op = self._ops.resume_schedule(schedule_id, missed=checked_missed(missed))
        return self._readable(self._app.run_sync(op))

    async def run(self, schedule_id: str, *, at: datetime | None = None) -> Handle[Any]:
        """Submit a task of a schedule now, besides its ticks.

        `at` is the tick that its handler sees; the present if it is left out.
        """
        handle = self._handle(await self._app.run(_run(self._ops, schedule_id, at)))
        await self._in_place.run()
        return handle

    def run_sync(self, schedule_id: str, *, at: datetime | None = None) -> Handle[Any]:
        """Blocking twin of `run`."""
        handle = self._handle(self._app.run_sync(_run(self._ops, schedule_id, at)))
        self._in_place.run_sync()
        return handle

    async def backfill(
        self,
        schedule_id: str,
        *,
        since: datetime,
        until: datetime,
        overlap: Overlap | str | None = None,
    ) -> Sequence[Handle[Any]]:
        """Submit the tasks of up to 1,000 ticks of the past, from `since` to before `until`.

        They run one after the other, unless `overlap` is "allow" (None: as the schedule says).
        `Schedule.ticks` returns the ticks without submitting anything.
        """
        op = _backfill(self._ops, schedule_id, since, until, overlap)
        handles = [self._handle(each) for each in await self._app.run(op)]
        await self._in_place.run()
        return handles

    def backfill_sync(
        self,
        schedule_id: str,
        *,
        since: datetime,
        until: datetime,
        overlap: Overlap | str | None = None,
    ) -> Sequence[Handle[Any]]:
        """Blocking twin of `backfill`."""
        op = _backfill(self._ops, schedule_id, since, until, overlap)
        handles = [self._handle(each) for each in self._app.run_sync(op)]
        self._in_place.run_sync()
        return handles

    @staticmethod
    def preview(
        cron: str | None = None,
        *,
        tz: str | None = None,
        every: Seconds | None = None,
        offset: Seconds | None = None,
        n: int = 5,
        after: datetime | None = None,
    ) -> Preview:
        """Return when a rule would fire: in words, and its next ticks (after now, or `after`) with
        notes about changes of the clock. It asks no store."""
        return preview_of(rule_of(cron, tz, every, offset), n, after)

    @property
    def _ops(self) -> Operations:
        return self._app.backend.ops

    async def _run(self, flow: Flow[T]) -> T:
        return await perform_async(flow, self._app.run)

    def _run_sync(self, flow: Flow[T]) -> T:
        return perform(flow, self._app.run_sync)

    def _new(
        self,
        schedule_id: str,
        call: Prepared[Any],
        cron: str | None,
        tz: str | None,
        every: Seconds | None,
        offset: Seconds | None,
        options: ScheduleOptions,
    ) -> NewSchedule:
        new = schedule_of(schedule_id, rule_of(cron, tz, every, offset), call, options)
        self._check(call)
        return new

    def _defines(self, call: Prepared[Any]) -> bool:
        """Return whether this application has the task: then its workers have it, too."""
        owner: object = call.app
        return owner is self._app

    def _readable(self, stored: StoredSchedule) -> Schedule:
        return readable(stored, self._app.codecs)

    def _handle(self, task_id: str) -> Handle[Any]:
        return Handle(self._app, task_id, Any)


def _put(
    ops: Operations, new: NewSchedule, version: int | None, *, allow: bool
) -> Flow[StoredSchedule]:
    stored: list[StoredSchedule] = yield ops.put_schedules(
        [new], version=version, allow_unknown_type=allow
    )
    return stored[0]


def _get(ops: Operations, schedule_id: str) -> Flow[StoredSchedule | None]:
    found: list[StoredSchedule | None] = yield ops.schedules([schedule_id])
    return found[0]


def _list(ops: Operations, limit: int, cursor: str | None) -> Flow[SchedulePage]:
    """Return the next page that holds schedules, or the last page."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise InvalidLimit(f"From 1 to {MOST} schedules are listed at once, not {shown(limit)}.")
    while True:
        page: SchedulePage = yield ops.schedule_page(cursor, limit)
        if page.schedules or page.next_cursor is None:
            return page
        cursor = page.next_cursor


def _pause(
    ops: Operations, schedule_id: str, note: str, until: datetime | None
) -> Op[StoredSchedule]:
    end = None if until is None else checked_time("until", until)
    return ops.pause_schedule(schedule_id, note=checked_note(note), until=end)


def _run(ops: Operations, schedule_id: str, at: datetime | None) -> Op[str]:
    tick = None if at is None else checked_time("at", at)
    return ops.run_schedule(schedule_id, new_id(), tick=tick)


def _backfill(
    ops: Operations,
    schedule_id: str,
    since: datetime,
    until: datetime,
    overlap: Overlap | str | None,
) -> Op[list[str]]:
    begin, end = checked_time("since", since), checked_time("until", until)
    chosen = None if overlap is None else checked_overlap(overlap)
    return ops.backfill_schedule(schedule_id, new_id(), begin, end, overlap=chosen)
