"""What happens to the ticks of a schedule that are due. Pure: the time is an argument.

A process looks at a schedule when a tick is due, or as soon as it can. All ticks that are due then
are handled in one step: some are fired, the others are recorded with the reason. A tick that was
handled is never looked at again, so no clock and no number of processes fires it twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from fairlane.core import limits
from fairlane.core.model import NewTask, Spec, microseconds_of
from fairlane.core.priority import MICROSECONDS
from fairlane.core.recurrence import (
    Tick,
    count_ticks,
    newest_tick,
    newest_ticks,
    next_tick,
    preview,
)
from fairlane.core.schedules import (
    Missed,
    Outcome,
    Overlap,
    Pause,
    Schedule,
    ScheduleRun,
    Standing,
    kept,
)
from fairlane.core.states import LIVE, State
from fairlane.core.text import storable

NEVER: Final = microseconds_of(datetime.max.replace(tzinfo=UTC))
ON_TIME: Final = 60 * MICROSECONDS
"""How late a tick may be fired that nobody wants when it is missed."""

_LOOK = int(limits.SCHEDULE_LOOK_SECONDS * MICROSECONDS)
_BEGUN = frozenset({State.EXECUTING, State.RETRYING})
_BAD = frozenset({State.FAILED, State.DEAD_LETTER})

replace = msgspec.structs.replace


class Firing(NamedTuple):
    """What is to be done about a schedule, in one step."""

    schedule: Schedule
    """As it stands afterwards."""
    tasks: list[NewTask]
    """To be submitted, the oldest tick first."""
    runs: list[ScheduleRun]
    """What became of which ticks."""
    cancels: str | None = None
    """The task that is replaced, to be cancelled in the same step."""


def due_at(schedule: Schedule) -> int:
    """Return when somebody has to look at a schedule again: at its next tick, or sooner because its
    tasks may have ended."""
    standing, next_at = schedule.standing, fires_at(schedule)
    if standing.pause is not None or standing.tick is None or not standing.unjudged:
        return next_at
    return min(next_at, standing.judged_at + _LOOK) if _is_watched(schedule) else next_at


def fires_at(schedule: Schedule) -> int:
    """Return when the next tick is fired, or the pause ends."""
    standing = schedule.standing
    if standing.pause is not None:
        return NEVER if standing.pause.until is None else standing.pause.until
    return NEVER if standing.tick is None else fire_time(schedule, standing.tick)


def fire_time(schedule: Schedule, tick: int) -> int:
    """Return when a tick is fired: with jitter that is later, but before the next tick.

    Every process gets the same.
    """
    longest = int(schedule.policy.jitter * MICROSECONDS)
    if not longest:
        return tick
    following = next_tick(schedule.rule, tick)
    gap = longest if following is None else following - tick
    seed = f"{schedule.schedule_id} {tick}".encode()
    part = int.from_bytes(blake2b(seed, digest_size=4).digest(), "big")
    return tick + (min(longest, gap) * part >> 32)


def fire(
    schedule: Schedule, now: int, last: State | None, new_id: Callable[[], str]
) -> Firing | None:
    """Decide about all ticks that are due. None: none is.

    `last` is the state of the schedule's last task, None if there is none or it was deleted. See
    `judge` for the others.
    """
    pause = schedule.standing.pause
    if pause is not None:
        if pause.until is None or pause.until > now:
            return None
        resumed, paused = resume(schedule, pause.until, Missed.SKIP)
        decided = fire(resumed, now, last, new_id)
        if decided is None:
            return Firing(resumed, [], paused)
        return decided._replace(runs=[*paused, *decided.runs])
    newest = _newest_of_stretch(schedule, now)
    if newest is None:
        return None
    chosen = _chosen(schedule, newest, now)
    runs = _missed(schedule, newest, chosen)
    left = schedule.standing.left
    if left is not None and len(chosen) > left:
        # If one of these is not fired, the schedule goes on: the others are left for the next step.
        chosen = chosen[:left]
        newest = chosen[-1]
    if chosen and _is_failing(schedule):
        failures = schedule.standing.failures
        note = f"It was paused after {failures} tasks had failed in a row."
        runs.append(ScheduleRun(chosen[-1], Outcome.PAUSED, None, len(chosen), note))
        return Firing(_after(schedule, newest, runs, pause=Pause(now, None, note)), [], runs)
    return _overlapping(schedule, newest, chosen, runs, last, new_id)


def judge(schedule: Schedule, states: Mapping[str, State], now: int) -> Schedule:
    """Count how tasks ended that nobody has counted yet, the oldest first.

    `states`: of its tasks that were not deleted. One that was deleted before counts as neither.
    """
    standing = schedule.standing
    failures, lives = standing.failures, []
    for task_id in standing.unjudged:
        state = states.get(task_id)
        if state in LIVE:
            lives.append(task_id)
        elif state in _BAD:
            failures += 1
        elif state is State.COMPLETED:
            failures = 0
    judged_at = now if _is_watched(schedule) else 0
    return replace(
        schedule,
        standing=replace(standing, unjudged=tuple(lives), judged_at=judged_at, failures=failures),
    )


def _is_watched(schedule: Schedule) -> bool:
    """Return whether it matters how each of its tasks ends."""
    return schedule.policy.pause_after_failures is not None


def _is_failing(schedule: Schedule) -> bool:
    most = schedule.policy.pause_after_failures
    return most is not None and schedule.standing.failures >= most


def _newest_due(schedule: Schedule, now: int) -> int | None:
    """Return the newest tick that is due and was not handled."""
    since, tick = first_after(schedule), schedule.standing.tick
    if tick is not None:  # the first one: the same for many schedules, and so computed once
        since = max(since, tick - 1)
    newest = newest_tick(schedule.rule, since, _last_until(schedule, now))
    if newest is not None and fire_time(schedule, newest) > now:
        newest = newest_tick(schedule.rule, since, newest - 1)
    return newest


def _newest_of_stretch(schedule: Schedule, now: int) -> int | None:
    """Return the newest due tick, or the newest one of a pause: those after it, which nobody fired
    in time either, are handled in the next step, as the policy says."""
    newest = _newest_due(schedule, now)
    until = schedule.standing.catch_up_until
    if newest is None or schedule.standing.catch_up is None or newest <= until:
        return newest
    return newest_tick(schedule.rule, first_after(schedule), until) or newest


def first_after(schedule: Schedule) -> int:
    """Return the time after which the ticks begin that were not handled."""
    since, starts_at = schedule.standing.since, schedule.policy.starts_at
    return since if starts_at is None else max(since, starts_at - 1)


def _last_until(schedule: Schedule, time: int) -> int:
    """Return the time up to which there are ticks, if that is before another time."""
    standing, ends_at = schedule.standing, schedule.policy.ends_at
    if standing.left == 0:
        return standing.since
    return time if ends_at is None else min(time, ends_at)


def _chosen(schedule: Schedule, newest: int, now: int) -> Sequence[int]:
    """Return the due ticks that are fired unless something overlaps."""
    policy = schedule.policy
    oldest = now - int(policy.within * MICROSECONDS)
    chosen = [newest] if fire_time(schedule, newest) >= oldest else []
    standing = schedule.standing
    caught_up = standing.catch_up if newest <= standing.catch_up_until else None
    match caught_up or policy.missed:
        case Missed.SKIP:
            chosen = chosen if now - fire_time(schedule, newest) <= ON_TIME else []
        case Missed.ALL:
            jitter = int(policy.jitter * MICROSECONDS)
            after = max(first_after(schedule), oldest - jitter - 1)
            ticks = newest_ticks(schedule.rule, after, newest, policy.most)
            # A tick is as old as the time at which it should have been fired. Those are in order.
            too_old = bisect_left(ticks, oldest, key=partial(fire_time, schedule))
            chosen = ticks[too_old:]
    return chosen


def _missed(schedule: Schedule, newest: int, chosen: Sequence[int]) -> list[ScheduleRun]:
    """Record the due ticks before those that were chosen."""
    until = chosen[0] - 1 if chosen else newest
    if schedule.standing.tick is not None and schedule.standing.tick > until:
        return []
    return _passed_over(schedule, until, Outcome.MISSED)


def _passed_over(schedule: Schedule, until: int, outcome: Outcome) -> list[ScheduleRun]:
    """Record the ticks up to a time that are not fired."""
    since, until = first_after(schedule), _last_until(schedule, until)
    newest = newest_tick(schedule.rule, since, until)
    if newest is None:
        return []
    count = count_ticks(schedule.rule, since, until, limits.TICKS_COUNTED)
    return [ScheduleRun(newest, outcome, None, count)]


def _overlapping(
    schedule: Schedule,
    newest: int,
    chosen: Sequence[int],
    runs: list[ScheduleRun],
    last: State | None,
    new_id: Callable[[], str],
) -> Firing:
    """Fire the chosen ticks, as far as the last task allows it."""
    overlap, last_task = schedule.policy.overlap, schedule.standing.last_task
    parent: str | None = None
    cancels: str | None = None
    if last in LIVE and last_task is not None and chosen:
        if overlap is Overlap.QUEUE and last in _BEGUN:
            parent = last_task
        elif overlap is Overlap.REPLACE:
            cancels = last_task
        elif overlap is not Overlap.ALLOW:
            runs.append(ScheduleRun(chosen[-1], Outcome.OVERLAP, last_task, len(chosen)))
            chosen = []
    if overlap is Overlap.REPLACE and len(chosen) > 1:
        runs.append(ScheduleRun(chosen[-2], Outcome.OVERLAP, None, len(chosen) - 1))
        chosen = chosen[-1:]
    skipped: Sequence[int] = ()
    if overlap is Overlap.QUEUE:  # one runs, unless one does already, and one waits
        room = 2 if parent is None else 1
        chosen, skipped = chosen[:room], chosen[room:]
    tasks: list[NewTask] = []
    for tick in chosen:
        task = task_of(schedule, new_id(), tick, parent)
        tasks.append(task)
        parent = None if overlap is Overlap.ALLOW else task.task_id
        runs.append(ScheduleRun(tick, Outcome.FIRED, task.task_id))
    if skipped:
        runs.append(ScheduleRun(skipped[-1], Outcome.OVERLAP, tasks[-1].task_id, len(skipped)))
    return Firing(_after(schedule, newest, runs), tasks, runs, cancels)


def task_of(
    schedule: Schedule, task_id: str, tick: int, parent: str | None = None, *, chosen: bool = False
) -> NewTask:
    """Return the task of a tick. `parent` is the task that has to end before."""
    spec: Spec = replace(
        schedule.template.spec,
        schedule_id=schedule.schedule_id,
        tick=tick,
        zone=schedule.zone,
        depends_on=() if parent is None else (parent,),
        tolerant=parent is not None,
    )
    return schedule.template.task(task_id, schedule.payload, spec, chosen=chosen)


def _after(
    schedule: Schedule, newest: int, runs: Sequence[ScheduleRun], pause: Pause | None = None
) -> Schedule:
    """Return a schedule whose ticks up to the newest one are handled."""
    standing = schedule.standing
    fired = [run for run in runs if run.outcome is Outcome.FIRED]
    left = None if standing.left is None else standing.left - len(fired)
    standing = replace(recorded(standing, runs), since=newest, left=left, pause=pause)
    if fired:
        standing = replace(
            standing,
            last_at=fired[-1].tick,
            last_task=fired[-1].task_id,
            unjudged=_unjudged(schedule, [run.task_id for run in fired if run.task_id is not None]),
        )
    return _caught_up(align(replace(schedule, standing=standing)))


def _caught_up(schedule: Schedule) -> Schedule:
    """Return a schedule that has nothing of a pause to catch up, if no tick of it is left."""
    standing = schedule.standing
    tick, until = standing.tick, standing.catch_up_until
    if standing.catch_up is None or (tick is not None and tick <= until and not standing.pause):
        return schedule
    return replace(schedule, standing=replace(standing, catch_up=None, catch_up_until=0))


def _unjudged(schedule: Schedule, fired: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks that are still to be judged after these were fired. If no failure pauses the
    schedule, the last one is enough to tell people."""
    most = limits.SCHEDULE_UNJUDGED if _is_watched(schedule) else 1
    return (*schedule.standing.unjudged, *fired)[-most:]


