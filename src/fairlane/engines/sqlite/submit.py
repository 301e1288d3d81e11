"""submit: tasks enter."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from fairlane.core import encryption
from fairlane.core.dependencies import check_batch
from fairlane.core.documents import Document, Written
from fairlane.core.errors import InvalidTaskId
from fairlane.core.fences import FENCE
from fairlane.core.flow import Flow, writes
from fairlane.core.journal import Passage
from fairlane.core.machine import Verb
from fairlane.core.model import PLAIN, Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import NOWHERE, State
from fairlane.core.tally import UNTIMED
from fairlane.engines.files import statements
from fairlane.engines.sqlite import dependents
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.admission import admit, check_known, keep_holds, stored_answers
from fairlane.engines.sqlite.calls import WAKE, Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.control import cancel
from fairlane.engines.sqlite.dependencies import Dependencies, dependencies_of
from fairlane.engines.sqlite.documents import refuse_plain, write_documents
from fairlane.engines.sqlite.moves import TaskRow

SQL = statements(__package__, "submit")

_SCHEDULED, _QUEUED = State.SCHEDULED.code, State.QUEUED.code
_COPIED_BYTES = 4096
"""Larger values are passed as they are."""


@writes
def submit(self: Context, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    return (yield from _submit(self, tasks))


def submit_along(
    self: Context,
    tasks: Sequence[NewTask],
    kind: str,
    puts: Sequence[Document],
    cancels: Sequence[str] = (),
) -> Flow[list[Accepted] | None]:
    """Store tasks, write documents and cancel tasks in an operation: see core/scheduling."""
    # The operation is one transaction. Tasks that are refused are so before anything is written.
    answers = yield from _submit(self, tasks)
    written = yield from write_documents(self, kind, puts)
    if cancels and written is Written.DONE:
        yield from cancel(self, cancels).flow()
    return answers if written is Written.DONE else None


def _submit(self: Context, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    check_batch(tasks)
    if encryption.has_plain_payload(tasks):
        yield from refuse_plain()
    now = self.clock()
    accounts = Accounts()
    ((newest_number, newest_id),) = yield Execute(SQL["newest"])
    known = yield from _known_ids(self, tasks, newest_id)
    fresh = [task for task in tasks if task.task_id not in known] if known else tasks
    if len({task.task_id for task in fresh}) != len(fresh):
        raise InvalidTaskId("A task id occurs twice in one batch: every task needs its own.")
    marked = [task for task in fresh if task.idempotency_key or task.unique is not None]
    echoes: dict[str, str] = {}
    if marked:
        admission = yield from admit(marked, now, accounts)
        known |= admission.known
        echoes = admission.echoes
        fresh = [task for task in fresh if task.task_id not in known and task.task_id not in echoes]
    stored = yield from _store(self, fresh, newest_number or 0, now, accounts)
    chosen = [task.task_id for task in fresh if task.chosen]
    if chosen:
        yield from _go_on(chosen, now)
    if marked:
        yield from keep_holds(marked)
    if accounts.ended:
        yield from dependents.release_dependents(accounts, now)
    yield from accounts.post(now)
    for task_id, earlier in echoes.items():
        known[task_id] = replace(stored[earlier], known=True)
    return [known.get(task.task_id) or stored[task.task_id] for task in tasks]


def _store(
    self: Context, fresh: Sequence[NewTask], newest_number: int, now: int, accounts: Accounts
) -> Flow[dict[str, Accepted]]:
    """Write tasks that are let in; the answers, by their ids."""
    lanes = yield from self.catalogue.lanes_for(
        (task.queue, task.type, task.capabilities) for task in fresh
    )
    content, waiting, expiries = [], [], []
    dependencies: Dependencies | None = None
    groups: dict[tuple[int, int, int], list[str]] = {}
    for number, task in enumerate(fresh, start=newest_number + 1):
        task_id, level = task.task_id, task.level
        lane = lanes[(task.queue, task.type, task.capabilities)]
        run_at, state = (now, _QUEUED) if _at_once(task) else _schedule(task, now)
        ready_at = run_at if run_at > now else now
        due_at: int | None = run_at
        spec = None
        if task.spec is not PLAIN:
            spec = task.spec.encode()
            if task.spec.depends_on:
                if dependencies is None:
                    dependencies = yield from dependencies_of(fresh)
                if dependencies.add(task, TaskRow(number, task_id, lane, level, ready_at)):
                    state, due_at = _SCHEDULED, None
        content.append(
            (
                number,
                task_id,
                lane,
                level,
                now,
                run_at,
                ready_at,
                task.expires_at or 0,
                task.max_retries,
                task.timeout or 0,
                _blob(task.payload),
                "" if spec is None else _blob(spec),
                task.idempotency_key or "",
            )
        )
        if state == _SCHEDULED:
            waiting.append((number, now, due_at, task_id, lane, level))
        if task.expires_at is not None:
            expiries.append((task.expires_at, number))
        groups.setdefault((lane, level, state), []).append(task_id)
    yield ExecuteMany(SQL["content"], content)
    if waiting:
        yield ExecuteMany(SQL["waiting"], waiting)
    ready = SQL["ready" if dependencies is None else "ready_unless_waiting"]
    yield Execute(ready, (newest_number, now))
    if expiries:
        yield ExecuteMany(SQL["expiry"], expiries)
    for (lane, level, state), task_ids in groups.items():
        accounts.mention(Passage(Verb.SUBMIT, None, lane, level, task_ids))
        accounts.count((lane, level, NOWHERE, state, "", UNTIMED), len(task_ids))
    if dependencies is not None:
        yield from dependencies.store(now, accounts)
    if any(state == _QUEUED for _, _, state in groups):
        yield WAKE
    waits = {row[0] for row in waiting}
    stored = {
        row[1]: Accepted(row[1], State.SCHEDULED if row[0] in waits else State.QUEUED, now)
        for row in content
    }
    if dependencies is not None:
        stored |= {doomed: Accepted(doomed, State.CANCELLED, now) for doomed in dependencies.doomed}
    return stored


def _go_on(ids: list[str], now: int) -> Flow[None]:
    """Let the attempts of tasks go on from those of deleted tasks with the same ids."""
    fences = (yield Execute(SQL["fences"], (FENCE, json.dumps(ids), now))).fetchall()
    if fences:
        yield ExecuteMany(SQL["go_on_ready"], fences)
        yield ExecuteMany(SQL["go_on_waiting"], fences)


def _known_ids(
    self: Context, tasks: Sequence[NewTask], newest: str | None
) -> Flow[dict[str, Accepted]]:
    """Return tasks that are stored already: their submission was repeated because its answer got
    lost."""
    # Ids grow with time, so most batches lie beyond everything that is stored.
    if newest is None or all(task.task_id > newest for task in tasks):
        return {}
    known = yield from stored_answers([task.task_id for task in tasks])
    if known:
        yield from check_known(self, tasks, known)
    return known


def _blob(value: bytes) -> bytes | bytearray:
    """Return a value as a parameter. `sqlite3` looks for an adapter of each bytes object, and of no
    bytearray; a large value is not copied for that."""
    return bytearray(value) if len(value) < _COPIED_BYTES else value


def _at_once(task: NewTask) -> bool:
    return task.run_at is None and not task.delay


def _schedule(task: NewTask, now: int) -> tuple[int, int]:
    """(run_at, state) of a task that may have to wait."""
    run_at = task.run_at if task.run_at is not None else now + int(task.delay * MICROSECONDS)
    return run_at, _SCHEDULED if run_at > now else _QUEUED
