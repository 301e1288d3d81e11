"""rerun: tasks of a workflow that have ended run again, each after its parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from fairlane.core.dependencies import Dependency, dependency_on
from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import Clears, Move, Place, Verb
from fairlane.core.model import Replayed
from fairlane.core.reruns import Rerun, move_of
from fairlane.core.states import TERMINAL, State
from fairlane.core.tally import TallyKey, keys_of
from fairlane.engines.postgres import dependents
from fairlane.engines.postgres.accounting import count
from fairlane.engines.postgres.calls import BEGIN, COMMIT, ROLLBACK, WAKE, Apart, Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.control import SQL as CONTROL
from fairlane.engines.postgres.deletion import SQL as DELETION
from fairlane.engines.postgres.dependencies import SQL as DEPENDENCIES
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("reruns")


class Stands(NamedTuple):
    """A task as it stands. `noted`: dependents of its last end are not released yet."""

    state: State
    version: int
    noted: bool


class Reruns(NamedTuple):
    """What is to be applied. `bonds` are (parent, child, tolerant)."""

    answers: list[Replayed]
    moves: dict[str, Move]
    bonds: list[tuple[str, str, bool]]


@writes
def rerun(self: Context, reruns: Sequence[Rerun]) -> Flow[list[Replayed] | None]:
    ids = [each.task_id for each in reruns]
    checked_all(ids)
    if not ids:
        return []
    parents = {parent for each in reruns for parent in each.parents}
    yield BEGIN
    everything = array_of_ids(sorted(parents.union(ids)))
    # What has ended cannot move now, and nothing can be deleted: see deletion.sql.
    yield Query(DELETION["lock_outcomes"], (everything,))
    yield Query(DEPENDENCIES["lock_parents"], (everything,))
    rows = yield Query(SQL["stand"], (everything,))
    tasks = {task_id: Stands(State.of(state), *rest) for task_id, state, *rest in rows}
    if any(tasks[parent].noted for parent in parents & tasks.keys()):
        # New bonds would look like those of the dependents that are left over.
        yield ROLLBACK
        yield Apart(dependents.release_left_over)
        return None
    found = _decide(reruns, tasks)
    keyed: set[str] = set()
    for move in dict.fromkeys(found.moves.values()):
        keyed |= yield from _apply([each for each, of in found.moves.items() if of is move], move)
    if keyed:
        unique = [task_id for task_id in found.moves if task_id in keyed]
        yield Query(CONTROL["take_keys_again"], (array_of_ids(unique),))
    if found.bonds:
        bound_to, children, tolerant = zip(*found.bonds, strict=True)
        # None of the parents is marked as linked yet.
        columns = (array_of_ids(bound_to), array_of_ids(children), list(tolerant))
        yield Query(DEPENDENCIES["add_bonds"], (*columns, [True] * len(children)))
    yield COMMIT
    if found.bonds:
        yield from _link()
    if found.moves:
        yield WAKE
    return found.answers


def _decide(reruns: Sequence[Rerun], tasks: Mapping[str, Stands]) -> Reruns:
    states = {task_id: task.state for task_id, task in tasks.items()}
    found = Reruns([], {}, [])
    for each in reruns:
        task = tasks.get(each.task_id)
        if task is None or each.task_id in found.moves:
            found.answers.append(Replayed(each.task_id, applied=False, state=None))
            continue
        parents = {parent: states.get(parent) for parent in each.parents}
        move = move_of(each, task.state, task.version, parents.values())
        found.answers.append(Replayed(each.task_id, move is not None, task.state))
        if move is not None:
            found.moves[each.task_id] = move
            states[each.task_id] = move.state
            found.bonds.extend(
                (parent, each.task_id, each.tolerant)
                for parent, state in parents.items()
                if state is not None
                and dependency_on(state, tolerant=each.tolerant) is Dependency.PENDING
            )
    return found


def _apply(task_ids: list[str], move: Move) -> Flow[set[str]]:
    """Apply a move to tasks. Return those that have a unique key."""
    # The statement writes both out.
    assert (move.place, move.clears) == (Place.RESET, ~Clears.NOTHING), move
    states = [state.code for state in TERMINAL]
    values = (move.level, move.retry_count, move.returns, move.verb.value)
    rows = yield Query(
        CONTROL["replay"], (array_of_ids(task_ids), states, *values, move.verb is Verb.REBIND)
    )
    keys: list[TallyKey] = []
    keyed: set[str] = set()
    for applied, task_id, before, lane, level, _, has_key in rows:
        if applied:
            keys += keys_of(move, lane, level, before)
            if has_key:
                keyed.add(task_id)
    yield from count(keys)
    return keyed


def _link() -> Flow[None]:
    """Mark the parents of new bonds as linked. The next claims do what is left."""
    try:
        yield from dependents.link()
    except StoreUnavailable:
        with suppress(StoreUnavailable):
            yield ROLLBACK