def recorded(standing: Standing, runs: Sequence[ScheduleRun]) -> Standing:
    """Return the standing with these runs recorded and counted."""
    counts = dict.fromkeys(Outcome, 0)
    for run in runs:
        counts[run.outcome] += run.count
    return replace(
        standing,
        runs=kept((*standing.runs, *runs)),
        fired=standing.fired + counts[Outcome.FIRED],
        skipped=standing.skipped
        + counts[Outcome.OVERLAP]
        + counts[Outcome.PAUSED]
        + counts[Outcome.REFUSED],
        missed=standing.missed + counts[Outcome.MISSED],
    )


def align(schedule: Schedule) -> Schedule:
    """Return the schedule with its next tick, as its rule has it now.

    That changes without a change of the schedule when a country changes its time zone.
    """
    tick = None if schedule.standing.left == 0 else next_tick(schedule.rule, first_after(schedule))
    ends_at = schedule.policy.ends_at
    if tick is not None and ends_at is not None and tick > ends_at:
        tick = None
    return replace(schedule, standing=replace(schedule.standing, tick=tick))


def upcoming(schedule: Schedule, count: int) -> list[Tick]:
    """Return the next ticks of a schedule, as it stands. There is none while it is paused without
    an end, or if nobody can tell them here."""
    if schedule.problem is not None:
        return []
    standing, ends_at = schedule.standing, schedule.policy.ends_at
    after = first_after(schedule)
    if standing.pause is not None:
        if standing.pause.until is None:
            return []
        after = max(after, standing.pause.until)
    if standing.left is not None:
        count = min(count, standing.left)
    ticks = preview(schedule.rule, after, count)
    return [each for each in ticks if ends_at is None or microseconds_of(each.at) <= ends_at]


