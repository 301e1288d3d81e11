"""What becomes of the ticks that are due: a row for each case, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.firing import (
    NEVER,
    ON_TIME,
    align,
    due_at,
    fire,
    fire_time,
    fires_at,
    judge,
    next_at,
    refuse,
    resume,
    task_of,
    upcoming,
)
from fairlane.core.model import microseconds_of
from fairlane.core.recurrence import Cron, cron, every
from fairlane.core.schedules import (
    Missed,
    Outcome,
    Overlap,
    Pause,
    Policy,
    Schedule,
    ScheduleRun,
    ScheduleState,
    Standing,
    Template,
)
from fairlane.core.states import LIVE, State
from tests.unit.make import NOW, SECOND, quick, task_id

HOUR = 3600 * SECOND
LAST = task_id(999)
FIRED, OVERLAP, MISSED = Outcome.FIRED, Outcome.OVERLAP, Outcome.MISSED
PAUSED, REFUSED = Outcome.PAUSED, Outcome.REFUSED
REPLACED = [(1, OVERLAP, 1), (2, FIRED, 1)]
"""The third tick is handled later: only then it is known whether the count admits it."""
ALL_FIRED = [(1, FIRED), (2, FIRED), (3, FIRED)]


def scheduled(rule: Any = None, standing: dict[str, Any] | None = None, **policy: Any) -> Schedule:
    """One that fires every hour, and whose ticks were handled up to noon."""
    return align(
        Schedule(
            schedule_id="daily",
            rule=rule or every(3600),
            template=Template(type="work"),
            payload=b"{}",
            policy=Policy(**policy),
            note="",
            standing=Standing(since=NOW, left=policy.get("count"), **(standing or {})),
        )
    )


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: task_id(next(numbers))


def fired(schedule: Schedule, now: int, last: State | None = None) -> Any:
    return fire(schedule, now, last, ids())


def told(schedule: Schedule, hours: float, last: State | None = None) -> list[tuple[Any, ...]]:
    """What became of which hour so long after noon, the newest of several, and of how many."""
    decided = fired(schedule, NOW + int(hours * HOUR), last)
    return [((run.tick - NOW) / HOUR, run.outcome, run.count) for run in decided.runs]


def test_nothing_is_done_before_a_tick() -> None:
    schedule = scheduled()
    assert due_at(schedule) == NOW + HOUR
    assert fired(schedule, NOW + HOUR - 1) is None
    assert fired(schedule, NOW - HOUR) is None  # a clock that was set back


def test_a_tick_becomes_a_task() -> None:
    schedule = scheduled(cron("0 * * * *", "Europe/Berlin"))
    decided = fired(schedule, NOW + HOUR)
    (task,) = decided.tasks
    assert (task.task_id, task.type, task.payload) == (task_id(1), "work", b"{}")
    assert (task.spec.schedule_id, task.spec.tick) == ("daily", NOW + HOUR)
    assert (task.spec.zone, task.depends_on, task.chosen) == ("Europe/Berlin", (), False)
    assert decided.runs == [ScheduleRun(NOW + HOUR, FIRED, task_id(1))]
    after = decided.schedule.standing
    assert (after.since, after.tick) == (NOW + HOUR, NOW + 2 * HOUR)
    assert (after.last_at, after.last_task, after.unjudged) == (
        *(NOW + HOUR, task_id(1)),
        (task_id(1),),
    )
    assert (after.fired, after.runs) == (1, tuple(decided.runs))
    assert after.version == schedule.standing.version
    assert fired(decided.schedule, NOW + HOUR) is None


@pytest.mark.parametrize(
    ("policy", "hours", "expected"),
    [
        ({}, 1, [(1, FIRED, 1)]),
        ({}, 3.5, [(2, MISSED, 2), (3, FIRED, 1)]),
        ({"missed": Missed.SKIP}, 3, [(2, MISSED, 2), (3, FIRED, 1)]),
        ({"missed": Missed.SKIP}, 3 + 1 / 60, [(2, MISSED, 2), (3, FIRED, 1)]),
        ({"missed": Missed.SKIP}, 3 + 2 / 60, [(3, MISSED, 3)]),
        ({"missed": Missed.ALL}, 3.5, [(1, FIRED, 1), (2, FIRED, 1), (3, FIRED, 1)]),
        ({"missed": Missed.ALL, "most": 2}, 3.5, [(1, MISSED, 1), (2, FIRED, 1), (3, FIRED, 1)]),
        ({"within": 1800.0}, 3.6, [(3, MISSED, 3)]),
        ({"within": 1800.0}, 3.5, [(2, MISSED, 2), (3, FIRED, 1)]),
        ({"missed": Missed.ALL, "within": 5400.0}, 3.6, [(2, MISSED, 2), (3, FIRED, 1)]),
        ({"missed": Missed.ALL, "within": 1800.0}, 3.6, [(3, MISSED, 3)]),
        ({"count": 1}, 3.5, [(2, MISSED, 2), (3, FIRED, 1)]),
        ({"count": 2, "missed": Missed.ALL}, 3.5, [(1, FIRED, 1), (2, FIRED, 1)]),
        ({"count": 2, "missed": Missed.ALL, "overlap": Overlap.REPLACE}, 3.5, REPLACED),
        ({"ends_at": NOW + 2 * HOUR}, 3.5, [(1, MISSED, 1), (2, FIRED, 1)]),
        ({"ends_at": NOW + 2 * HOUR, "missed": Missed.SKIP}, 3.5, [(2, MISSED, 2)]),
        ({"starts_at": NOW + 3 * HOUR}, 4, [(3, MISSED, 1), (4, FIRED, 1)]),
        ({"starts_at": NOW + 3 * HOUR - 1, "missed": Missed.ALL}, 3, [(3, FIRED, 1)]),
    ],
    ids=str,
)
def test_ticks_that_nobody_fired(policy: dict[str, Any], hours: float, expected: Any) -> None:
    assert told(scheduled(**policy), hours) == expected


@pytest.mark.parametrize(
    ("overlap", "last", "expected"),
    [
        *((overlap, None, (FIRED, "at once", None)) for overlap in Overlap),
        *((overlap, State.COMPLETED, (FIRED, "at once", None)) for overlap in Overlap),
        *((overlap, State.DEAD_LETTER, (FIRED, "at once", None)) for overlap in Overlap),
        *((Overlap.SKIP, state, (OVERLAP, None, None)) for state in (State.QUEUED, State.RETRYING)),
        (Overlap.SKIP, State.EXECUTING, (OVERLAP, None, None)),
        (Overlap.SKIP, State.SCHEDULED, (OVERLAP, None, None)),
        (Overlap.QUEUE, State.EXECUTING, (FIRED, "after it", None)),
        (Overlap.QUEUE, State.RETRYING, (FIRED, "after it", None)),
        (Overlap.QUEUE, State.QUEUED, (OVERLAP, None, None)),
        (Overlap.QUEUE, State.SCHEDULED, (OVERLAP, None, None)),
        (Overlap.REPLACE, State.EXECUTING, (FIRED, "at once", LAST)),
        (Overlap.REPLACE, State.QUEUED, (FIRED, "at once", LAST)),
        (Overlap.ALLOW, State.EXECUTING, (FIRED, "at once", None)),
    ],
)
def test_a_last_task_that_may_not_have_ended(
    overlap: Overlap, last: State | None, expected: Any
) -> None:
    schedule = scheduled(overlap=overlap, standing={"last_task": LAST, "last_at": NOW})
    decided = fired(schedule, NOW + HOUR, last)
    (run,) = decided.runs
    waits = {(): "at once", (LAST,): "after it"}
    place = next((waits[task.depends_on] for task in decided.tasks), None)
    assert (run.outcome, place, decided.cancels) == expected
    if run.outcome is OVERLAP:
        assert run.task_id == LAST
        assert decided.schedule.standing.last_task == LAST
        assert decided.schedule.standing.skipped == 1


@pytest.mark.parametrize(
    ("overlap", "last", "parents", "expected"),
    [
        (Overlap.SKIP, None, [(), (1,), (2,)], ALL_FIRED),
        (Overlap.SKIP, State.QUEUED, [], [(3, OVERLAP)]),
        (Overlap.QUEUE, State.EXECUTING, [(999,)], [(1, FIRED), (3, OVERLAP)]),
        (Overlap.QUEUE, None, [(), (1,)], [(1, FIRED), (2, FIRED), (3, OVERLAP)]),
        (Overlap.QUEUE, State.SCHEDULED, [], [(3, OVERLAP)]),
        (Overlap.ALLOW, State.EXECUTING, [(), (), ()], ALL_FIRED),
        (Overlap.REPLACE, State.EXECUTING, [()], [(2, OVERLAP), (3, FIRED)]),
    ],
)
def test_several_at_once(overlap: Overlap, last: State | None, parents: Any, expected: Any) -> None:
    """They wait for each other, unless they may overlap. In a queue one waits at the most."""
    standing = {"last_task": LAST}
    schedule = scheduled(overlap=overlap, missed=Missed.ALL, standing=standing)
    decided = fired(schedule, NOW + 3 * HOUR, last)
    waits = [tuple(task_id(each) for each in some) for some in parents]
    assert [task.depends_on for task in decided.tasks] == waits
    assert all(task.spec.tolerant is bool(task.depends_on) for task in decided.tasks)
    assert [((run.tick - NOW) // HOUR, run.outcome) for run in decided.runs] == expected


def test_a_count_ends_a_schedule() -> None:
    schedule = scheduled(count=2)
    for hours in (1, 2):
        decided = fired(schedule, NOW + hours * HOUR)
        schedule = decided.schedule
    assert (schedule.standing.left, schedule.standing.tick) == (0, None)
    assert due_at(schedule) == NEVER
    assert fired(schedule, NOW + 9 * HOUR) is None


def test_what_is_skipped_does_not_count_as_fired() -> None:
    schedule = scheduled(count=2, standing={"last_task": LAST})
    decided = fired(schedule, NOW + HOUR, State.EXECUTING)
    assert decided.schedule.standing.left == 2


@pytest.mark.parametrize("policy", [{"count": 1}, {"ends_at": NOW + HOUR}])
def test_what_has_ended_has_no_ticks_that_a_pause_could_pass_over(policy: dict[str, Any]) -> None:
    schedule = fired(scheduled(**policy), NOW + HOUR).schedule
    pause = Pause(NOW + HOUR, NOW + 5 * HOUR)
    paused = replace(schedule, standing=replace(schedule.standing, pause=pause))
    assert due_at(paused) == NOW + 5 * HOUR
    decided = fired(paused, NOW + 9 * HOUR)
    assert (decided.runs, decided.tasks) == ([], [])
    assert (due_at(decided.schedule), decided.schedule.standing.pause) == (NEVER, None)
    assert resume(paused, NOW + 9 * HOUR, Missed.SKIP)[1] == []
    caught_up, _ = resume(paused, NOW + 9 * HOUR, Missed.ALL)
    assert fired(caught_up, NOW + 9 * HOUR) is None


def judged(schedule: Schedule, *states: State | None, now: int = NOW) -> Standing:
    """Its standing after somebody has looked at its tasks: None for one that was deleted."""
    found = {task_id(number): state for number, state in enumerate(states) if state is not None}
    return judge(schedule, found, now).standing


def unjudged(count: int, **policy: Any) -> Schedule:
    """One that has fired so many tasks of which nobody knows how they ended."""
    standing = {"unjudged": tuple(map(task_id, range(count))), "failures": 1}
    return scheduled(standing=standing, **policy)


FAILED, COMPLETED, QUEUED, DEAD = State.FAILED, State.COMPLETED, State.QUEUED, State.DEAD_LETTER


@pytest.mark.parametrize(
    ("states", "failures", "left"),
    [
        ([FAILED], 2, []),
        ([DEAD], 2, []),
        ([COMPLETED], 0, []),
        ([State.CANCELLED], 1, []),
        ([None], 1, []),
        *(([state], 1, [0]) for state in LIVE),
        ([FAILED] * 10, 11, []),
        ([FAILED, COMPLETED, DEAD], 1, []),
        ([QUEUED, FAILED, State.RETRYING, None, DEAD], 3, [0, 2]),
    ],
)
def test_failures_are_counted(states: list[Any], failures: int, left: list[int]) -> None:
    schedule = unjudged(len(states), overlap=Overlap.ALLOW, pause_after_failures=3)
    after = judged(schedule, *states)
    assert (after.failures, after.unjudged) == (failures, tuple(map(task_id, left)))
    assert judge(replace(schedule, standing=after), {}, NOW).standing.failures == failures


def test_all_tasks_of_one_that_is_paused_after_failures_are_remembered() -> None:
    policy: dict[str, Any] = {"missed": Missed.ALL, "most": 300, "within": 1e9}
    for hours, expected in ((3, 4), (250, limits.SCHEDULE_UNJUDGED)):
        schedule = unjudged(1, pause_after_failures=5, **policy)
        decided = fired(schedule, NOW + hours * HOUR)
        newest = [task.task_id for task in decided.tasks][-limits.SCHEDULE_UNJUDGED :]
        after = decided.schedule.standing.unjudged
        assert (len(after), after[-len(newest) :]) == (expected, tuple(newest))
    decided = fired(unjudged(1, **policy), NOW + 3 * HOUR)
    assert decided.schedule.standing.unjudged == (decided.tasks[-1].task_id,)


def test_somebody_looks_at_its_tasks_soon() -> None:
    """They may be deleted long before the next tick."""
    look = int(limits.SCHEDULE_LOOK_SECONDS * SECOND)
    schedule = judge(unjudged(1, pause_after_failures=3), {task_id(0): QUEUED}, NOW + 5)
    assert (due_at(schedule), fires_at(schedule)) == (NOW + 5 + look, NOW + HOUR)
    assert due_at(judge(schedule, {}, NOW + 6)) == NOW + HOUR
    late = judge(schedule, {task_id(0): QUEUED}, NOW + HOUR - 1)
    assert due_at(late) == NOW + HOUR
    assert due_at(judge(unjudged(1), {task_id(0): QUEUED}, NOW)) == NOW + HOUR
    pause = replace(schedule.standing, pause=Pause(NOW, None))
    assert due_at(replace(schedule, standing=pause)) == NEVER
    ended = replace(schedule.standing, tick=None)
    assert due_at(replace(schedule, standing=ended)) == NEVER


def test_who_fails_too_often_is_paused() -> None:
    standing = {"last_task": LAST, "failures": 3, "unjudged": (task_id(7),)}
    schedule = scheduled(pause_after_failures=3, missed=Missed.ALL, most=2, standing=standing)
    decided = fired(schedule, NOW + 3 * HOUR, State.FAILED)
    note = "It was paused after 3 tasks had failed in a row."
    assert decided.runs == [
        ScheduleRun(NOW + HOUR, MISSED),
        ScheduleRun(NOW + 3 * HOUR, PAUSED, None, 2, note),
    ]
    after = decided.schedule.standing
    assert (decided.tasks, after.pause) == ([], Pause(NOW + 3 * HOUR, None, note))
    assert (after.skipped, after.missed) == (2, 1)
    assert due_at(decided.schedule) == NEVER
    resumed, _ = resume(decided.schedule, NOW + 3 * HOUR, Missed.SKIP)
    assert (resumed.standing.failures, resumed.standing.unjudged) == (0, ())
    assert fired(resumed, NOW + 4 * HOUR, State.FAILED).tasks


def test_who_fails_less_often_is_not() -> None:
    schedule = scheduled(pause_after_failures=3, standing={"last_task": LAST, "failures": 2})
    assert fired(schedule, NOW + HOUR, State.FAILED).tasks


# -- pauses ----------------------------------------------------------------------------------------


def paused(until: int | None, **policy: Any) -> Schedule:
    return scheduled(standing={"pause": Pause(NOW, until)}, **policy)


def test_nothing_is_fired_in_a_pause() -> None:
    assert due_at(paused(None)) == NEVER
    assert fired(paused(None), NOW + 5 * HOUR) is None
    assert due_at(paused(NOW + 5 * HOUR)) == NOW + 5 * HOUR
    assert fired(paused(NOW + 5 * HOUR), NOW + 5 * HOUR - 1) is None


@pytest.mark.parametrize(
    ("until", "hours", "expected"),
    [
        (2, 2, [(2, PAUSED, 2)]),
        (2, 3, [(2, PAUSED, 2), (3, FIRED, 1)]),
        (2, 5, [(2, PAUSED, 2), (4, MISSED, 2), (5, FIRED, 1)]),
        (0.5, 0.5, []),
    ],
)
def test_a_pause_that_ends(until: float, hours: float, expected: Any) -> None:
    schedule = paused(NOW + int(until * HOUR))
    assert told(schedule, hours) == expected
    after = fired(schedule, NOW + int(hours * HOUR)).schedule
    assert after.standing.pause is None
    assert after.standing.tick == NOW + (int(hours) + 1) * HOUR


@pytest.mark.parametrize(
    ("missed", "hours", "expected"),
    [
        (Missed.SKIP, 4, [(4, FIRED, 1)]),
        (Missed.ONCE, 3, [(2, MISSED, 2), (3, FIRED, 1)]),
        (Missed.ALL, 3, [(1, FIRED, 1), (2, FIRED, 1), (3, FIRED, 1)]),
    ],
)
def test_ticks_of_a_pause(missed: Missed, hours: int, expected: Any) -> None:
    """Whatever the policy of the schedule says about ticks that nobody fired."""
    resumed, runs = resume(paused(None, missed=Missed.SKIP), NOW + 3 * HOUR, missed)
    skipped = [ScheduleRun(NOW + 3 * HOUR, PAUSED, None, 3)] if missed is Missed.SKIP else []
    assert runs == skipped
    assert resumed.standing.skipped == sum(run.count for run in skipped)
    assert (resumed.standing.pause, resumed.standing.failures) == (None, 0)
    assert told(resumed, hours) == expected
    after = fired(resumed, NOW + hours * HOUR).schedule
    assert after.standing.catch_up is None


@pytest.mark.parametrize("missed", [Missed.ONCE, Missed.ALL])
def test_a_pause_without_ticks_leaves_nothing_to_catch_up(missed: Missed) -> None:
    resumed, _ = resume(paused(None, missed=Missed.SKIP), NOW + HOUR // 2, missed)
    assert (resumed.standing.catch_up, resumed.standing.catch_up_until) == (None, 0)
    assert told(resumed, 11.5) == [(11, MISSED, 11)]


def test_only_ticks_of_a_pause_are_caught_up() -> None:
    """And not those of an outage after it."""
    schedule = paused(None, missed=Missed.SKIP)
    resumed, _ = resume(schedule, NOW + 2 * HOUR + HOUR // 2, Missed.ALL)
    assert told(resumed, 9.5) == [(1, FIRED, 1), (2, FIRED, 1)]
    after = fired(resumed, NOW + 9 * HOUR).schedule
    assert (after.standing.catch_up, due_at(after)) == (None, NOW + 3 * HOUR)
    assert told(after, 9.5) == [(9, MISSED, 7)]


def test_a_count_may_cut_what_is_caught_up() -> None:
    policy: dict[str, Any] = {"count": 2, "overlap": Overlap.REPLACE, "missed": Missed.SKIP}
    resumed, _ = resume(paused(None, **policy), NOW + 3 * HOUR, Missed.ALL)
    decided = fired(resumed, NOW + 3 * HOUR + HOUR // 2)
    assert [(run.outcome, run.count) for run in decided.runs] == [(OVERLAP, 1), (FIRED, 1)]
    assert told(decided.schedule, 3.5) == [(3, FIRED, 1)]


def test_a_zone_that_changed_may_take_the_ticks_of_a_pause_away() -> None:
    standing = {"catch_up": Missed.ALL, "catch_up_until": NOW + HOUR - 1}
    schedule = scheduled(standing=standing, missed=Missed.SKIP)
    assert told(schedule, 2.5) == [(2, MISSED, 2)]
    assert fired(schedule, NOW + 2 * HOUR).schedule.standing.catch_up is None


def test_a_clock_that_was_set_back_fires_nothing_again_after_a_pause() -> None:
    schedule = scheduled(standing={"pause": Pause(NOW, None)})
    resumed, runs = resume(schedule, NOW - 5 * HOUR, Missed.SKIP)
    assert (resumed.standing.since, resumed.standing.tick, runs) == (NOW, NOW + HOUR, [])


# -- jitter ----------------------------------------------------------------------------------------


def test_without_jitter_a_tick_is_fired_when_it_is() -> None:
    assert fire_time(scheduled(), NOW + HOUR) == NOW + HOUR


def test_jitter_is_the_same_for_every_process_and_for_ever() -> None:
    schedule = scheduled(jitter=600.0)
    late = [fire_time(schedule, NOW + hour * HOUR) - NOW - hour * HOUR for hour in range(3)]
    assert late == [210_810_213, 489_808_392, 383_487_292]


@quick
@given(jitter=st.floats(0, 100_000), hour=st.integers(0, 10_000))
def test_jitter_lies_before_the_next_tick(jitter: float, hour: int) -> None:
    schedule, tick = scheduled(jitter=jitter), NOW + hour * HOUR
    assert tick <= fire_time(schedule, tick) <= tick + min(HOUR - 1, jitter * SECOND)


def test_the_last_tick_of_all_may_have_jitter() -> None:
    last = next(iter(every(86_400).after(NEVER - 86_400 * SECOND)))
    schedule = scheduled(every(86_400), jitter=3600.0)
    assert last <= fire_time(schedule, last) < last + HOUR


def test_with_jitter_the_tick_before_counts_until_then() -> None:
    schedule = scheduled(jitter=600.0)
    at = fire_time(schedule, NOW + HOUR)
    assert due_at(schedule) == at
    assert fired(schedule, at - 1) is None
    assert told(schedule, (at - NOW) / HOUR) == [(1, FIRED, 1)]
    second = fire_time(schedule, NOW + 2 * HOUR)
    assert told(schedule, (second - 1 - NOW) / HOUR) == [(1, FIRED, 1)]
    assert told(schedule, (second - NOW) / HOUR) == [(1, MISSED, 1), (2, FIRED, 1)]


def test_what_is_late_by_its_jitter_alone_is_on_time() -> None:
    schedule = scheduled(jitter=3000.0, missed=Missed.SKIP)
    at = fire_time(schedule, NOW + HOUR)
    assert at > NOW + HOUR + ON_TIME
    assert told(schedule, (at - NOW) / HOUR) == [(1, FIRED, 1)]


@quick
@given(jitter=st.floats(0, 7_200), hour=st.integers(0, 1_000), missed=st.sampled_from(Missed))
def test_what_is_looked_at_on_time_is_never_too_old(
    jitter: float, hour: int, missed: Missed
) -> None:
    """However much later than its tick that is."""
    schedule = scheduled(jitter=jitter, within=600.0, missed=missed)
    standing = replace(schedule.standing, since=NOW + hour * HOUR)
    schedule = align(replace(schedule, standing=standing))
    decided = fired(schedule, due_at(schedule))
    assert [run.outcome for run in decided.runs] == [FIRED]


def test_ticks_are_as_old_as_the_time_at_which_they_are_fired() -> None:
    schedule = scheduled(jitter=3_000.0, within=7_200.0, missed=Missed.ALL)
    times = [fire_time(schedule, NOW + hour * HOUR) for hour in range(1, 6)]
    for now, expected in ((times[4] + 7_200 * SECOND, [5]), (times[3] + 7_200 * SECOND, [4, 5])):
        decided = fired(schedule, now)
        chosen = [(run.tick - NOW) // HOUR for run in decided.runs if run.outcome is FIRED]
        later = [6] if fire_time(schedule, NOW + 6 * HOUR) <= now else []
        assert chosen[: len(expected)] == expected
        assert chosen[len(expected) :][:1] == later


# -- refusals --------------------------------------------------------------------------------------


def test_what_the_store_refuses_is_recorded() -> None:
    schedule = scheduled(missed=Missed.ALL, most=2, count=5, standing={"last_task": LAST})
    firing = fired(schedule, NOW + 3 * HOUR, State.COMPLETED)
    refused = refuse(firing, schedule, "too_many_lanes: x" + "\ud800" + "y" * 1_000)
    (missed, run) = refused.runs
    assert missed == ScheduleRun(NOW + HOUR, MISSED)
    assert (run.tick, run.outcome, run.task_id, run.count) == (NOW + 3 * HOUR, REFUSED, None, 2)
    assert run.reason.startswith("too_many_lanes: x\\ud800y")
    assert len(run.reason) == limits.SCHEDULE_REASON_CHARACTERS
    after = refused.schedule.standing
    assert (after.since, after.tick) == (NOW + 3 * HOUR, NOW + 4 * HOUR)
    assert (after.last_task, after.left, after.fired) == (LAST, 5, 0)
    assert (after.skipped, after.missed) == (2, 1)
    assert (refused.tasks, refused.cancels) == ([], None)


def test_a_refusal_ends_a_pause_that_is_over() -> None:
    schedule = paused(NOW + 2 * HOUR)
    refused = refuse(fired(schedule, NOW + 3 * HOUR), schedule, "no")
    assert [run.outcome for run in refused.runs] == [PAUSED, REFUSED]
    assert refused.schedule.standing.pause is None


# -- whatever happens ------------------------------------------------------------------------------


def test_runs_that_are_kept_are_bounded() -> None:
    schedule = scheduled(missed=Missed.ALL, most=1_000, within=1e9, overlap=Overlap.ALLOW)
    decided = fired(schedule, NOW + 500 * HOUR)
    assert len(decided.tasks) == 500
    standing = decided.schedule.standing
    assert (len(standing.runs), standing.fired) == (limits.SCHEDULE_RUNS, 500)
    assert standing.runs[-1].tick == NOW + 500 * HOUR


def test_a_run_besides_the_ticks_knows_its_schedule() -> None:
    task = task_of(scheduled(), LAST, NOW + 5, chosen=True)
    assert (task.task_id, task.chosen, task.spec.tick) == (LAST, True, NOW + 5)
    assert (task.spec.schedule_id, task.spec.zone) == ("daily", "UTC")


@quick
@given(
    policy=st.fixed_dictionaries(
        {
            "missed": st.sampled_from(Missed),
            "most": st.integers(1, 4),
            "within": st.sampled_from([1800.0, 7200.0, 1e9]),
            "overlap": st.sampled_from(Overlap),
            "jitter": st.sampled_from([0.0, 900.0]),
            "ends_at": st.sampled_from([None, NOW + 9 * HOUR]),
            "count": st.sampled_from([None, 3]),
        }
    ),
    looks=st.lists(st.integers(0, 6 * 60), max_size=8),
    last=st.sampled_from([None, *State]),
)
def test_every_tick_is_handled_once(
    policy: dict[str, Any], looks: list[int], last: State | None
) -> None:
    """However often and however late somebody looks, in order and without a gap."""
    schedule, now, new_id = scheduled(**policy), NOW, ids()
    handled = NOW
    for minutes in looks:
        now += minutes * 60 * SECOND
        while (decided := fire(schedule, now, last, new_id)) is not None:
            schedule = decided.schedule
            for run in decided.runs:
                handled += run.count * HOUR
                assert run.tick == handled
            assert schedule.standing.since == handled <= min(now, policy["ends_at"] or NEVER)
            assert len(decided.tasks) == sum(run.outcome is FIRED for run in decided.runs)
        assert due_at(schedule) > now
        assert schedule.standing.left in {None, 0} or schedule.standing.fired < 3


@pytest.mark.parametrize(
    ("standing", "policy", "hours"),
    [
        ({}, {}, [1, 2, 3]),
        ({}, {"count": 2}, [1, 2]),
        ({}, {"ends_at": NOW + 2 * HOUR}, [1, 2]),
        ({}, {"starts_at": NOW + 5 * HOUR}, [5, 6, 7]),
        ({"pause": Pause(NOW)}, {}, []),
        ({"pause": Pause(NOW, NOW + 4 * HOUR)}, {}, [5, 6, 7]),
        ({"pause": Pause(NOW, NOW + 4 * HOUR)}, {"ends_at": NOW + 5 * HOUR}, [5]),
    ],
)
def test_ticks_to_come(standing: Any, policy: Any, hours: list[int]) -> None:
    schedule = scheduled(standing=standing, **policy)
    ticks = [microseconds_of(tick.at) for tick in upcoming(schedule, 3)]
    assert ticks == [NOW + hour * HOUR for hour in hours]
    assert next_at(schedule, upcoming(schedule, 1)) == next(iter(ticks), None)
    paused = schedule.standing.pause is not None
    assert schedule.state is (ScheduleState.PAUSED if paused else ScheduleState.ACTIVE)


def test_a_schedule_whose_zone_is_not_known_here() -> None:
    """Its next tick is what another process has stored; the others are not known."""
    rule = Cron("0 * * * *", "Mars/Olympus")
    schedule = replace(scheduled(), rule=rule)
    assert "The time zone 'Mars/Olympus' is not known here" in (schedule.problem or "")
    assert upcoming(schedule, 3) == []
    assert next_at(schedule, []) == NOW + HOUR
    paused = replace(schedule, standing=replace(schedule.standing, pause=Pause(NOW)))
    assert next_at(paused, []) is None
    assert scheduled().problem is None


def test_a_schedule_without_ticks_has_ended() -> None:
    schedule = scheduled(ends_at=NOW)
    assert (schedule.state, upcoming(schedule, 3)) == (ScheduleState.ENDED, [])
