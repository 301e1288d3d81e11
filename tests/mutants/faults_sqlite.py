"""Faults of the SQLite engine, and of rules of the core that it alone calls in Python."""

from __future__ import annotations

from typing import Any

from fairlane.core import machine, merging
from fairlane.core.breaker import Circuit
from fairlane.core.dependencies import dependency_on
from fairlane.core.priority import Aging
from fairlane.core.uniqueness import Hold
from fairlane.engines.sqlite import (
    admission,
    apply,
    circuits,
    claim,
    claim_order,
    context,
    control,
    deletion,
    dependencies,
    dependents,
    due,
    leases,
    moves,
)
from fairlane.engines.sqlite import (
    reruns as sqlite_reruns,
)
from fairlane.engines.sqlite.accounting import Accounts
from tests.mutants import faults_reruns
from tests.mutants.planting import Break, replaced, statement, together


def _never_opens(circuit: Circuit, *_: object) -> Circuit:
    return circuit


def _counts_but_forgets_ends(
    self: Accounts, key: tuple[Any, ...], times: int, s: float = 0
) -> None:
    if key[3] != 8:  # whatever is cancelled
        _count(self, key, times, s)


_count = Accounts.count


def _tells_only_some(self: Accounts, passage: Any) -> None:
    if passage.verb != "due":
        _mention(self, passage)


_mention = Accounts.mention


def _any_fence(settlements: Any, now: int, reaping: bool) -> Any:
    held, _ = yield from _held(settlements, now, reaping)
    told = {item.task_id: item.attempt for item in settlements}
    return {each: (*held[each][:4], told[each], *held[each][5:]) for each in told.keys() & held}, 0


def _any_worker(settlements: Any, now: int, reaping: bool) -> Any:
    held, _ = yield from _held(settlements, now, reaping)
    told = {item.task_id: item.worker_id for item in settlements}
    return {each: (*held[each][:7], told[each], *held[each][8:]) for each in told.keys() & held}, 0


class _Kept(dict[str, Any]):
    def __delitem__(self, key: str) -> None:
        """Keep it: whoever reports again finds it."""


def _held_for_ever(settlements: Any, now: int, reaping: bool) -> Any:
    held, range_read = yield from _held(settlements, now, reaping)
    return _Kept(held), range_read


_held = apply._held


def _never() -> Any:
    yield from ()
    return False, False


_taken: dict[str, bytes] = {}


def _of_another(name: str, given: Any, parent: str, found: Any, *, tolerant: bool) -> bytes:
    """What this parent contributes, or what the last one did that was asked for by that name."""
    value = _value(name, given, parent, found, tolerant=tolerant)
    return _taken.setdefault(name, value)


_value = merging._value


