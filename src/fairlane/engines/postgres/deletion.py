"""delete, prune: tasks are deleted with all that belongs to them."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.facts import SAMPLE
from fairlane.core.fences import FENCE, FENCE_MICROSECONDS
from fairlane.core.flow import Flow, transacts, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import CANCEL, Verb, sources_of
from fairlane.core.model import Deleted
from fairlane.core.retention import LOOKED_AT, Pruned, Retention, checked, past
from fairlane.core.states import TERMINAL, State
from fairlane.engines.postgres import dependents, moves
from fairlane.engines.postgres.accounting import trim
from fairlane.engines.postgres.calls import BEGIN, COMMIT, WAKE, Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.documents import expire_documents
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("deletion")


@writes
def delete(
    self: Context, task_ids: Sequence[str], *, among: frozenset[State] | None = None
) -> Flow[list[Deleted]]:
    checked_all(task_ids)
    meant = sources_of(Verb.DELETE, among)
    answers: dict[str, Deleted] = {}
    wanted = sorted(set(task_ids))
    while wanted:
        yield BEGIN
        yield Query(SQL["lock_outcomes"], (array_of_ids(wanted),))
        # Tasks that have not ended are cancelled first, which also releases their dependents.
        found = yield from moves.end(wanted, meant - TERMINAL, CANCEL)
        released = yield from dependents.release_dependents(moves.ended_of(found))
        over = [task.task_id for task in found if task.applied or task.state in meant & TERMINAL]
        gone = yield from _delete(over, journal=True)
        yield COMMIT
        wanted = []
        for task in found:
            if task.task_id in gone or task.state not in meant:
                applied = task.task_id in gone
                answers[task.task_id] = Deleted(task.task_id, applied=applied, state=task.state)
            else:
                wanted.append(task.task_id)  # it has just moved on: look again
        if released:
            yield WAKE
    return [
        answers.get(task_id) or Deleted(task_id, applied=False, state=None) for task_id in task_ids
    ]


def _delete(task_ids: list[str], *, journal: bool) -> Flow[set[str]]:
    """Delete those of these tasks that have ended. Return their ids.

    `journal`: write entries about it, because somebody asked for it.
    """
    if not task_ids:
        return set()
    ids = array_of_ids(task_ids)
    # Submissions of children lock their parents' contents: now their dependencies can be seen.
    yield Query(SQL["lock_contents"], (ids,))
    rows = yield Query(SQL["delete"], (ids, journal, FENCE_MICROSECONDS))
    return {task_id for (task_id,) in rows}


@transacts
def prune(self: Context, retention: Retention) -> Flow[Pruned]:
    checked(retention)
    ((now,),) = yield Query(SQL["now"])
    old = yield from _old(self, retention.deadlines(now))
    kept = yield from _kept(old)
    over = [task_id for task_id in old if task_id not in kept]
    tasks = len((yield from _delete(over, journal=False)))
    others = {
        "old_keys": now,
        "old_workers": past(retention.workers, now),
    }
    counts = [len(old)]
    for name, deadline in others.items():
        ((count,),) = yield Query(SQL[name], (deadline, limits.BATCH))
        counts.append(count)
    counts.append((yield from expire_documents(self, SAMPLE, limits.BATCH)))
    counts.append((yield from expire_documents(self, FENCE, limits.BATCH)))
    counts.append((yield from trim(limits.BATCH, past(retention.journal, now))))
    return Pruned(tasks, more=any(count >= limits.BATCH for count in counts))


def _old(self: Context, deadlines: dict[State, int]) -> Flow[list[str]]:
    """Return tasks whose retention is over, and lock them."""
    seen_at, seen = zip(*map(self.sweep.after, deadlines), strict=True)
    codes = [state.code for state in deadlines]
    rows = yield Query(
        SQL["over"],
        (codes, list(deadlines.values()), list(seen_at), array_of_ids(seen), limits.BATCH),
    )
    latest: dict[State, tuple[int, str]] = {}
    for code, completed_at, task_id in rows:
        latest[State.of(code)] = (completed_at, task_id)
    # States come one after the other. If the batch is full, the last one may have more.
    cut = next(reversed(latest), None) if len(rows) == limits.BATCH else None
    for state in list(deadlines)[: None if cut is None else list(deadlines).index(cut)]:
        self.sweep.reach(state, None)
    if cut is not None:
        self.sweep.reach(cut, latest[cut])
    return [task_id for *_, task_id in rows]


def _kept(task_ids: Sequence[str]) -> Flow[set[str]]:
    """Return those of these tasks on which others depend that have not ended."""
    kept: set[str] = set()
    if not task_ids:
        return kept
    for task_id, live, more in (
        yield Query(SQL["dependents"], (array_of_ids(task_ids), LOOKED_AT))
    ):
        if live or more:
            kept.add(task_id)
        if more and not live:
            yield Query(SQL["forget_dependents"], (task_id, LOOKED_AT))
    return kept