def next_at(schedule: Schedule, ticks: Sequence[Tick]) -> int | None:
    """Return when a schedule with these upcoming ticks fires next. If nobody can tell them here,
    that is what the process has stored that handled the last one."""
    if schedule.problem is not None and schedule.standing.pause is None:
        return schedule.standing.tick
    return microseconds_of(ticks[0].at) if ticks else None


def resume(schedule: Schedule, now: int, missed: Missed) -> tuple[Schedule, list[ScheduleRun]]:
    """End a pause. `missed` says what becomes of the ticks in it: see `Missed`."""
    standing = replace(schedule.standing, pause=None, failures=0, unjudged=())
    if missed is not Missed.SKIP:
        standing = replace(standing, catch_up=missed, catch_up_until=now)
        return _caught_up(align(replace(schedule, standing=standing))), []
    runs = _passed_over(schedule, now, Outcome.PAUSED)
    since = max(now, standing.since)
    standing = replace(recorded(standing, runs), since=since)
    return align(replace(schedule, standing=standing)), runs


def refuse(firing: Firing, before: Schedule, reason: str) -> Firing:
    """Return the firing without its tasks, because the store does not take them."""
    ticks = [run for run in firing.runs if run.outcome is Outcome.FIRED]
    others = [run for run in firing.runs if run.outcome is not Outcome.FIRED]
    text = storable(reason, limits.SCHEDULE_REASON_CHARACTERS)
    runs = [*others, ScheduleRun(ticks[-1].tick, Outcome.REFUSED, None, len(ticks), text)]
    standing = recorded(before.standing, runs)
    since = firing.schedule.standing.since
    standing = replace(standing, since=since, pause=None)
    return Firing(_caught_up(align(replace(before, standing=standing))), [], runs)
