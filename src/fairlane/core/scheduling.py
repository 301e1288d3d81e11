"""Schedules in a store: the operations, composed from documents and submission.

A schedule is a document whose time (`at`) is when somebody has to look at it. So the schedules that
are due are the first of their kind, whatever else there is. Firing is one step of the engine
(`submit_along`): the document moves on to its next tick and the tasks are stored, or neither
happens. The document names its last task, and nobody can move it on from the same tick again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

import msgspec

from fairlane.core import encryption, firing, limits, sealing
from fairlane.core import schedule_history as history
from fairlane.core import tick_counts as counting
from fairlane.core.documents import (
    Document,
    Documents,
    Order,
    Overtaken,
    Place,
    Written,
    rewrites,
    write,
)
from fairlane.core.errors import (
    BatchTooLarge,
    Conflict,
    InvalidCursor,
    InvalidInput,
    InvalidSchedule,
    ScheduleConflict,
    UnknownDependency,
    UnknownSchedule,
)
from fairlane.core.firing import Firing, due_at
from fairlane.core.flow import Flow, Op, reads
from fairlane.core.ids import checked as checked_task_id
from fairlane.core.ids import new_id, numbered
from fairlane.core.model import Cancelled, NewTask, Task
from fairlane.core.priority import MICROSECONDS
from fairlane.core.quotas import Made, give_back
from fairlane.core.recurrence import Recurrence, ticks_between
from fairlane.core.schedules import (
    Missed,
    NewSchedule,
    Outcome,
    Overlap,
    Pause,
    Policy,
    Schedule,
    ScheduleRun,
    Source,
    Standing,
    Template,
    checked_note,
    checked_owner,
    is_schedule_id,
)
from fairlane.core.states import State
from fairlane.core.text import is_name, shown
from fairlane.core.tick_counts import TickCounts

replace = msgspec.structs.replace


class Scheduled(Documents, Protocol):
    """What an engine implements besides documents."""

    def submit_along(
        self, tasks: Sequence[NewTask], kind: str, puts: Sequence[Document]
    ) -> Flow[Written]:
        """Store tasks and write documents in one step: everything, or nothing.

        Raises what `submit` raises; then nothing is stored either.
        """

    def heads(self, task_ids: Sequence[str]) -> Op[list[Task | None]]: ...

    def cancel(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Cancelled]]: ...


class SchedulePage(msgspec.Struct, frozen=True):
    """Some schedules. `next_cursor`: where to continue, None at the end."""

    schedules: list[Schedule]
    next_cursor: str | None


class Fired(msgspec.Struct, frozen=True):
    """What became of ticks: of which schedule, and how. `more`: others are due."""

    handled: list[tuple[str, ScheduleRun]]
    more: bool = False


# As documents: a line with the standing, a line with the definition, the payload. One document
# has no name that a schedule could have: the counts of all ticks.

KIND: Final = "schedule"
_COUNTS: Final = "#ticks"
_OWNER: Final = "schedule_owner"
"""The kind of documents that say when an application declared its schedules last."""

_Said = tuple[Recurrence, Template, Policy, str]
_standing_decoder: Final = msgspec.json.Decoder(Standing)
_said_decoder: Final = msgspec.json.Decoder(_Said)
_encoder: Final = msgspec.json.Encoder()


def _value_of(schedule: Schedule) -> bytes:
    said = (schedule.rule, schedule.template, schedule.policy, schedule.note)
    return b"\n".join([_encoder.encode(schedule.standing), _encoder.encode(said), schedule.payload])


def _schedule_of(stored: Document | None) -> Schedule | None:
    """Return a stored schedule; None if there is none, or a version that stored it otherwise."""
    if stored is None or stored.id == _COUNTS:
        return None
    standing, _, rest = stored.value.partition(b"\n")
    said, _, payload = rest.partition(b"\n")
    try:
        rule, template, policy, note = _said_decoder.decode(said)
        return Schedule(
            schedule_id=stored.id,
            rule=rule,
            template=template,
            payload=payload,
            policy=policy,
            note=note,
            standing=_standing_decoder.decode(standing),
        )
    except msgspec.DecodeError:
        return None


def _document_of(schedule: Schedule, stored: Document | None) -> Document:
    version = 0 if stored is None else stored.version
    return Document(schedule.schedule_id, _value_of(schedule), due_at(schedule), version=version)


def _read(self: Documents, schedule_id: str) -> Flow[tuple[int, Document, Schedule]]:
    """Read a schedule to change it. Raises UnknownSchedule."""
    if not is_schedule_id(schedule_id):
        raise unknown(schedule_id)
    now, (stored,) = yield from self.read_documents(KIND, [schedule_id])
    (schedule,) = yield from history.joined(self, [_schedule_of(stored)])
    if stored is None or schedule is None:
        raise unknown(schedule_id)
    return now, stored, schedule


def unknown(schedule_id: object) -> UnknownSchedule:
    """Return the error for a schedule that does not exist."""
    return UnknownSchedule(f"There is no schedule {shown(schedule_id)}.")


# Operations, see `store`.


@reads
def schedule_page(
    self: Documents, cursor: str | None = None, limit: int = limits.SCHEDULE_PAGE
) -> Flow[SchedulePage]:
    after = _place_of(cursor)
    _, found = yield from self.list_documents(KIND, Order.OLDEST, limit, after)
    known = yield from history.joined(self, [_schedule_of(each) for each in found])
    cursor = f"{found[-1].at}:{found[-1].id}" if len(found) == limit else None
    return SchedulePage([each for each in known if each is not None], cursor)


def _place_of(cursor: str | None) -> Place | None:
    """Return where a page begins. Raises InvalidCursor."""
    if cursor is None:
        return None
    at, _, schedule_id = cursor.partition(":")
    if not re.fullmatch(r"-?[0-9]{1,18}", at, re.ASCII) or not (
        is_name(schedule_id) or schedule_id == _COUNTS
    ):
        raise InvalidCursor
    return int(at), schedule_id


@reads
def schedules(self: Documents, schedule_ids: Sequence[str]) -> Flow[list[Schedule | None]]:
    checked_batch(schedule_ids)
    asked = [each for each in schedule_ids if is_schedule_id(each)]
    _, found = yield from self.read_documents(KIND, asked)
    known = yield from history.joined(self, [_schedule_of(each) for each in found])
    by_id = dict(zip(asked, known, strict=True))
    return [by_id.get(each) for each in schedule_ids]


def checked_batch(items: Sequence[object]) -> None:
    """Raise BatchTooLarge if these are too many at once."""
    if len(items) > limits.SCHEDULE_PAGE:
        raise BatchTooLarge(
            f"At most {limits.SCHEDULE_PAGE} schedules are handled at once, not {len(items):,}."
        )


@reads
def tick_counts(self: Documents) -> Flow[TickCounts]:
    _, (stored,) = yield from self.read_documents(KIND, [_COUNTS])
    return TickCounts() if stored is None else counting.decode(stored.value)


@rewrites
def put_schedules(
    self: Documents,
    schedules: Sequence[NewSchedule],
    *,
    owner: str | None = None,
    version: int | None = None,
) -> Flow[list[Schedule]]:
    checked_batch(schedules)
    checked_owner(owner)
    if any(not sealing.is_sealed(each.payload) for each in schedules):
        yield from encryption.refuse_plain(self)
    new = {each.schedule_id: each for each in schedules}
    if len(new) < len(schedules):
        raise InvalidSchedule("An id occurs twice in one batch: every schedule needs its own.")
    now, found = yield from self.read_documents(KIND, list(new))
    known = yield from history.joined(self, [_schedule_of(each) for each in found])
    answers: list[Schedule] = []
    puts: list[Document] = []
    for each, stored, before in zip(new.values(), found, known, strict=True):
        if not _is_repeated(each, before, version):
            _check_version(each.schedule_id, before, version, owner)
        after = _declared(each, before, now, owner)
        if after is not before:
            puts.append(_document_of(after, stored))
        answers.append(after)
    if puts:
        # One place more than schedules: the counts.
        written = yield from write(self, KIND, puts, most=limits.SCHEDULES + 1)
        if written is Written.FULL:
            raise InvalidSchedule(
                f"At most {limits.SCHEDULES:,} schedules are kept: drop one that is not needed."
            )
    if owner is not None:
        yield from _note_owner(self, owner, now)
    return answers


def _is_repeated(new: NewSchedule, before: Schedule | None, version: int | None) -> bool:
    """Return whether a change was made before: its answer was lost, and it is sent again."""
    if before is None or not version:
        return False
    standing = before.standing
    return (standing.fingerprint, standing.version) == (new.fingerprint, version + 1)


def _check_version(
    schedule_id: str, before: Schedule | None, version: int | None, owner: str | None
) -> None:
    """Raise ScheduleConflict if a caller knows another version, or may not change this one."""
    found = 0 if before is None else before.standing.version
    if version is not None and version != found:
        raise ScheduleConflict(
            f"The schedule {schedule_id} has version {found}, not {version}: it was changed "
            "meanwhile. Read it again, and repeat the change if it still makes sense."
        )
    if before is not None and owner is None and before.standing.source is Source.CODE:
        raise ScheduleConflict(
            f"The schedule {schedule_id} is declared by the code of {before.standing.owner}, "
            "which would undo the change: change it there. It can be paused, resumed and run."
        )


def _declared(new: NewSchedule, before: Schedule | None, now: int, owner: str | None) -> Schedule:
    """Return a schedule as it stands after it was declared: `before`, if nothing changes."""
    about = (Source.API if owner is None else Source.CODE, owner or "")
    source, name = about
    if before is None:
        standing = Standing(
            since=now,
            left=new.policy.count,
            source=source,
            owner=name,
            seen_at=now,
            created_at=now,
            updated_at=now,
        )
        return _checked_first(_with(new, standing))
    old = before.standing
    if (old.fingerprint, old.source, old.owner) == (new.fingerprint, *about):
        seen = now - old.seen_at < limits.SCHEDULE_SEEN_SECONDS * MICROSECONDS
        if owner is None or seen:
            return before
        return replace(before, standing=replace(old, seen_at=now))
    standing = replace(
        old,
        source=source,
        owner=name,
        seen_at=now,
        updated_at=now,
        version=old.version + 1,
        failures=0,
    )
    if new.policy.count != before.policy.count:
        standing = replace(standing, left=new.policy.count)
    if _moments(new) != _moments(before):
        standing = replace(standing, since=now, catch_up=None)
    return _checked_first(_with(new, standing))


def _moments(schedule: NewSchedule | Schedule) -> tuple[object, ...]:
    """Return what decides when it fires. A change of anything else moves no tick."""
    return schedule.rule, schedule.policy.starts_at, schedule.policy.ends_at


def _with(new: NewSchedule, standing: Standing) -> Schedule:
    return firing.align(
        Schedule(
            schedule_id=new.schedule_id,
            rule=new.rule,
            template=new.template,
            payload=new.payload,
            policy=new.policy,
            note=new.note,
            standing=replace(standing, fingerprint=new.fingerprint),
        )
    )


def _checked_first(schedule: Schedule) -> Schedule:
    if schedule.standing.tick is None and schedule.standing.left != 0:
        raise InvalidSchedule(
            f"The schedule {schedule.schedule_id} would never fire: it ends before its next tick. "
            "Choose a later ends_at."
        )
    return schedule


def _note_owner(self: Documents, owner: str, now: int) -> Flow[None]:
    """Note that an application declares its schedules: those that it left out can be dropped."""
    _, (stored,) = yield from self.read_documents(_OWNER, [owner])
    if stored is None or now - stored.at >= limits.SCHEDULE_SEEN_SECONDS * MICROSECONDS:
        version = 0 if stored is None else stored.version
        life = int(2 * limits.SCHEDULE_SECONDS * MICROSECONDS)
        yield from write(self, _OWNER, [Document(owner, b"", now, now + life, version=version)])


@rewrites
def sweep_schedules(self: Documents, cursor: str | None = None) -> Flow[str | None]:
    after = _place_of(cursor)
    now, found = yield from self.list_documents(KIND, Order.OLDEST, limits.SCHEDULE_PAGE, after)
    known = {each.id: schedule for each in found if (schedule := _schedule_of(each)) is not None}
    alive = yield from _alive(self, known.values())
    puts: list[Document] = []
    drops: list[Document] = []
    for each in found:
        schedule = known.get(each.id)
        if schedule is None:
            continue
        if _is_left_out(schedule, alive, now):
            drops.append(each)
            continue
        with suppress(InvalidSchedule):  # see `_decided`
            aligned = firing.align(schedule)
            if aligned != schedule:
                puts.append(_document_of(aligned, each))
    yield from history.drop(self, [each.id for each in drops])
    if puts or drops:
        yield from write(self, KIND, puts, drops)
    return f"{found[-1].at}:{found[-1].id}" if len(found) == limits.SCHEDULE_PAGE else None


def _alive(self: Documents, schedules: Iterable[Schedule]) -> Flow[dict[str, int]]:
    """Return when the applications of these schedules declared any of theirs last."""
    owners = {each.standing.owner for each in schedules if each.standing.source is Source.CODE}
    if not owners:
        return {}
    _, found = yield from self.read_documents(_OWNER, sorted(owners))
    return {each.id: each.at for each in found if each is not None}


def _is_left_out(schedule: Schedule, alive: dict[str, int], now: int) -> bool:
    """Return whether its application declares its schedules without this one, for a day.

    An application that starts after a longer time declares them in several batches.
    """
    standing = schedule.standing
    if standing.source is not Source.CODE:
        return False
    declared = alive.get(standing.owner, standing.seen_at)
    return (
        declared - standing.seen_at >= limits.SCHEDULE_SECONDS * MICROSECONDS
        and now - declared >= limits.SCHEDULE_DECLARING_SECONDS * MICROSECONDS
    )


@rewrites
def drop_schedule(self: Documents, schedule_id: str, *, version: int | None = None) -> Flow[bool]:
    if not is_schedule_id(schedule_id):
        return False
    _, (stored,) = yield from self.read_documents(KIND, [schedule_id])
    if stored is None:
        return False
    if version is not None:
        _check_version(schedule_id, _schedule_of(stored), version, "")
    yield from give_back(self, Made.SCHEDULES, schedule_id)
    yield from history.drop(self, [schedule_id])
    yield from write(self, KIND, [], [stored])
    return True


@rewrites
def pause_schedule(
    self: Documents, schedule_id: str, *, note: str = "", until: int | None = None
) -> Flow[Schedule]:
    checked_note(note)
    now, stored, schedule = yield from _read(self, schedule_id)
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
    now, stored, schedule = yield from _read(self, schedule_id)
    if schedule.standing.pause is None:
        return schedule
    resumed, runs = firing.resume(schedule, now, missed)
    counts = yield from _counted(self, now, [(schedule_id, run) for run in runs], [])
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
    yield from write(self, KIND, [_document_of(changed, stored), *counts])
    return changed


@rewrites
def run_schedule(
    self: Scheduled, schedule_id: str, task_id: str, *, tick: int | None = None
) -> Flow[str]:
    checked_task_id(task_id)
    now, stored, schedule = yield from _read(self, schedule_id)
    run = ScheduleRun(now if tick is None else tick, Outcome.MANUAL, task_id)
    task = firing.task_of(schedule, task_id, run.tick, chosen=True)
    yield from _submit_besides(self, now, stored, schedule, [task], run)
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
    now, stored, schedule = yield from _read(self, schedule_id)
    ticks = backfilled(schedule, since, until)
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
        yield from _submit_besides(self, now, stored, schedule, tasks, run)
    return [task.task_id for task in tasks]


def backfilled(schedule: Schedule, since: int, until: int) -> list[int]:
    """Return the ticks from a time to before another. Raises InvalidSchedule for too many."""
    ticks = ticks_between(schedule.rule, since, until, limits.SUBMIT_BATCH + 1)
    if len(ticks) > limits.SUBMIT_BATCH:
        raise InvalidSchedule(
            f"More than {limits.SUBMIT_BATCH:,} ticks lie in this time: backfill it in parts."
        )
    return ticks


def _submit_besides(
    self: Scheduled,
    now: int,
    stored: Document,
    schedule: Schedule,
    tasks: Sequence[NewTask],
    run: ScheduleRun,
) -> Flow[None]:
    """Submit tasks besides the ticks of a schedule, once however often it is repeated."""
    if any(each.task_id == run.task_id for each in schedule.standing.runs):
        return
    changed = replace(schedule, standing=firing.recorded(schedule.standing, [run]))
    counts = yield from _counted(self, now, [(schedule.schedule_id, run)], [])
    puts = [_document_of(changed, stored), *counts]
    if (yield from self.submit_along(tasks, KIND, puts)) is not Written.DONE:
        raise Overtaken


@reads
def due_schedules(self: Documents) -> Flow[float | None]:
    now, found = yield from self.list_documents(KIND, Order.OLDEST, 1)
    if not found or found[0].at >= firing.NEVER:
        return None
    return (found[0].at - now) / MICROSECONDS


_POSTPONED: Final = 60 * MICROSECONDS


class _Item(NamedTuple):
    """A schedule that is due, and what is to be done about it."""

    stored: Document
    before: Schedule
    firing: Firing


@rewrites
def fire_due(self: Scheduled) -> Flow[Fired]:
    now, due, more = yield from _due(self)
    if not due:
        return Fired([])
    items, idle = yield from _decided(self, due, now)
    fitting = _fitting(items)
    handled = yield from _commit(self, now, fitting, idle)
    return Fired(handled, more=more or len(fitting) < len(items))


def _due(self: Documents) -> Flow[tuple[int, list[Document], bool]]:
    """Read schedules that are due, up to 500 or about 8 MiB. Also return whether there are more."""
    due: list[Document] = []
    size = 0
    after: Place | None = None
    while True:
        now, page = yield from self.list_documents(KIND, Order.OLDEST, limits.SCHEDULE_PAGE, after)
        found = [each for each in page if each.at <= now]
        due += found
        size += sum(len(each.value) for each in found)
        if len(found) < limits.SCHEDULE_PAGE:
            return now, due, False
        if len(due) >= limits.BATCH or size >= limits.PAGE_BYTES:
            return now, due, True
        after = (found[-1].at, found[-1].id)


def _decided(
    self: Scheduled, due: Sequence[Document], now: int
) -> Flow[tuple[list[_Item], list[Document]]]:
    """Decide about schedules that are due. Also return documents to be put where they belong."""
    documents = {each.id: each for each in due}
    readable = [schedule for each in due if (schedule := _schedule_of(each)) is not None]
    known = yield from history.moved(self, readable)
    states = yield from _states(self, known)
    items: list[_Item] = []
    idle: list[Document] = []
    for schedule in known:
        stored = documents.pop(schedule.schedule_id)
        last = states.get(schedule.standing.last_task or "")
        try:
            decided = firing.fire(schedule, now, last, new_id)
        except InvalidSchedule:
            # Such as an unknown time zone: another process may know it. Nothing is lost until then.
            idle.append(replace(stored, at=now + _POSTPONED))
            continue
        if decided is None:
            idle.append(_document_of(firing.align(schedule), stored))
        else:
            items.append(_Item(stored, schedule, decided))
    # Another version of Fairlane wrote the others. They must not stand before these.
    idle += [replace(each, at=firing.NEVER) for each in documents.values()]
    return items, idle


def _states(self: Scheduled, schedules: Iterable[Schedule]) -> Flow[dict[str, State]]:
    """Return the states of the last tasks of schedules."""
    last_tasks = dict.fromkeys(
        schedule.standing.last_task
        for schedule in schedules
        if schedule.standing.last_task is not None
    )
    tasks = (yield from self.heads(list(last_tasks)).flow()) if last_tasks else []
    return {task.task_id: task.state for task in tasks if task is not None}


def _fitting(items: Sequence[_Item]) -> list[_Item]:
    """Return the first of these whose tasks fit into one submission."""
    fitting: list[_Item] = []
    tasks = 0
    for item in items:
        tasks += len(item.firing.tasks)
        if tasks > limits.SUBMIT_BATCH and fitting:
            break
        fitting.append(item)
    return fitting


def _commit(
    self: Scheduled, now: int, items: Sequence[_Item], idle: Sequence[Document]
) -> Flow[list[tuple[str, ScheduleRun]]]:
    """Carry out what was decided: all at once, or one by one if the store refuses a task."""
    replaced = [item.firing.cancels for item in items if item.firing.cancels is not None]
    if replaced:
        yield from self.cancel(replaced).flow()
    try:
        return (yield from _carry_out(self, now, items, idle))
    except UnknownDependency:
        raise Overtaken from None  # a task that another was to wait for was deleted meanwhile
    except (InvalidInput, Conflict) as error:
        if len(items) == 1:
            (item,) = items
            refused = firing.refuse(item.firing, item.before, f"{error.code}: {error}")
            return (yield from _carry_out(self, now, [item._replace(firing=refused)], idle))
    handled: list[tuple[str, ScheduleRun]] = []
    for item in items:
        single = item._replace(firing=item.firing._replace(cancels=None))
        handled += yield from _commit(self, now, [single], idle)
        idle = ()
    return handled


def _carry_out(
    self: Scheduled, now: int, items: Sequence[_Item], idle: Sequence[Document]
) -> Flow[list[tuple[str, ScheduleRun]]]:
    handled = [(item.before.schedule_id, run) for item in items for run in item.firing.runs]
    late = [
        now - firing.fire_time(item.before, run.tick)
        for item in items
        for run in item.firing.runs
        if run.outcome is Outcome.FIRED
    ]
    counts = yield from _counted(self, now, handled, late)
    puts = [_document_of(item.firing.schedule, item.stored) for item in items]
    tasks = [task for item in items for task in item.firing.tasks]
    written = yield from self.submit_along(tasks, KIND, [*puts, *idle, *counts])
    if written is not Written.DONE:
        raise Overtaken
    return handled


def _counted(
    self: Documents, now: int, handled: Sequence[tuple[str, ScheduleRun]], late: Iterable[int]
) -> Flow[list[Document]]:
    """Return the document of counts with these ticks, if there are any."""
    if not handled:
        return []
    _, (stored,) = yield from self.read_documents(KIND, [_COUNTS])
    before = TickCounts() if stored is None else counting.decode(stored.value)
    value = counting.encode(before.counted(now, handled, late))
    version = 0 if stored is None else stored.version
    return [Document(_COUNTS, value, firing.NEVER, version=version)]
