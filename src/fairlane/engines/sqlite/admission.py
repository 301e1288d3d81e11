"""Which submissions are let in: idempotency keys and unique keys, in the order of the batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from fairlane.core import limits
from fairlane.core.errors import DuplicateTask, IdempotencyConflict
from fairlane.core.flow import Flow
from fairlane.core.machine import REPLACE
from fairlane.core.model import Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.submission import check_repeated, inputs_of
from fairlane.core.uniqueness import Hold, Mode
from fairlane.engines.files import statements
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.calls import Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.moves import apply_move, standing

SQL = statements(__package__, "admission")


class Admission:
    """The answers to what is not stored: earlier tasks, or (`echoes`) earlier ones of the batch."""

    def __init__(self) -> None:
        self.known: dict[str, Accepted] = {}
        self.echoes: dict[str, str] = {}


def admit(tasks: Sequence[NewTask], now: int, accounts: Accounts) -> Flow[Admission]:
    """Look at tasks that have a key of either kind; those that are let in take theirs."""
    admission = Admission()
    named = [task.idempotency_key for task in tasks if task.idempotency_key is not None]
    rows = yield Execute(SQL["keys"], (json.dumps(named), now))
    holders = {key: (task_id, bytes(fingerprint)) for key, task_id, fingerprint in rows}
    stored = yield from stored_answers([task_id for task_id, _ in holders.values()])
    taken: dict[str, NewTask] = {}
    uniques: dict[bytes, str] = {}
    for task in tasks:
        key = task.idempotency_key
        if key is not None:
            holder, fingerprint = holders.get(key, ("", None))
            if key in taken:
                fingerprint = taken[key].fingerprint
                admission.echoes[task.task_id] = taken[key].task_id
            elif holder in stored:
                admission.known[task.task_id] = stored[holder]
            else:
                fingerprint = task.fingerprint
            if fingerprint != task.fingerprint:
                raise IdempotencyConflict
            if task.task_id in admission.echoes or task.task_id in admission.known:
                continue
        if task.unique is not None:
            let_in = yield from _let_in(task, task.unique, uniques, admission, now, accounts)
            if not let_in:
                continue
        if key is not None:
            taken[key] = task
    yield from _take(taken, now)
    return admission


def _let_in(
    task: NewTask,
    hold: Hold,
    uniques: dict[bytes, str],
    admission: Admission,
    now: int,
    accounts: Accounts,
) -> Flow[bool]:
    """Return whether a unique task may be stored; it then has its key. Notes the answer if it may
    not."""
    if hold.key in uniques:
        if hold.mode is not Mode.EXISTING:
            raise DuplicateTask
        admission.echoes[task.task_id] = uniques[hold.key]
        return False
    row = (yield Execute(SQL["holder"], (hold.key,))).fetchone()
    if row is not None:
        holder, code, created_at = row
        state = State.of(code)
        if hold.blocks(state, created_at, now):
            if hold.mode is Mode.EXISTING:
                admission.known[task.task_id] = Accepted(holder, state, created_at, known=True)
                return False
            if not hold.replaces(state):
                raise DuplicateTask
            (replaced,) = yield from standing([holder])
            yield from apply_move(replaced, REPLACE, now, accounts)
    uniques[hold.key] = task.task_id
    yield Execute(SQL["take_unique"], (hold.key, task.task_id, hold.states))
    return True


def _take(taken: dict[str, NewTask], now: int) -> Flow[None]:
    expires_at = now + limits.IDEMPOTENCY_SECONDS * MICROSECONDS
    yield ExecuteMany(
        SQL["take_key"],
        [(key, task.task_id, task.fingerprint, expires_at) for key, task in taken.items()],
    )


def keep_holds(tasks: Iterable[NewTask]) -> Flow[None]:
    """Stored tasks keep what they are unique by, to take it again when they are replayed."""
    holds = [
        (task.unique.key, task.unique.states, task.task_id)
        for task in tasks
        if task.unique is not None
    ]
    if holds:
        yield ExecuteMany(SQL["keep_hold"], holds)


def check_known(self: Context, tasks: Sequence[NewTask], known: Iterable[str]) -> Flow[None]:
    """Raise TaskIdConflict if a task is not the one that is stored under its id."""
    by_id = {task.task_id: task for task in tasks}
    yield from self.catalogue.refresh()
    rows = yield Execute(SQL["contents"], (json.dumps(list(known)),))
    for task_id, lane, payload, spec in rows:
        type = self.catalogue.lane(lane).type
        check_repeated(by_id[task_id], type, payload, inputs_of(spec))


def stored_answers(task_ids: list[str]) -> Flow[dict[str, Accepted]]:
    """Return what to answer for tasks that are in the store, by their ids."""
    if not task_ids:
        return {}
    rows = yield Execute(SQL["stored"], (json.dumps(task_ids),))
    return {
        task_id: Accepted(task_id, State.of(state), created_at, known=True)
        for task_id, state, created_at in rows
    }