FAULTS: dict[str, Break] = {
    "apply ignores the attempt": replaced(apply, "_held", _any_fence),
    "apply ignores the worker": replaced(apply, "_held", _any_worker),
    "apply takes two reports of one run": replaced(apply, "_held", _held_for_ever),
    "apply does not record the run": statement(
        moves, "record_attempt", "VALUES (?, ?,", "VALUES (?, -?,"
    ),
    "apply does not count the run": statement(
        moves, "enter_outcome", "VALUES (?, ?, ?,", "VALUES (?, ?, 0 * ?,"
    ),
    "apply forgets the expiry": statement(
        moves, "expire_again", "WHERE number = ?", "WHERE number = -?"
    ),
    "apply forgets the slot that lingers": statement(
        moves, "linger", "WHERE worker_id = ?1", "WHERE worker_id = -?1"
    ),
    "apply does not clear the progress": statement(
        moves, "note_rerun", "progress = NULL", "progress = progress"
    ),
    "a claim does not count the attempt": together(
        statement(claim, "hold", "attempt + 1", "attempt"),
        statement(claim, "take", "attempt + 1", "attempt"),
    ),
    "a claim does not count the version": statement(claim, "hold", "version + 1", "version"),
    "priorities do not matter": replaced(Aging, "effective", lambda *_: 5),
    "nothing ages": replaced(Aging, "effective", lambda _, level, __: level),
    "claims keep the aging of before": statement(context, "everything", "id = ?1", "id = -?1"),
    "tasks of a stream come by their ids": together(
        statement(claim, "hold", "ORDER BY ready_at, task_id", "ORDER BY task_id"),
        statement(
            claim, "take", "ORDER BY ready.ready_at, ready.task_id", "ORDER BY ready.task_id"
        ),
        statement(claim, "leave", "(ready_at, task_id) <= (?, ?)", "? > 0 AND task_id <= ?"),
    ),
    "delays are ignored": statement(due, "due", "waiting.due_at <= ?", "waiting.due_at <= 4 * ?"),
    "expiry is ignored": replaced(due, "_expire", lambda *_: iter(())),
    "a repeated request gets more": statement(
        claim, "seen", "request_id = ?", "request_id = 'not ' || ?"
    ),
    "a paused type goes on": statement(control, "pause_type", "VALUES (?, ?)", "VALUES (?, 0 * ?)"),
    "a paused queue goes on": statement(control, "pause_queue", "VALUES (?)", "VALUES ('x' || ?)"),
    "a cancelled run frees its slot at once": statement(
        moves, "linger", "status <> 'dead'", "status = 'dead'"
    ),
    "a late report keeps its slot": statement(apply, "let_go", "attempt = ?", "attempt = -?"),
    "tokens are never taken": statement(
        claim_order, "fill_bucket", "VALUES (?, ?,", "VALUES (?, 9 + 0 * ?,"
    ),
    "idempotency keys are forgotten": statement(
        admission, "keys", "expires_at > ?", "expires_at < ?"
    ),
    "unique tasks are not": replaced(Hold, "blocks", lambda *_: False),
    "a unique key is kept for ever": statement(
        dependents, "drop_key", "key = ?", "key = NULL AND ?"
    ),
    "a replay does not take its key again": statement(
        control, "take_keys_again", "unique_key IS NOT NULL", "unique_key IS NULL"
    ),
    "a failed parent counts as done": together(
        *(
            replaced(
                module,
                "dependency_on",
                lambda parent, **_: dependency_on(parent, tolerant=True),
            )
            for module in (dependents, dependencies)
        )
    ),
    "one of several parents is enough": statement(
        dependents, "free", "NOT EXISTS (SELECT 1 FROM bonds WHERE bonds.child = met.value)", "1"
    ),
    "a released child keeps its old place": replaced(dependents, "FREE", machine.DUE),
    "a child is never released": replaced(dependents, "_resolve", lambda *_: _never()),
    **faults_reruns.faults_of(sqlite_reruns),
    "a bond that is met is kept, and resolved again": statement(
        dependents, "drop_bonds", "parent = ?", "parent = '!' || ?"
    ),
    "the breaker never opens": replaced(circuits, "after", _never_opens),
    "a dead worker keeps its tasks": statement(leases, "lost", "'dead'", "'buried'"),
    "time limits are ignored": statement(
        leases, "timed_out", "held.deadline <= ?", "held.deadline < 0 * ?"
    ),
    "a type's timeout is not stored": statement(
        claim, "set_timeout", "task_id = ?", "task_id = -?"
    ),
    "a trail is not kept": statement(moves, "note_rerun", "coalesce(trail, x'')", "x''"),
    "a worker need not start what it holds": statement(
        leases, "unstarted", "start_within <= ?", "start_within <= 0 * ?"
    ),
    "what was started is taken away": together(
        statement(leases, "unstarted", "held.started_at IS NULL", "true"),
        statement(apply, "still_overdue", "held.started_at IS NULL", "true"),
    ),
    "progress does not start a task": statement(
        leases, "start_if_unstarted", "started_at IS NULL", "started_at = 0"
    ),
    "the reaper takes from the living": statement(
        leases, "bury", "seen_at + lease <= ?2", "seen_at <= ?2"
    ),
    "a replay keeps the error": statement(
        moves, "note_rerun", "error = ?3", "error = coalesce(?3, error)"
    ),
    "an expiry outlives its task's replay": statement(
        moves, "forget_expiry", "WHERE number = ?", "WHERE number = -?"
    ),
    "counters forget cancellations": replaced(Accounts, "count", _counts_but_forgets_ends),
    "the journal forgets what became due": replaced(Accounts, "mention", _tells_only_some),
    "a bond is lost": statement(
        dependencies,
        "bond",
        "VALUES (?, ?, ?)",
        "SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM bonds WHERE child = ?2)",
    ),
    "the end of one parent resolves all bonds": statement(
        dependents, "drop_bonds", "parent = ?", "? IS NOT NULL"
    ),
    "a doomed child is queued": replaced(dependents, "DOOM", machine.FREE),
    "a child takes the result of another parent": replaced(merging, "_value", _of_another),
    "a child takes a failure for nothing": replaced(merging, "_failure", lambda *_: b"null"),
    "pruning takes what others need": statement(
        deletion, "dependents", "NOT EXISTS (SELECT 1 FROM outcome", "0 IN (SELECT 1 FROM outcome"
    ),
    "a parent that had ended is not noted": statement(
        dependencies,
        "dependent",
        "VALUES (?, ?)",
        "SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM bonds WHERE parent = ?1 AND child = ?2)",
    ),
    "pruning takes too much": statement(
        deletion, "old", "completed_at <= ?", "completed_at <= 2 * ?"
    ),
}
