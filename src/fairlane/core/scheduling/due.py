"""Firing what is due: in steps, each of which is bounded and takes effect as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from fairlane.core import firing, limits
from fairlane.core import schedule_history as history
from fairlane.core.documents import Document, Documents, Order, Overtaken, Place, rewrites
from fairlane.core.errors import Conflict, InvalidInput, InvalidSchedule, UnknownDependency
from fairlane.core.firing import Firing
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import new_id
from fairlane.core.priority import MICROSECONDS
from fairlane.core.recurrence import Every
from fairlane.core.schedules import Outcome, Schedule, ScheduleRun
from fairlane.core.scheduling.stored import (
    KIND,
    Scheduled,
    counted,
    document_of,
    schedule_of,
)
from fairlane.core.states import State

replace = msgspec.structs.replace

_POSTPONED: Final = 60 * MICROSECONDS
_UNREADABLE: Final = "Another version of Fairlane has stored it, and fires it."
_SEARCHED: Final = 50
"""About how many ticks of a cron expression are computed to find the newest of many."""


class Fired(msgspec.Struct, frozen=True):
    """What became of ticks: of which schedule, and how. `more`: others are due.

    `unknown`: the problems of schedules that this process cannot fire, by their ids. The first ones
    are left to other processes, as far as a caller can remember them.
    """

    handled: list[tuple[str, ScheduleRun]]
    more: bool = False
    unknown: dict[str, str] = {}


class _Item(NamedTuple):
    """A schedule that is due, and what is to be done about it."""

    stored: Document
    before: Schedule
    firing: Firing


@reads
def due_schedules(self: Documents, left: Collection[str] = ()) -> Flow[float | None]:
    now, found = yield from self.list_documents(KIND, Order.OLDEST, len(left) + 1)
    times = (each.at for each in found if each.id not in left)
    first = next(times, firing.NEVER)
    return None if first >= firing.NEVER else (first - now) / MICROSECONDS


@rewrites
def fire_due(self: Scheduled, left: Collection[str] | None = None) -> Flow[Fired]:
    step = _Step(left)
    after: Place | None = None
    while True:
        now, page = yield from self.list_documents(KIND, Order.OLDEST, limits.SCHEDULE_PAGE, after)
        due = [each for each in page if each.at <= now]
        fit = yield from _decide(
            self, [each for each in due if not step.leaves(each.id)], now, step
        )
        last_page = len(due) < limits.SCHEDULE_PAGE
        if not fit or last_page or step.is_full:
            break
        after = (due[-1].at, due[-1].id)
    if not (step.items or step.idle):
        return Fired([], unknown=step.unknown)
    yield from history.move(self, [item.before for item in step.items])
    handled = yield from _commit(self, step.items, step.idle)
    return Fired(handled, more=not (fit and last_page), unknown=step.unknown)


class _Step:
    """The schedules that are handled in one step.

    Their number is bounded, and so is the work of deciding about them: flows run on event loops.
    """

    def __init__(self, left: Collection[str] | None) -> None:
        self._left = left
        self.items: list[_Item] = []
        self.idle: list[Document] = []
        """To be put where they belong."""
        self.unknown: dict[str, str] = {}
        self._tasks = self._bytes = self._ticks = 0
        self._computed: set[tuple[object, ...]] = set()

    def leaves(self, schedule_id: str) -> bool:
        """Return whether a schedule is left to other processes."""
        return self._left is not None and schedule_id in self._left

    def pass_on(self, stored: Document, problem: str, at: int) -> None:
        """Leave a schedule that this process cannot fire to others, who fire it when it is late.

        If the caller does not remember it, or has to remember too many, it is put off until `at`:
        it must not stand before the others.
        """
        self.unknown[stored.id] = problem
        if self._left is None or len(self._left) + len(self.unknown) > limits.SCHEDULE_PAGE:
            self.idle.append(replace(stored, at=at))

    @property
    def is_full(self) -> bool:
        return (
            len(self.items) + len(self.idle) >= limits.BATCH
            or self._tasks >= limits.SUBMIT_BATCH
            or self._bytes >= limits.PAGE_BYTES
            or self._ticks >= limits.TICKS_DECIDED
        )

    def take(self, item: _Item) -> bool:
        """Take a schedule if it is the first one or its tasks fit. Return whether that is so."""
        tasks = len(item.firing.tasks)
        if self.items and self._tasks + tasks > limits.SUBMIT_BATCH:
            return False
        self.items.append(item)
        self._tasks += tasks
        self._bytes += len(item.stored.value) + tasks * len(item.before.payload)
        self._ticks += self._effort(item)
        return True

    def _effort(self, item: _Item) -> int:
        """Return about how many ticks were computed. Those of the same rule are computed once."""
        schedule, runs = item.before, item.firing.runs
        standing = schedule.standing
        kind = (
            schedule.rule,
            firing.first_after(schedule),
            schedule.policy,
            standing.pause,
            standing.catch_up,
            standing.catch_up_until,
        )
        if kind in self._computed:
            return 0
        self._computed.add(kind)
        if isinstance(schedule.rule, Every):
            return len(runs)
        ticks = sum(min(run.count, limits.TICKS_COUNTED) for run in runs)
        return ticks if ticks == 1 else ticks + _SEARCHED


def _decide(self: Scheduled, due: Sequence[Document], now: int, step: _Step) -> Flow[bool]:
    """Decide about schedules that are due, until the step is full. Return whether all fit."""
    known = {each.id: schedule for each in due if (schedule := schedule_of(each)) is not None}
    states = yield from _states(self, known.values())
    for each in due:
        if step.is_full:
            return False
        schedule = known.get(each.id)
        if schedule is None:
            step.pass_on(each, _UNREADABLE, firing.NEVER)
            continue
        schedule = firing.judge(schedule, states, now)
        last = states.get(schedule.standing.last_task or "")
        try:
            decided = firing.fire(history.without_moved(schedule), now, last, new_id)
        except InvalidSchedule as error:
            # Such as an unknown time zone: another process may know it. Nothing is lost until then.
            step.pass_on(each, schedule.problem or str(error), now + _POSTPONED)
            continue
        if decided is None:
            step.idle.append(document_of(firing.align(schedule), each))
        elif not step.take(_Item(each, schedule, decided)):
            return False
    return True


def _states(self: Scheduled, schedules: Iterable[Schedule]) -> Flow[dict[str, State]]:
    """Return the states of the last tasks of schedules, and of those that are to be judged."""
    asked: dict[str, None] = {}
    for each in schedules:
        asked |= dict.fromkeys(each.standing.unjudged)
        if each.standing.last_task is not None:
            asked[each.standing.last_task] = None
    task_ids, states = list(asked), dict[str, State]()
    for start in range(0, len(task_ids), limits.PAGE):
        tasks = yield from self.heads(task_ids[start : start + limits.PAGE]).flow()
        states |= {task.task_id: task.state for task in tasks if task is not None}
    return states


def _commit(
    self: Scheduled, items: Sequence[_Item], idle: Sequence[Document]
) -> Flow[list[tuple[str, ScheduleRun]]]:
    """Carry out what was decided: all at once, or one by one if the store refuses a task."""
    try:
        return (yield from _carry_out(self, items, idle))
    except UnknownDependency:
        raise Overtaken from None  # a task that another was to wait for was deleted meanwhile
    except (InvalidInput, Conflict) as error:
        if len(items) == 1:
            (item,) = items
            before = history.without_moved(item.before)
            refused = firing.refuse(item.firing, before, f"{error.code}: {error}")
            return (yield from _carry_out(self, [item._replace(firing=refused)], idle))
    handled: list[tuple[str, ScheduleRun]] = []
    for item in items:
        handled += yield from _commit(self, [item], idle)
        idle = ()
    return handled


def _carry_out(
    self: Scheduled, items: Sequence[_Item], idle: Sequence[Document]
) -> Flow[list[tuple[str, ScheduleRun]]]:
    handled = [(item.before.schedule_id, run) for item in items for run in item.firing.runs]
    times = [
        firing.fire_time(item.before, run.tick)
        for item in items
        for run in item.firing.runs
        if run.outcome is Outcome.FIRED
    ]
    counts = yield from counted(self, handled, times)
    puts = [document_of(item.firing.schedule, item.stored) for item in items]
    tasks = [task for item in items for task in item.firing.tasks]
    cancels = [item.firing.cancels for item in items if item.firing.cancels is not None]
    if (yield from self.submit_along(tasks, KIND, [*puts, *idle, *counts], cancels)) is None:
        raise Overtaken
    return handled
