"""delete, prune: tasks that have ended, and what else is old, go."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.facts import SAMPLE
from fairlane.core.fences import FENCE, FENCE_MICROSECONDS, leaves_fence
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.journal import Passage
from fairlane.core.machine import CANCEL, Verb, sources_of
from fairlane.core.model import Deleted
from fairlane.core.retention import LOOKED_AT, Pruned, Retention, past
from fairlane.core.retention import checked as checked_retention
from fairlane.core.states import NOWHERE, TERMINAL, State
from fairlane.core.tally import UNTIMED
from fairlane.engines.files import statements
from fairlane.engines.sqlite import dependents
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.calls import Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.documents import SQL as DOCUMENTS
from fairlane.engines.sqlite.documents import expire_documents
from fairlane.engines.sqlite.moves import apply_move, standing

SQL = statements(__package__, "deletion")


@writes
def delete(
    self: Context, task_ids: Sequence[str], *, among: frozenset[State] | None = None
) -> Flow[list[Deleted]]:
    checked_all(task_ids)
    now = self.clock()
    accounts = Accounts()
    answers: dict[str, Deleted] = {}
    gone = Gone()
    sources = sources_of(Verb.DELETE, among)
    for task in (yield from standing(task_ids)):
        state = State.of(task.state)
        allowed = state in sources
        if allowed:
            if state not in TERMINAL:
                yield from apply_move(task, CANCEL, now, accounts)
                state = State.CANCELLED
            gone.add(task.number, task.task_id, accounts, task.lane, task.level, state)
            if leaves_fence(state, task.attempt, task.completed_at or now, now, pruned=False):
                gone.leave_fence(task.task_id, task.attempt, now)
            passage = Passage(
                Verb.DELETE, None, task.lane, task.level, [task.task_id], [task.attempt]
            )
            accounts.mention(passage)
        answers[task.task_id] = Deleted(task.task_id, allowed, State.of(task.state))
    if accounts.ended:
        yield from dependents.release_dependents(accounts, now)
    yield from gone.remove()
    yield from accounts.post(now)
    return [
        answers.get(task_id) or Deleted(task_id, applied=False, state=None) for task_id in task_ids
    ]


@writes
def prune(self: Context, retention: Retention) -> Flow[Pruned]:
    checked_retention(retention)
    now = self.clock()
    accounts = Accounts()
    gone = Gone()
    left = limits.BATCH
    for state, deadline in retention.deadlines(now).items():
        after = self.sweep.after(state)
        rows = (yield Execute(SQL["old"], (state.code, deadline, *after, left))).fetchall()
        # The number and the time of the last one, unless it is the last one of all.
        self.sweep.reach(state, (rows[-1][5], rows[-1][0]) if 0 < left == len(rows) else None)
        left -= len(rows)
        kept = yield from _kept([row[1] for row in rows])
        for number, task_id, lane, level, attempt, ended_at in rows:
            if task_id in kept:
                continue
            gone.add(number, task_id, accounts, lane, level, state)
            if leaves_fence(state, attempt, ended_at, now, pruned=True):
                gone.leave_fence(task_id, attempt, now)
    yield from gone.remove()
    yield from accounts.post(now)
    more = left == 0
    others = {
        "drop_keys": now,
        "drop_workers": past(retention.workers, now),
        "drop_journal": past(retention.journal, now),
    }
    for statement, deadline in others.items():
        dropped = yield Execute(SQL[statement], (deadline, limits.BATCH))
        more = more or dropped.rowcount == limits.BATCH
    for kind in (SAMPLE, FENCE):
        expired = yield from expire_documents(self, kind, limits.BATCH)
        more = more or expired == limits.BATCH
    yield Execute(SQL["blank_journal"], (past(retention.journal, now),))
    return Pruned(len(gone), more)


def _kept(task_ids: Sequence[str]) -> Flow[set[str]]:
    """Return those of these tasks on which others depend that have not ended."""
    kept: set[str] = set()
    found = yield Execute(SQL["dependents"], (json.dumps(task_ids), LOOKED_AT))
    for task_id, live, more in found.fetchall():
        if live or more:
            kept.add(task_id)
        if more and not live:
            yield Execute(SQL["forget_dependents"], (task_id, LOOKED_AT))
    return kept


class Gone:
    """Tasks that are taken away, with every row they have."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._task_ids: list[str] = []
        self._fences: list[tuple[object, ...]] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def add(
        self, number: int, task_id: str, accounts: Accounts, lane: int, level: int, state: State
    ) -> None:
        """Add a task, and count it."""
        self._numbers.append(number)
        self._task_ids.append(task_id)
        accounts.count((lane, level, state.code, NOWHERE, "", UNTIMED), 1)

    def leave_fence(self, task_id: str, attempt: int, now: int) -> None:
        """Let a task leave its last attempt behind."""
        value = str(attempt).encode()
        self._fences.append((FENCE, task_id, value, now, now + FENCE_MICROSECONDS, None, 1))

    def remove(self) -> Flow[None]:
        """Take them away. Their bonds went when they ended."""
        if not self._numbers:
            return
        ids, numbers = json.dumps(self._task_ids), json.dumps(self._numbers)
        yield Execute(SQL["drop_attempts"], (ids,))
        yield Execute(SQL["drop_uniques"], (ids,))
        yield Execute(SQL["drop_dependents"], (ids,))
        # Numbers are given again: what stays behind under one would strike another task.
        yield Execute(SQL["drop_expiries"], (numbers,))
        yield Execute(SQL["drop_outcomes"], (numbers,))
        yield Execute(SQL["drop_content"], (numbers,))
        if self._fences:
            yield ExecuteMany(DOCUMENTS["put"], self._fences)
