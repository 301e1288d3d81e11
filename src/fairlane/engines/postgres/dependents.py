"""What the end of a task takes where others depend on it, or where it holds a unique key.

Everything here is part of the transaction that ends the task. Nothing here waits for a row that
someone else has locked: what cannot be done now is noted, and claims come back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.dependencies import Bond, bond
from fairlane.core.flow import Flow
from fairlane.core.machine import DOOM, FREE
from fairlane.core.states import State
from fairlane.core.uniqueness import counts
from fairlane.engines.postgres.calls import BEGIN, COMMIT, Chore, Query
from fairlane.engines.postgres.moves import Ended, Found, end
from fairlane.engines.postgres.rows import Row, array, array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("dependents")

_ROUNDS = 50
"""How deep a doom is followed at once; each round is a few statements."""


class Resolved(NamedTuple):
    """What became of bonds: whether tasks became ready, how many bonds may still be looked at, and
    whether there is more to do."""

    released: bool
    budget: int
    more: bool


def release_dependents(ended: Iterable[Ended]) -> Flow[bool]:
    """Do what the end of these tasks takes. True when claims have something new to look at."""
    ended = list(ended)
    if not ended:
        return False
    bound = [task.task_id for task in ended if task.bound]
    if bound:
        yield from leave_parents(bound)
    states = {task.task_id: task.state for task in ended}
    yield from _give_up_keys(states)
    resolved = yield from resolve(states, limits.BATCH)
    return resolved.released or resolved.more


def leave_parents(children: Sequence[str]) -> Flow[None]:
    """Cut the bonds of tasks that no longer wait for others."""
    yield Query(SQL["leave_parents"], (array_of_ids(children),))


def resolve(ended: Mapping[str, State], budget: int) -> Flow[Resolved]:
    """Let go, or doom, what waits for tasks that have ended (and may have been replayed since)."""
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
        broken, met = _sorted_out(rows)
        if met:
            released |= yield from _let_go(met)
        latest = {}
        if broken:
            yield from leave_parents(sorted(broken))
            doomed = yield from doom(broken)
            latest = {task.task_id: State.CANCELLED for task in doomed if task.linked}
            yield from _give_up_keys(latest)
        known |= latest
    ids, states = array_of_ids(list(known)), array(state.code for state in known.values())
    yield Query(SQL["note_parents"], (ids, states))
    return Resolved(released, budget, more=budget <= 0 or bool(latest))


def _sorted_out(rows: list[Row]) -> tuple[set[str], list[tuple[str, str]]]:
    """The children that are doomed, and the bonds (parent, child) of others that are met."""
    met = []
    broken = set()
    for parent, state, child, tolerant in rows:
        if bond(State.of(state), tolerant=tolerant) is Bond.BROKEN:
            broken.add(child)
        else:
            met.append((parent, child))
    return broken, [pair for pair in met if pair[1] not in broken]


def _let_go(met: list[tuple[str, str]]) -> Flow[bool]:
    parents, children = zip(*met, strict=True)
    yield Query(SQL["cut"], (array_of_ids(parents), array_of_ids(children)))
    ((released,),) = yield Query(
        SQL["free"], (array_of_ids(sorted(set(children))), FREE.verb.value)
    )
    return bool(released)


def doom(children: Iterable[str]) -> Flow[list[Found]]:
    """Cancel tasks one of whose parents did not complete."""
    return (yield from end(sorted(children), frozenset({State.SCHEDULED}), DOOM))


def _give_up_keys(ended: Mapping[str, State]) -> Flow[None]:
    """Of tasks that end at this moment, unless their state still counts."""
    if not ended:
        return
    rows = yield Query(SQL["keys_held"], (array_of_ids(list(ended)),))
    keys = [key for task_id, key, states in rows if not counts(states, ended[task_id])]
    if keys:
        yield Query(SQL["give_up_keys"], (keys,))


def link(budget: int = limits.BATCH) -> Flow[Resolved]:
    """See to bonds that are fresh, in a transaction of its own: mark their parents as linked.

    What waits for a parent that has ended in the meantime is resolved. Inside a caller's
    transaction nothing happens: until that commits, nobody else can see the bonds.
    """
    yield BEGIN
    rows = yield Chore(SQL["fresh_bonds"], (limits.BATCH,))
    resolved = Resolved(released=False, budget=budget, more=len(rows) == limits.BATCH)
    if rows:
        parents = sorted({parent for (parent,) in rows})
        rows = yield Query(SQL["link"], (array_of_ids(parents),))
        linked = {parent for (parent,) in rows}
        if linked:
            yield Query(SQL["bonds_are_old"], (array_of_ids(sorted(linked)),))
        rest = [parent for parent in parents if parent not in linked]
        if rest:
            rows = yield Query(SQL["ends_of"], (array_of_ids(rest),))
            ended = {parent: State.of(state) for parent, state in rows}
            resolved = _both(resolved, (yield from resolve(ended, budget)))
    yield COMMIT
    return resolved


def release_left_over() -> Flow[Resolved]:
    """Go on with what ends of tasks have left to do, in transactions of its own."""
    linked = yield from link()
    yield BEGIN
    rows = yield Query(SQL["noted_parents"], (limits.BATCH,))
    ended = {parent: State.of(state) for parent, state in rows}
    resolved = yield from resolve(ended, linked.budget)
    yield COMMIT
    return _both(linked, resolved)


def _both(one: Resolved, two: Resolved) -> Resolved:
    return Resolved(one.released or two.released, two.budget, one.more or two.more)
