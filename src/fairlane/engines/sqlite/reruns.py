"""rerun: tasks of a workflow that have ended run again, each after its parents."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlane.core.dependencies import Dependency, dependency_on
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import COMPLETE, Move, Verb
from fairlane.core.model import Replayed
from fairlane.core.reruns import Rerun, move_of
from fairlane.core.states import State
from fairlane.engines.files import statements
from fairlane.engines.sqlite import dependents
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.calls import WAKE, Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.control import SQL as CONTROL
from fairlane.engines.sqlite.dependencies import SQL as DEPENDENCIES
from fairlane.engines.sqlite.moves import SQL as MOVES
from fairlane.engines.sqlite.moves import TaskRow, apply_move, standing

SQL = statements(__package__, "reruns")


@writes
def rerun(self: Context, reruns: Sequence[Rerun]) -> Flow[list[Replayed] | None]:
    checked_all([each.task_id for each in reruns])
    now = self.clock()
    accounts = Accounts()
    parents = json.dumps(sorted({parent for each in reruns for parent in each.parents}))
    if (yield from _any_noted(parents)):
        yield from dependents.release_dependents(accounts, now)
        if (yield from _any_noted(parents)):
            yield from accounts.post(now)
            return None
    rows = yield Execute(DEPENDENCIES["parents"], (parents,))
    states = {task_id: State.of(state) for task_id, state in rows}
    tasks = {task.task_id: task for task in (yield from standing([r.task_id for r in reruns]))}
    answers: list[Replayed] = []
    applied: list[str] = []
    for each in reruns:
        task = tasks.pop(each.task_id, None)
        if task is None:
            answers.append(Replayed(each.task_id, applied=False, state=None))
            continue
        state = State.of(task.state)
        parents_now = [states.get(parent) for parent in each.parents]
        move = move_of(each, state, task.version, parents_now)
        answers.append(Replayed(each.task_id, move is not None, state))
        if move is not None:
            yield from _apply(each, task, move, states, now, accounts)
            states[each.task_id] = move.state
            applied.append(each.task_id)
    yield from accounts.post(now)
    if applied:
        yield Execute(CONTROL["take_keys_again"], (json.dumps(applied),))
        yield WAKE
    return answers


def _any_noted(parents: str) -> Flow[bool]:
    """Return whether dependents of an earlier end of these parents are not released yet. New bonds
    would look like theirs."""
    ((noted,),) = yield Execute(SQL["any_noted"], (parents,))
    return bool(noted)


def _apply(
    rerun: Rerun,
    task: TaskRow,
    move: Move,
    states: dict[str, State],
    now: int,
    accounts: Accounts,
) -> Flow[None]:
    if task.state == State.COMPLETED.code:
        # The outcome, which goes now, was the record of this run.
        times = (task.started_at, task.completed_at, COMPLETE.run, None)
        yield Execute(MOVES["record_attempt"], (task.task_id, task.attempt, task.worker_id, *times))
    yield from apply_move(task, move, now, accounts)
    if move.verb is not Verb.REBIND:
        return
    yield Execute(SQL["wait_for_parents"], (task.number,))
    bonds = [
        (parent, task.task_id, rerun.tolerant)
        for parent in rerun.parents
        if parent in states
        and dependency_on(states[parent], tolerant=rerun.tolerant) is Dependency.PENDING
    ]
    yield ExecuteMany(DEPENDENCIES["bond"], bonds)
