"""Faults in how the core declares and fires schedules, each beside the test that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import firing
from fairlane.core.documents import Document, Written, write
from fairlane.core.flow import Flow
from fairlane.core.model import NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.schedules import Missed, Outcome, Overlap, Schedule
from fairlane.core.scheduling import besides, declaring, due, stored, sweeping
from fairlane.core.states import LIVE, State
from fairlane.engines.postgres.engine import PostgresOperations
from fairlane.engines.redis.engine import RedisOperations
from fairlane.engines.sqlite.engine import SqliteOperations
from tests.conformance import test_schedule_edges as edges
from tests.conformance import test_schedule_faults as faults
from tests.conformance import test_schedules as plain
from tests.fixtures.stores import World
from tests.mutants.planting import Break, replaced, together

Check = Callable[[World, pytest.MonkeyPatch], Any]
Fault = tuple[Break, Check]


def shown(test: Any, *parameters: Any) -> Check:
    """A test, with values for what it is parametrized with."""

    def check(store: World, patch: pytest.MonkeyPatch) -> Any:
        names = test.__code__.co_varnames[: test.__code__.co_argcount]
        return test(store, *([patch] if "monkeypatch" in names else []), *parameters)

    return check


# -- what is written -------------------------------------------------------------------------------

ENGINES: tuple[Any, ...] = (SqliteOperations, PostgresOperations, RedisOperations)
SUBMIT_ALONG = {engine: engine.submit_along for engine in ENGINES}


def everywhere(faulty: Callable[..., Flow[Any]]) -> Break:
    return together(*(replaced(engine, "submit_along", faulty) for engine in ENGINES))


def _loses_tasks(
    self: Any, _: Sequence[NewTask], kind: str, puts: Sequence[Document], __: Any = ()
) -> Flow[Any]:
    return (yield from SUBMIT_ALONG[type(self)](self, [], kind, puts))


def _moves_nothing_on(
    self: Any, tasks: Sequence[NewTask], _: str, __: Sequence[Document], ___: Any = ()
) -> Flow[Any]:
    if tasks:
        yield from self.submit(tasks).flow()
    return []


# -- what is decided -------------------------------------------------------------------------------

_fire, _chosen, _judge, _passed_over = (
    firing.fire,
    firing._chosen,
    firing.judge,
    firing._passed_over,
)
_task_of, _after, _decide, _commit = (
    firing.task_of,
    firing._after,
    due._decide,
    due._commit,
)
_newest_due, _declared, _overlapping, _resume, _is_left_out = (
    firing._newest_due,
    declaring._declared,
    firing._overlapping,
    firing.resume,
    sweeping._is_left_out,
)
_document_of = stored.document_of
_MINUTE = 60_000_000


def _with_policy(decide: Callable[..., Any], schedule: Schedule, *args: Any, **change: Any) -> Any:
    return decide(replace(schedule, policy=replace(schedule.policy, **change)), *args)


def policy(name: str, decide: Callable[..., Any], **change: Any) -> Break:
    """A decision that goes by another policy than that of the schedule."""
    return replaced(firing, name, lambda *args: _with_policy(decide, *args, **change))


def _unpaused(schedule: Schedule) -> Schedule:
    return replace(schedule, standing=replace(schedule.standing, pause=None))


_due_at = firing.due_at
_ignores_pauses = together(
    replaced(stored, "due_at", lambda schedule: _due_at(_unpaused(schedule))),
    replaced(firing, "fire", lambda schedule, *args: _fire(_unpaused(schedule), *args)),
)


def _stays_paused(schedule: Schedule, *args: Any) -> Any:
    return None if schedule.standing.pause else _fire(schedule, *args)


def _declares_the_pause_away(new: Any, before: Schedule | None, *args: Any) -> Schedule:
    found = _declared(new, before, *args)
    return found if found is before else _unpaused(found)


def _begins_anew(new: Any, before: Schedule | None, now: int, owner: str | None) -> Schedule:
    found = _declared(new, before, now, owner)
    return firing.align(replace(found, standing=replace(found.standing, since=now)))


def _never_resets_failures(schedule: Schedule, states: Mapping[str, State], now: int) -> Schedule:
    others = {each: state for each, state in states.items() if state is not State.COMPLETED}
    return _judge(schedule, others, now)


def _counts_a_failure_again(schedule: Schedule, states: Mapping[str, State], now: int) -> Schedule:
    after = _judge(schedule, states, now)
    unjudged = schedule.standing.unjudged
    return replace(after, standing=replace(after.standing, unjudged=unjudged))


def _remembers_the_last_task(schedule: Schedule, fired: Sequence[str]) -> tuple[str, ...]:
    return tuple(fired)[-1:]


def _differs() -> Break:
    """Every process fires it later than the one before."""
    late = count(60, 60)

    def fire_time(_: Schedule, tick: int) -> int:
        return tick + next(late) * MICROSECONDS

    return replaced(firing, "fire_time", fire_time)


def _waits_for_nobody(
    schedule: Schedule, task_id: str, tick: int, parent: str | None = None, *, chosen: bool = False
) -> NewTask:
    return _task_of(schedule, task_id, tick, None, chosen=chosen)


def _forgets_the_last_task(*args: Any, **options: Any) -> Schedule:
    after = _after(*args, **options)
    return replace(after, standing=replace(after.standing, last_task=None))


def _looks_again(schedule: Schedule, newest: int, *args: Any, **options: Any) -> Schedule:
    return _after(schedule, newest - 1, *args, **options)


def _cancels_nothing(self: Any, items: Sequence[Any], idle: Any) -> Any:
    return _commit(
        self,
        [item._replace(firing=item.firing._replace(cancels=None)) for item in items],
        idle,
    )


def _raises_refusals(self: Any, items: Any, idle: Any) -> Any:
    return (yield from due._carry_out(self, items, idle))


def _stumbles(self: Any, due: Sequence[Document], now: int, step: Any) -> Any:
    for each in due:
        assert stored.schedule_of(each) is not None
    return (yield from _decide(self, due, now, step))


def _takes_everything(step: Any, item: Any) -> bool:
    step.items.append(item)
    return True


def _leaves_out_what_does_not_fit(self: Any, due: Sequence[Document], now: int, step: Any) -> Any:
    yield from _decide(self, due, now, step)
    return True


def _stays_where_it_is(schedule: Schedule, stored: Document | None) -> Document:
    document = _document_of(schedule, stored)
    return document if stored is None else replace(document, at=stored.at)


def _counts_nothing(*_: Any) -> Flow[list[Document]]:
    yield from ()
    return []


def _answers_without_writing(self: Any, kind: str, puts: Any, *args: Any, **options: Any) -> Any:
    if kind == stored.OWNER:
        return Written.DONE
    return (yield from write(self, kind, puts, *args, **options))


def _knows_no_bound(self: Any, kind: str, puts: Any, drops: Any = (), **_: Any) -> Any:
    return write(self, kind, puts, drops)


def _repeats(self: Any, stored: Document, schedule: Schedule, tasks: Any, run: Any) -> Any:
    forgotten = replace(schedule, standing=replace(schedule.standing, runs=()))
    return _submit_besides(self, stored, forgotten, tasks, run)


_submit_besides = besides._submit_besides

TICK = shown(plain.test_a_tick_submits_a_task)
MISSED = {
    each: shown(
        plain.test_ticks_that_nobody_fired,
        each,
        {
            Missed.SKIP: [(Outcome.MISSED, 5)],
            Missed.ONCE: [(Outcome.MISSED, 4), (Outcome.FIRED, 1)],
            Missed.ALL: [(Outcome.MISSED, 2), *[(Outcome.FIRED, 1)] * 3],
        }[each],
    )
    for each in Missed
}
FAILS_TWICE = shown(
    edges.test_how_tasks_ended_counts_although_they_were_deleted,
    [edges.BROKEN] * 2,
    Outcome.PAUSED,
)
OVERLAP = {each: shown(plain.test_a_task_that_has_not_ended, each) for each in Overlap}

CORE: dict[str, Fault] = {
    "a tick is lost": (everywhere(_loses_tasks), TICK),
    "a tick is fired again": (everywhere(_moves_nothing_on), TICK),
    "a tick is not moved on from": (replaced(firing, "_after", _looks_again), TICK),
    "an overlap is ignored": (
        policy("_overlapping", _overlapping, overlap=Overlap.ALLOW),
        OVERLAP[Overlap.SKIP],
    ),
    "a task that is retried has ended": (
        replaced(firing, "LIVE", LIVE - {State.RETRYING}),
        shown(plain.test_a_task_that_is_retried_overlaps),
    ),
    "whatever was fired has ended": (
        replaced(firing, "_after", _forgets_the_last_task),
        OVERLAP[Overlap.SKIP],
    ),
    "a task that was queued does not wait": (
        replaced(firing, "task_of", _waits_for_nobody),
        OVERLAP[Overlap.QUEUE],
    ),
    "what is caught up runs at once": (
        replaced(firing, "task_of", _waits_for_nobody),
        shown(plain.test_missed_ticks_run_one_after_the_other),
    ),
    "several tasks wait in a queue": (
        policy("_overlapping", _overlapping, overlap=Overlap.SKIP),
        shown(edges.test_in_a_queue_one_waits_at_the_most),
    ),
    "what is replaced goes on": (
        replaced(due, "_commit", _cancels_nothing),
        OVERLAP[Overlap.REPLACE],
    ),
    "a pause is ignored": (_ignores_pauses, shown(plain.test_a_pause_survives_a_deployment)),
    "a pause ends with a deployment": (
        replaced(declaring, "_declared", _declares_the_pause_away),
        shown(plain.test_a_pause_survives_a_deployment),
    ),
    "a pause never ends by itself": (
        replaced(firing, "fire", _stays_paused),
        shown(plain.test_a_pause_may_end_by_itself),
    ),
    "ticks of a pause are never caught up": (
        replaced(firing, "resume", lambda schedule, now, _: _resume(schedule, now, Missed.SKIP)),
        shown(plain.test_ticks_of_a_pause_can_be_caught_up, Missed.ALL, 3),
    ),
    "what is caught up goes on for ever": (
        replaced(firing, "_newest_of_stretch", firing._newest_due),
        shown(edges.test_what_is_caught_up_ends_with_its_pause),
    ),
    "a deployment begins anew": (
        replaced(declaring, "_declared", _begins_anew),
        shown(plain.test_the_same_again_moves_nothing),
    ),
    "any change moves the next tick": (
        replaced(declaring, "_moments", lambda _: object()),
        shown(plain.test_the_same_again_moves_nothing),
    ),
    "another rule keeps the old ticks": (
        replaced(declaring, "_moments", lambda _: ()),
        shown(plain.test_another_rule_goes_on_from_now),
    ),
    **{
        f"what is missed is always {other}": (
            policy("_chosen", _chosen, missed=other),
            MISSED[wanted],
        )
        for wanted, other in (
            (Missed.SKIP, Missed.ONCE),
            (Missed.ONCE, Missed.ALL),
            (Missed.ALL, Missed.SKIP),
        )
    },
    "ticks are never too old": (policy("_chosen", _chosen, within=1e9), MISSED[Missed.ALL]),
    "missed ticks are not cut": (
        policy("_chosen", _chosen, most=1_000),
        shown(plain.test_a_million_missed_ticks_are_cut),
    ),
    "missed ticks are not told": (
        replaced(firing, "_passed_over", lambda *_: []),
        MISSED[Missed.ONCE],
    ),
    "an end is ignored": (
        together(
            policy("_newest_due", _newest_due, ends_at=None),
            policy("align", firing.align, ends_at=None),
        ),
        shown(edges.test_an_end_is_the_last_moment_at_which_it_fires),
    ),
    "a start is ignored": (
        replaced(firing, "first_after", lambda schedule: schedule.standing.since),
        shown(plain.test_a_start),
    ),
    "a schedule that has ended misses ticks": (
        replaced(firing, "_last_until", lambda _, time: time),
        shown(edges.test_a_count_ends_a_schedule_for_good),
    ),
    "failures are never forgotten": (
        replaced(firing, "judge", _never_resets_failures),
        shown(edges.test_a_success_ends_a_row_of_failures),
    ),
    "failures are not counted": (
        replaced(firing, "judge", lambda schedule, *_: schedule),
        shown(plain.test_a_schedule_that_keeps_failing_is_paused),
    ),
    "a failure counts again": (
        replaced(firing, "judge", _counts_a_failure_again),
        shown(edges.test_what_was_deleted_at_once_counts_as_neither),
    ),
    "a failure counts at the next tick only": (
        replaced(stored, "due_at", firing.fires_at),
        FAILS_TWICE,
    ),
    "of several tasks the last one counts": (
        replaced(firing, "_unjudged", _remembers_the_last_task),
        shown(edges.test_every_task_that_was_caught_up_counts),
    ),
    "jitter differs": (_differs(), shown(edges.test_jitter_and_a_tick_of_another_process)),
    "jitter is ignored": (
        replaced(firing, "fire_time", lambda _, tick: tick),
        shown(plain.test_jitter_is_the_same_for_everybody),
    ),
    "a clock that is set back fires again": (
        replaced(firing, "first_after", lambda schedule: schedule.standing.since - 7_200_000_000),
        shown(plain.test_a_clock_that_is_set_fires_nothing_twice),
    ),
    "one that is refused holds up the others": (
        replaced(due, "_commit", _raises_refusals),
        shown(plain.test_a_schedule_that_is_refused_does_not_hold_up_others),
    ),
    "one that cannot be read holds up the others": (
        replaced(due, "_decide", _stumbles),
        shown(plain.test_documents_that_cannot_be_read_hold_up_nobody),
    ),
    "more is submitted at once than fits": (
        replaced(due._Step, "take", _takes_everything),
        shown(plain.test_many_that_catch_up_are_fired_in_parts),
    ),
    "nobody knows that more is due": (
        replaced(due, "_decide", _leaves_out_what_does_not_fit),
        shown(plain.test_many_that_catch_up_are_fired_in_parts),
    ),
    "what another process could not read stays behind": (
        replaced(sweeping, "document_of", _stays_where_it_is),
        shown(faults.test_what_an_older_process_cannot_read_is_fired_by_a_newer_one),
    ),
    "a run is repeated": (
        replaced(besides, "_submit_besides", _repeats),
        shown(faults.test_who_runs_it_besides_its_ticks_dies, "run"),
    ),
    "nothing is counted": (
        replaced(due, "counted", _counts_nothing),
        shown(plain.test_many_schedulers_fire_every_tick_once),
    ),
    "what code no longer declares stays": (
        replaced(sweeping, "_is_left_out", lambda *_: False),
        shown(plain.test_what_code_no_longer_declares_is_dropped_after_a_day),
    ),
    "what nobody declares is dropped": (
        replaced(
            sweeping,
            "_is_left_out",
            lambda schedule, _, now: _is_left_out(
                schedule, {schedule.standing.owner: now}, now + _MINUTE
            ),
        ),
        shown(plain.test_what_code_no_longer_declares_is_dropped_after_a_day),
    ),
    "what may still be declared is dropped": (
        replaced(
            sweeping,
            "_is_left_out",
            lambda schedule, alive, now: _is_left_out(schedule, alive, now + _MINUTE),
        ),
        shown(plain.test_an_application_may_declare_nothing_any_more),
    ),
    "nobody notes who declares": (
        replaced(declaring, "write", _answers_without_writing),
        shown(plain.test_what_code_no_longer_declares_is_dropped_after_a_day),
    ),
    "anybody changes what code declares": (
        replaced(declaring, "_check_source", lambda *_: None),
        shown(plain.test_nobody_else_changes_what_code_declares),
    ),
    "code takes over what was made by hand": (
        replaced(declaring, "_check_source", lambda *_: None),
        shown(plain.test_code_takes_over_nothing_that_was_made_by_hand),
    ),
    "nobody learns who has taken one over": (
        replaced(declaring, "_taken_over", lambda *_: []),
        shown(plain.test_that_another_application_takes_one_over_is_recorded),
    ),
    "there may be any number": (
        replaced(declaring, "write", _knows_no_bound),
        shown(plain.test_there_is_a_limit_to_schedules),
    ),
}
