"""What follows when tasks end: their unique keys are freed, and their dependents are released.

`Accounts` collect the tasks that end in a transaction. The transaction calls `release_dependents`
before it posts them. If nothing in the store is unique or depends on others, that costs one small
statement per batch.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.dependencies import Dependency, dependency_on
from fairlane.core.flow import Flow
from fairlane.core.machine import DOOM, FREE
from fairlane.core.states import State
from fairlane.core.uniqueness import counts
from fairlane.engines.files import statements
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.calls import WAKE, Execute, ExecuteMany
from fairlane.engines.sqlite.moves import apply_move, standing

SQL = statements(__package__, "dependents")


class Concerns(NamedTuple):
    """Whether the store has anything that the end of a task could affect."""

    bonds: bool
    keys: bool
    breakers: bool


def concerns() -> Flow[Concerns]:
    """Read whether the store has any of each."""
    (found,) = yield Execute(SQL["concerns"])
    return Concerns._make(found)


def release_dependents(accounts: Accounts, now: int, known: Concerns | None = None) -> Flow[bool]:
    """Free the keys of tasks that ended, and release up to 500 of their dependents.

    Returns whether dependents are left for the next claims. Wakes waiting workers if a task became
    ready, or if dependents are left.
    """
    concern = known or (yield from concerns())
    yield from _note(accounts, concern)
    if not concern.bonds:
        return False
    ready, left = yield from _resolve(accounts, now, concern)
    if ready or left:
        yield WAKE
    return left


def _note(accounts: Accounts, concern: Concerns) -> Flow[None]:
    """Free the keys of tasks that ended since the last call, and note those that are parents."""
    for state, task_ids in accounts.ended.items():
        ids = json.dumps(task_ids)
        if concern.keys:
            held = (yield Execute(SQL["keys"], (ids,))).fetchall()
            freed = [(key,) for key, states in held if not counts(states, state)]
            yield ExecuteMany(SQL["drop_key"], freed)
        if concern.bonds:
            yield Execute(SQL["cut_loose"], (ids,))
            yield Execute(SQL["note_parents"], (state.code, ids))
    accounts.ended.clear()


def _resolve(accounts: Accounts, now: int, concern: Concerns) -> Flow[tuple[bool, bool]]:
    """Resolve bonds to parents that have ended: (something became ready, some are left)."""
    budget = limits.BATCH
    ready = False
    while True:
        row = (yield Execute(SQL["next_parent"])).fetchone()
        if row is None or not budget:
            return ready, row is not None
        parent, state = row
        found = (yield Execute(SQL["bonds"], (parent, budget))).fetchall()
        kinds: dict[Dependency, list[str]] = {Dependency.MET: [], Dependency.BROKEN: []}
        for child, tolerant in found:
            kinds[dependency_on(State.of(state), tolerant=bool(tolerant))].append(child)
        if kinds[Dependency.MET]:
            ready |= yield from _meet(parent, kinds[Dependency.MET], accounts, now)
        if kinds[Dependency.BROKEN]:
            for task in (yield from standing(kinds[Dependency.BROKEN])):
                yield from apply_move(task, DOOM, now, accounts)
            yield from _note(accounts, concern)
        if len(found) < budget:
            yield Execute(SQL["drop_parent"], (parent,))
        budget -= len(found)


def _meet(parent: str, children: list[str], accounts: Accounts, now: int) -> Flow[bool]:
    """Release children of a parent that ended well. Returns whether one became ready."""
    ids = json.dumps(children)
    yield Execute(SQL["drop_bonds"], (parent, ids))
    free = [child for (child,) in (yield Execute(SQL["free"], (ids,)))]
    ready = False
    for task in (yield from standing(free)) if free else ():
        delayed = yield Execute(SQL["due_by_clock"], (task.number, now))
        if not delayed.rowcount:
            yield from apply_move(task, FREE, now, accounts)
            ready = True
    return ready
