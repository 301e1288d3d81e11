"""What schedules do, said a second time: tick by tick, as plainly as can be.

Times are whole seconds by the store's clock. Nothing here looks at how the core decides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.reference import Refused

DAY = 86_400
HOUR = 3_600
MINUTE = 60
LOOK = 2 * MINUTE
ENDED = {"completed", "failed", "cancelled", "deleted"}


@dataclass(frozen=True)
class Declared:
    """What somebody says about a schedule."""

    interval: int
    offset: int
    payload: int = 0
    missed: str = "once"
    most: int = 100
    within: int = DAY
    overlap: str = "skip"
    starts_at: int | None = None
    ends_at: int | None = None
    count: int | None = None
    pause_after_failures: int | None = None


@dataclass(frozen=True)
class Run:
    """What became of a tick, or of several of which this is the newest."""

    tick: int
    outcome: str
    count: int = 1
    task: int | None = None


@dataclass
class MSchedule:
    """A schedule. `handled`: up to when its ticks were looked at."""

    said: Declared
    handled: int
    owner: str | None
    seen: int
    left: int | None
    version: int = 1
    last: int | None = None
    last_at: int | None = None
    unjudged: list[int] = field(default_factory=list)
    """Tasks of which it was not counted how they ended."""
    looked: int = 0
    failures: int = 0
    paused: bool = False
    until: int | None = None
    catch_up: str | None = None
    """What becomes of the ticks up to `resumed`."""
    resumed: int = 0
    runs: list[Run] = field(default_factory=list)

    def ticks(self, until: int) -> list[int]:
        """All that were not handled, up to a time."""
        said = self.said
        if self.left == 0:
            return []
        begin = max(self.handled + 1, said.starts_at or 0)
        end = until if said.ends_at is None else min(until, said.ends_at)
        first = begin + (said.offset - begin) % said.interval
        return list(range(first, end + 1, said.interval))

    @property
    def looks(self) -> bool:
        """Whether somebody looks at its tasks before its next tick."""
        failing = self.said.pause_after_failures is not None
        return failing and bool(self.unjudged) and self.next_tick is not None

    @property
    def next_tick(self) -> int | None:
        begin = max(self.handled, self.said.starts_at or 0)
        return next(iter(self.ticks(begin + self.said.interval)), None)


class Schedules:
    """All of them, and their tasks by number."""

    def __init__(self) -> None:
        self.now = 0
        self.known: dict[str, MSchedule] = {}
        self.tasks: dict[int, str] = {}
        """The state of each task: waiting, executing, retrying, or how it ended."""
        self.parents: dict[int, int] = {}
        self.declared: dict[str, int] = {}
        """When each application declared something last, to the hour."""
        self.counted: Counter[str] = Counter()

    # -- what becomes of tasks -----------------------------------------------------------------

    def new_task(self, parent: int | None = None) -> int:
        number = len(self.tasks)
        self.tasks[number] = "waiting"
        if parent is not None and self.tasks[parent] not in ENDED:
            self.parents[number] = parent
        return number

    def is_free(self, number: int) -> bool:
        """Whether it may be claimed."""
        parent = self.parents.get(number)
        return self.tasks[number] == "waiting" and (parent is None or self.tasks[parent] in ENDED)

    # -- operations ----------------------------------------------------------------------------

    def put(self, id: str, said: Declared, owner: str | None, version: int | None) -> None:
        old = self.known.get(id)
        found = 0 if old is None else old.version
        made = old and (old.said, old.owner, old.version)
        repeated = version is not None and made == (said, owner, version + 1)
        if version is not None and version != found and not repeated:
            raise Refused("schedule_conflict")
        between = old is not None and (owner is None) != (old.owner is None)
        if between and not repeated:
            raise Refused("schedule_conflict")
        if old is None:
            new = MSchedule(said, self.now, owner, self.now, said.count)
        elif (old.said, old.owner) == (said, owner):
            new = old
            if owner is not None and self.now - old.seen >= HOUR:
                old.seen = self.now
        else:
            new = MSchedule(**{**vars(old), "runs": [*old.runs], "unjudged": []})
            new.said, new.owner, new.seen, new.failures = said, owner, self.now, 0
            new.version += 1
            if said.count != old.said.count:
                new.left = said.count
            when = ("interval", "offset", "starts_at", "ends_at")
            if any(getattr(said, each) != getattr(old.said, each) for each in when):
                new.handled, new.catch_up = self.now, None
        if new is not old and new.next_tick is None and new.left != 0:
            raise Refused("invalid_schedule")
        self.known[id] = new
        if owner is not None and self.now - self.declared.get(owner, -DAY) >= HOUR:
            self.declared[owner] = self.now

    def drop(self, id: str) -> bool:
        return self.known.pop(id, None) is not None

    def sweep(self) -> None:
        for id, each in list(self.known.items()):
            if each.owner is None or self.now - self.declared[each.owner] < MINUTE:
                continue
            if self.declared[each.owner] - each.seen >= DAY:
                del self.known[id]

    def _get(self, id: str) -> MSchedule:
        if id not in self.known:
            raise Refused("unknown_schedule")
        return self.known[id]

    def pause(self, id: str, until: int | None) -> None:
        schedule = self._get(id)
        if until is not None and until <= self.now:
            raise Refused("invalid_schedule")
        if not schedule.paused or schedule.until != until:
            schedule.version += 1
        schedule.paused, schedule.until = True, until

    def resume(self, id: str, missed: str) -> None:
        schedule = self._get(id)
        if schedule.paused:
            schedule.version += 1
            self._end_pause(schedule)
            if missed == "skip":
                self._pass_over(schedule, self.now)
            else:
                schedule.catch_up, schedule.resumed = missed, self.now

    def run(self, id: str) -> int:
        schedule = self._get(id)
        number = self.new_task()
        self._tell(schedule, Run(self.now, "manual", 1, number))
        return number

    def backfill(self, id: str, ticks: int, overlap: str | None) -> list[int]:
        """The last ones before now."""
        schedule = self._get(id)
        interval, offset = schedule.said.interval, schedule.said.offset
        found = range(self.now - (self.now - offset) % interval, 0, -interval)[:ticks]
        numbers: list[int] = []
        for _ in found:
            wait = numbers and (overlap or schedule.said.overlap) != "allow"
            numbers.append(self.new_task(numbers[-1] if wait else None))
        self._tell(schedule, Run(found[0], "manual", len(found), numbers[-1]))
        return numbers

    # -- firing --------------------------------------------------------------------------------

    def fire(self) -> None:
        """All that is due, however many steps it takes."""
        for schedule in self.known.values():
            while self._fire(schedule):
                pass

    def _fire(self, schedule: MSchedule) -> bool:
        """Handle what is due, and return whether anything was."""
        said, due = schedule.said, schedule.ticks(self.now)
        if schedule.paused:
            if schedule.until is None or schedule.until > self.now:
                return False
        elif not due:
            if schedule.looks and self.now >= schedule.looked + LOOK:
                self._judge(schedule)
            return False
        self._judge(schedule)
        if schedule.paused:
            assert schedule.until is not None
            self._end_pause(schedule)
            self._pass_over(schedule, schedule.until)
            due = schedule.ticks(self.now)
            if not due:
                return True
        elif schedule.catch_up:
            # The ticks of a pause first; those after it are none of it.
            due = [tick for tick in due if tick <= schedule.resumed] or due
            if due[0] > schedule.resumed:
                schedule.catch_up = None
        wanted = self._wanted(schedule, due)
        missed = [tick for tick in due if not wanted or tick < wanted[0]]
        if missed:
            self._tell(schedule, Run(missed[-1], "missed", len(missed)))
        schedule.handled = due[-1]
        if wanted and schedule.left is not None and len(wanted) > schedule.left:
            wanted = wanted[: schedule.left]
            schedule.handled = wanted[-1]
        if not wanted:
            return True
        if said.pause_after_failures is not None:
            if schedule.failures >= said.pause_after_failures:
                self._tell(schedule, Run(wanted[-1], "paused", len(wanted)))
                schedule.paused, schedule.until = True, None
                return True
        self._start(schedule, wanted)
        return True

    def _judge(self, schedule: MSchedule) -> None:
        schedule.looked = self.now
        for number in [*schedule.unjudged]:
            state = self.tasks[number]
            if state in ENDED:
                schedule.unjudged.remove(number)
            if state == "failed":
                schedule.failures += 1
            if state == "completed":
                schedule.failures = 0

    def _end_pause(self, schedule: MSchedule) -> None:
        schedule.paused, schedule.failures, schedule.unjudged = False, 0, []

    def _wanted(self, schedule: MSchedule, due: list[int]) -> list[int]:
        """The ticks to be fired."""
        young = [tick for tick in due if tick >= self.now - schedule.said.within]
        match schedule.catch_up or schedule.said.missed:
            case "all":
                return young[-schedule.said.most :]
            case "once":
                return young[-1:]
            case _:
                return [tick for tick in young[-1:] if self.now - tick <= 60]

    def _start(self, schedule: MSchedule, wanted: list[int]) -> None:
        last, overlap = schedule.last, schedule.said.overlap
        state = "ended" if last is None or self.tasks[last] in ENDED else self.tasks[last]
        if state != "ended" and last is not None:
            waits = overlap == "queue" and state == "waiting"
            if overlap == "skip" or waits:
                self._tell(schedule, Run(wanted[-1], "overlap", len(wanted)))
                return
            if overlap == "replace":
                self.tasks[last] = "cancelled"
        if overlap == "replace" and len(wanted) > 1:
            self._tell(schedule, Run(wanted[-2], "overlap", len(wanted) - 1))
            wanted = wanted[-1:]
        parent = last if overlap == "queue" and state != "ended" else None
        skipped: list[int] = []
        if overlap == "queue":
            room = 2 if parent is None else 1
            wanted, skipped = wanted[:room], wanted[room:]
        for tick in wanted:
            number = self.new_task(parent)
            parent = None if overlap == "allow" else number
            self._tell(schedule, Run(tick, "fired", 1, number))
            schedule.last, schedule.last_at = number, tick
            most = 1 if schedule.said.pause_after_failures is None else 100
            schedule.unjudged = [*schedule.unjudged, number][-most:]
            if schedule.left is not None:
                schedule.left -= 1
        if skipped:
            self._tell(schedule, Run(skipped[-1], "overlap", len(skipped)))

    def _pass_over(self, schedule: MSchedule, until: int) -> None:
        passed = schedule.ticks(until)
        if passed:
            self._tell(schedule, Run(passed[-1], "paused", len(passed)))
        schedule.handled = max(schedule.handled, until)

    def _tell(self, schedule: MSchedule, run: Run) -> None:
        schedule.runs.append(run)
        self.counted[run.outcome] += run.count


def changed(said: Declared, **changes: Any) -> Declared:
    """The same but for some of it."""
    return replace(said, **changes)
