"""Operations that are composed of others, once for all engines.

Each runs as one operation on one connection: it asks the flows of the engine's own verbs. Engines
inherit them: see `composed`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from fairlane.core import limits
from fairlane.core.analysis import Analyser, Analysis
from fairlane.core.errors import InvalidFilter
from fairlane.core.estimates import PACE_SECONDS, Position, pace_of, position_of
from fairlane.core.facts import Facts, Sample, sample_of
from fairlane.core.filters import Filter, Found, Page, PageRoom, Total, cursor_of
from fairlane.core.flow import Flow, Op, reads, writes
from fairlane.core.ids import checked
from fairlane.core.machine import TRANSITIONS, Verb
from fairlane.core.model import Cancelled, Deleted, Replayed, Swept, Task
from fairlane.core.retention import past
from fairlane.core.states import State
from fairlane.core.stats import Stats, stats_of
from fairlane.core.tally import total_of
from fairlane.core.why import Reason, reasons


class Verbs(Protocol):
    """The operations that they are composed of."""

    def get(self, task_ids: Sequence[str]) -> Op[list[Task | None]]: ...
    def heads(self, task_ids: Sequence[str]) -> Op[list[Task | None]]: ...
    def find(self, filter: Filter, limit: int, cursor: str | None = None) -> Op[Found]: ...
    def facts(self) -> Op[Facts]: ...
    def samples(self, since: int, limit: int) -> Op[list[Sample]]: ...
    def cancel(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Cancelled]]: ...
    def replay(
        self,
        task_ids: Sequence[str],
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
        among: frozenset[State] | None = None,
    ) -> Op[list[Replayed]]: ...
    def delete(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Deleted]]: ...


@reads
def page(self: Verbs, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Page]:
    found = yield from self.find(filter, limit, cursor).flow()
    tasks: list[Task] = []
    room = PageRoom()
    for start in range(0, len(found.task_ids), limits.PAGE_READ):
        some = found.task_ids[start : start + limits.PAGE_READ]
        for task in (yield from self.get(some).flow()):
            if task is None:
                continue
            if not room.takes(task):
                return Page(tasks, cursor_of(tasks[-1].task_id))
            tasks.append(task)
    return Page(tasks, found.cursor)


@reads
def total(self: Verbs, filter: Filter) -> Flow[Total]:
    if filter.countable:
        facts = yield from self.facts().flow()
        admitted = {lane.id for lane in facts.lanes.values() if filter.admits_lane(lane)}
        count = total_of(facts.tallies, filter.states, admitted, filter.levels)
        return Total(count, exact=True)
    found = yield from self.find(filter, limits.PAGE).flow()
    return Total(len(found.task_ids), exact=found.cursor is None)


@reads
def stats(self: Verbs) -> Flow[Stats]:
    return stats_of((yield from self.facts().flow()))


@reads
def completions(
    self: Verbs, types: Collection[str], queues: frozenset[str] | None = None
) -> Flow[dict[str, int]]:
    facts = yield from self.facts().flow()
    found = dict.fromkeys(types, 0)
    lanes = {
        lane.id: lane.type
        for lane in facts.lanes.values()
        if lane.type in found and (queues is None or lane.queue in queues)
    }
    for key, times, _ in facts.tallies:
        if key.target == State.COMPLETED.code and key.lane in lanes:
            found[lanes[key.lane]] += times
    return found


@reads
def position(self: Verbs, task_ids: Sequence[str]) -> Flow[list[Position | None]]:
    tasks = yield from self.heads(task_ids).flow()
    facts = yield from self.facts().flow()
    samples = yield from self.samples(past(PACE_SECONDS, facts.now), limits.PAGE).flow()
    pace = pace_of([*samples, sample_of(facts.tallies, facts.now)])
    return [None if task is None else position_of(task, facts, pace) for task in tasks]


@reads
def why(self: Verbs, task_id: str) -> Flow[list[Reason] | None]:
    checked(task_id)
    (task,) = yield from self.heads([task_id]).flow()
    if task is None:
        return None
    facts = yield from self.facts().flow()
    parents = yield from self.heads(task.depends_on).flow()
    return reasons(task, facts, [parent for parent in parents if parent is not None])


@reads
def dlq_analysis(self: Verbs) -> Flow[Analysis]:
    dead = Filter(states=frozenset({State.DEAD_LETTER}))
    analysis = Analyser()
    cursor: str | None = None
    while analysis.count < limits.ANALYSED:
        found = yield from self.find(dead, limits.PAGE, cursor).flow()
        for start in range(0, len(found.task_ids), limits.ANALYSED_READ):
            some = found.task_ids[start : start + limits.ANALYSED_READ]
            for task in (yield from self.heads(some).flow()):
                if task is not None:
                    analysis.add(task)
        cursor = found.cursor
        if cursor is None:
            break
    return analysis.result(complete=cursor is None)


@writes
def cancel_where(self: Verbs, filter: Filter, cursor: str | None = None) -> Flow[Swept]:
    return (yield from _sweep(self, Verb.CANCEL, filter, cursor, self.cancel))


@writes
def replay_where(
    self: Verbs,
    filter: Filter,
    cursor: str | None = None,
    *,
    reset_retry_count: bool = True,
    level: int | None = None,
) -> Flow[Swept]:
    def replay(
        task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Replayed]]:
        return self.replay(task_ids, reset_retry_count=reset_retry_count, level=level, among=among)

    return (yield from _sweep(self, Verb.REPLAY, filter, cursor, replay))


@writes
def delete_where(self: Verbs, filter: Filter, cursor: str | None = None) -> Flow[Swept]:
    return (yield from _sweep(self, Verb.DELETE, filter, cursor, self.delete))


class _Apply(Protocol):
    def __call__(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[Sequence[Cancelled | Replayed | Deleted]]: ...


def _sweep(
    self: Verbs, verb: Verb, filter: Filter, cursor: str | None, apply: _Apply
) -> Flow[Swept]:
    """Apply a verb to one batch of the tasks that match, as far as it leads from their states."""
    allowed = TRANSITIONS[verb].sources
    states = allowed if filter.states is None else allowed & filter.states
    if not states:
        raise InvalidFilter(
            f"To {verb} tasks, choose among those that are {', '.join(sorted(allowed))}."
        )
    narrowed = Filter(
        **{name: getattr(filter, name) for name in filter.__struct_fields__ if name != "states"},
        states=states,
    )
    found = yield from self.find(narrowed, limits.BATCH, cursor).flow()
    if not found.task_ids:
        return Swept(0, 0, found.cursor)
    # A task that changed in the meantime no longer matches.
    answers = yield from apply(found.task_ids, among=states).flow()
    return Swept(len(answers), sum(answer.applied for answer in answers), found.cursor)
