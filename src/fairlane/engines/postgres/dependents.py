"""What follows when tasks end: their unique keys are freed, and their dependents are released.

All of it is part of the transaction that ends the tasks. Nothing here waits for a row that another
transaction has locked: such dependents are left over, and the next claims release them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.dependencies import Dependency, dependency_on
from fairlane.core.flow import Flow
from fairlane.core.machine import DOOM, FREE, Place
from fairlane.core.states import State
from fairlane.core.uniqueness import counts
from fairlane.engines.postgres.calls import BEGIN, COMMIT, Chore, Query
from fairlane.engines.postgres.moves import Ended, Found, end
from fairlane.engines.postgres.rows import Row, array, array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("dependents")

_ROUNDS = 50
"""How many generations of doomed dependents to cancel at once; each takes a few statements."""


class Resolved(NamedTuple):
    """`released`: tasks became ready. `budget`: how many more dependencies may be resolved.
    `more`: dependencies are left over."""

    released: bool
    budget: int
    more: bool


def release_dependents(ended: Iterable[Ended]) -> Flow[bool]:
    """Free the keys of tasks that ended, and release their dependents. Return whether to wake."""
    ended = list(ended)
    if not ended:
        return False
    bound = [task.task_id for task in ended if task.bound]
    if bound:
        yield from leave_parents(bound)
    states = {task.task_id: task.state for task in ended}
    yield from _free_keys(states)
    resolved = yield from resolve(states, limits.BATCH)
    return resolved.released or resolved.more


def leave_parents(children: Sequence[str]) -> Flow[None]:
    """Delete the dependencies of tasks that no longer wait for their parents."""
    yield Query(SQL["leave_parents"], (array_of_ids(children),))


def resolve(ended: Mapping[str, State], budget: int) -> Flow[Resolved]:
    """Release or cancel the dependents of tasks that have ended, replayed since or not."""
    if not ended:
        return Resolved(released=False, budget=budget, more=False)
    known = dict(ended)
    latest = dict(ended)
    released = False
    rounds = 0
    while latest and budget > 0 and rounds < _ROUNDS:
        rounds += 1
        ids, states = array_of_ids(list(latest)), array(state.code for state in latest.values())
        rows = yield Query(SQL["bonds"], (ids, states, budget))
        if not rows:
            latest = {}
            break
        budget -= len(rows)
        broken, met = _judge(rows)
        if met:
            released |= yield from _free(met)
        latest = {}
        if broken:
            yield from leave_parents(sorted(broken))
            doomed = yield from doom(broken)
            latest = {task.task_id: State.CANCELLED for task in doomed if task.linked}
            yield from _free_keys(latest)
        known |= latest
    ids, states = array_of_ids(list(known)), array(state.code for state in known.values())
    yield Query(SQL["note_parents"], (ids, states))
    return Resolved(released, budget, more=budget <= 0 or bool(latest))


def _judge(rows: list[Row]) -> tuple[set[str], list[tuple[str, str]]]:
    """Return the children that are doomed, and the met dependencies (parent, child) of others."""
    met = []
    broken = set()
    for parent, state, child, tolerant in rows:
        if dependency_on(State.of(state), tolerant=tolerant) is Dependency.BROKEN:
            broken.add(child)
        else:
            met.append((parent, child))
    return broken, [pair for pair in met if pair[1] not in broken]


def _free(met: list[tuple[str, str]]) -> Flow[bool]:
    """Delete met dependencies, and free children without others. Return whether one is ready."""
    assert FREE.place is Place.RESET, FREE  # the statement writes it out
    parents, children = zip(*met, strict=True)
    yield Query(SQL["drop_bonds"], (array_of_ids(parents), array_of_ids(children)))
    ((released,),) = yield Query(
        SQL["free"], (array_of_ids(sorted(set(children))), FREE.verb.value)
    )
    return bool(released)


def doom(children: Iterable[str]) -> Flow[list[Found]]:
    """Cancel tasks of which a parent did not complete."""
    return (yield from end(sorted(children), frozenset({State.SCHEDULED}), DOOM))


def _free_keys(ended: Mapping[str, State]) -> Flow[None]:
    """Free the unique keys of tasks that ended, unless the key counts in the new state as well."""
    if not ended:
        return
    rows = yield Query(SQL["keys_held"], (array_of_ids(list(ended)),))
    keys = [key for task_id, key, states in rows if not counts(states, ended[task_id])]
    if keys:
        yield Query(SQL["drop_keys"], (keys,))


def link(budget: int = limits.BATCH) -> Flow[Resolved]:
    """Mark the parents of fresh dependencies as linked, in a transaction of its own.

    Dependents of a parent that has ended in the meantime are released. Inside a caller's
    transaction nothing happens: until it commits, nobody else can see the dependencies.
    """
    yield BEGIN
    rows = yield Chore(SQL["fresh_parents"], (limits.BATCH,))
    resolved = Resolved(released=False, budget=budget, more=len(rows) == limits.BATCH)
    if rows:
        parents = sorted({parent for (parent,) in rows})
        rows = yield Query(SQL["link"], (array_of_ids(parents),))
        linked = {parent for (parent,) in rows}
        if linked:
            yield Query(SQL["bonds_are_linked"], (array_of_ids(sorted(linked)),))
        rest = [parent for parent in parents if parent not in linked]
        if rest:
            rows = yield Query(SQL["ends_of"], (array_of_ids(rest),))
            ended = {parent: State.of(state) for parent, state in rows}
            resolved = _combine(resolved, (yield from resolve(ended, budget)))
    yield COMMIT
    return resolved


def release_left_over() -> Flow[Resolved]:
    """Release dependents that were left over when their parents ended, in other transactions."""
    linked = yield from link()
    yield BEGIN
    rows = yield Query(SQL["noted_parents"], (limits.BATCH,))
    ended = {parent: State.of(state) for parent, state in rows}
    resolved = yield from resolve(ended, linked.budget)
    yield COMMIT
    return _combine(linked, resolved)


def _combine(one: Resolved, two: Resolved) -> Resolved:
    return Resolved(one.released or two.released, two.budget, one.more or two.more)
