"""Faults of the PostgreSQL engine."""

from __future__ import annotations

from typing import Any

from fairlane.core.dependencies import dependency_on
from fairlane.core.states import State
from fairlane.core.uniqueness import Hold
from fairlane.engines.postgres import (
    admission_keys,
    apply,
    circuits,
    claim,
    claim_limits,
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
from fairlane.engines.postgres import (
    reruns as postgres_reruns,
)
from tests.mutants import faults_reruns
from tests.mutants.planting import Break, assembled, replaced, statement, together


def _claims(old: str, new: str) -> Break:
    """A claim with some of its text replaced: its statements are kept once they are made."""
    return together(statement(claim_order, "claim", old, new), _MADE_AGAIN)


_MADE_AGAIN = together(
    replaced(claim, "statement", claim_order.statement.__wrapped__),
    replaced(
        claim_limits, "statement_within_limits", claim_order.statement_within_limits.__wrapped__
    ),
)


def _on_one_level(*args: Any) -> Any:
    return [arm._replace(effective=5) for arm in _arms_of(*args)]


def _of_young_tasks(lanes: Any, levels: Any, aging: Any) -> Any:
    never = type(aging)(low_to_medium=None, medium_to_high=None, high_to_critical=None)
    return _arms_of(lanes, levels, never)


_arms_of = claim_order.arms_of


def _nothing(*_: object) -> Any:
    yield from ()
    return False


_ALL = ("_APPLY", "_APPLY_PLAIN", "_COMPLETE_ONLY", "_COMPLETE_PLAIN", "_APPLY_ALL")
_OTHERS = ("_APPLY", "_APPLY_PLAIN", "_APPLY_ALL")

FAULTS: dict[str, Break] = {
    "apply ignores the attempt": assembled(
        apply, _ALL, "task.attempt = sent.attempt", "sent.attempt > 0"
    ),
    "apply ignores the worker": assembled(
        apply, _ALL, "task.worker_id = ($7::text[])[sent.kind]", "$7::text[] IS NOT NULL"
    ),
    "apply takes two reports of one run": assembled(
        apply,
        _ALL,
        "DELETE FROM fairlane.held AS task USING item",
        "UPDATE fairlane.held AS task SET version = task.version FROM item",
    ),
    "apply does not record the run": assembled(
        apply, _OTHERS, f"WHERE state <> {State.COMPLETED.code} ", "WHERE state < 0 "
    ),
    "apply forgets the slot that lingers": assembled(
        apply, _OTHERS, "($18::boolean[])[kind] AND", "($18::boolean[])[kind] IS NULL AND"
    ),
    "apply does not count the run": assembled(
        apply, _ALL, "coalesce(($10::smallint[])[kind],", "coalesce(0 * ($10::smallint[])[kind],"
    ),
    "apply keeps the error of the run before": assembled(
        apply,
        _OTHERS,
        "error = ($12::bytea[])[kind]",
        "error = coalesce(($12::bytea[])[kind], task.error)",
    ),
    "apply forgets the progress of what ends": assembled(
        apply, _ALL, "[kind], progress, progress_at", "[kind], NULL, NULL"
    ),
    "apply resets the place that is kept": assembled(
        apply, _OTHERS, "WHEN ($19::boolean[])[kind] THEN", "WHEN $19::boolean[] IS NOT NULL THEN"
    ),
    "apply forgets that others depend on it": assembled(
        apply, _OTHERS, "linked\n    FROM clock, released", "false\n    FROM clock, released"
    ),
    "apply forgets the expiry": assembled(
        apply, _OTHERS, "ready_at, expires_at, now, lane", "ready_at, NULL::bigint, now, lane"
    ),
    "a late report keeps its slot": statement(
        apply, "drop_lingering", "slot.attempt = late.attempt", "slot.attempt = -late.attempt"
    ),
    "a cancelled run is not recorded": statement(
        moves, "end", "WHERE $7::text IS NOT NULL", "WHERE $7::text IS NULL"
    ),
    "a replay keeps the error": statement(control, "replay", "error = NULL", "error = task.error"),
    "a replay keeps the expiry": statement(
        control,
        "replay",
        "task.expires_at END",
        "task.expires_at ELSE task.expires_at END",
    ),
    "a type's timeout is not stored": statement(
        claim_order, "set_timeouts", "timeout = sent.timeout", "timeout = task.timeout"
    ),
    "a trail is not kept": together(
        assembled(apply, _OTHERS, "coalesce(task.trail, '')", "''::bytea"),
        statement(control, "replay", "coalesce(task.trail, '')", "''::bytea"),
    ),
    "a trail does not tell when a retry was due": assembled(
        apply, _OTHERS, "THEN 0 ELSE now + ($17::bigint[])[kind] END", "THEN 0 ELSE 0 END"
    ),
    "a worker need not start what it holds": statement(
        leases, "unstarted", "worker.start_within <= fairlane", "worker.start_within < 0 * fairlane"
    ),
    "what was started is taken away": together(
        statement(leases, "unstarted", "held.started_at IS NULL", "true"),
        assembled(apply, _OTHERS, "OR task.started_at IS NOT NULL", ""),
    ),
    "progress does not start a task": statement(
        leases, "progress", "coalesce(task.started_at, now)", "task.started_at"
    ),
    **faults_reruns.faults_of(postgres_reruns),
    "a bond that is met is kept, and resolved again": statement(
        dependents, "drop_bonds", "bonds.ctid = met.tid", "bonds.ctid = met.tid AND fresh IS NULL"
    ),
    "the breaker never opens": statement(
        circuits, "change", "SET circuit = changed.circuit", "SET circuit = types.circuit"
    ),
    "claims keep the aging of before": statement(
        context, "everything", "id = $1", "id = $1 || '!'"
    ),
    "one of several parents is enough": statement(
        dependents,
        "free",
        "NOT EXISTS (SELECT FROM fairlane.bonds WHERE bonds.child = child.task_id OFFSET 0)",
        "true",
    ),
    "a claim does not count the attempt": _claims("task.attempt + 1 AS", "task.attempt AS"),
    "a claim does not count the version": _claims("task.version + 1 AS", "task.version AS"),
    "priorities do not matter": replaced(claim_order, "arms_of", _on_one_level),
    "nothing ages": replaced(claim_order, "arms_of", _of_young_tasks),
    "tasks of a stream come by their ids": together(
        assembled(claim_order, ("_ARM", "_ORDER"), "BY ready_at, task_id", "BY task_id"),
        _MADE_AGAIN,
    ),
    "a repeated request gets more": statement(
        claim_order, "granted", "held.claimed_at = $2", "held.claimed_at <= $2"
    ),
    "delays are ignored": together(
        assembled(due, ("_RELEASE_FIRST",), "<= least((SELECT now FROM clock), ", "<= 4 * (("),
        statement(due, "release_due", "<= (SELECT now", "<= 4 * (SELECT now"),
        statement(due, "chores", "<= fairlane.now_us(),\n    least", "> 0,\n    least"),
    ),
    "expiry is ignored": replaced(due, "_expire", _nothing),
    "a paused type goes on": statement(control, "pause_type", "($1, $2)", "($1, $2 AND false)"),
    "a paused queue goes on": statement(control, "pause_queue", "($1)", "('x' || $1)"),
    "a cancelled run frees its slot at once": statement(
        moves, "end", "worker.status <> 'dead'  --", "worker.status = 'dead'  --"
    ),
    "tokens are never taken": statement(
        claim_order, "fill_buckets", "SELECT type, tokens,", "SELECT type, 9 + 0 * tokens,"
    ),
    "idempotency keys are forgotten": statement(
        admission_keys, "take_keys", "held.expires_at <= fairlane.now_us()", "held.expires_at > 0"
    ),
    "unique tasks are not": replaced(Hold, "blocks", lambda *_: False),
    "a replay does not take its key again": statement(
        control, "take_keys_again", "WHERE task.unique_key IS NOT NULL", "WHERE false"
    ),
    "a bond is lost": statement(
        dependencies,
        "add_bonds",
        "SELECT parent, child, tolerant, fresh",
        "SELECT DISTINCT ON (child) parent, child, tolerant, fresh",
    ),
    "the end of one parent resolves all bonds": statement(
        dependents,
        "drop_bonds",
        "bonds.parent = met.parent AND bonds.child",
        "bonds.parent IS NOT NULL AND bonds.child",
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
    "a child is never released": replaced(dependents, "_free", _nothing),
    "a dead worker keeps its tasks": statement(leases, "lost", "'dead'", "'buried'"),
    "time limits are ignored": statement(
        leases, "timed_out", "held.deadline <= fairlane", "held.deadline <= 0 * fairlane"
    ),
    "the reaper takes from the living": statement(
        leases, "bury", "seen_at + lease <= fairlane", "seen_at <= fairlane"
    ),
    "counters forget cancellations": statement(
        moves, "end", "coalesce(spent, 0) FROM grouped", "coalesce(spent, 0) FROM grouped LIMIT 0"
    ),
    "the journal forgets what became due": together(
        statement(due, "release_due", "FROM clock, grouped", "FROM clock, grouped LIMIT 0"),
        assembled(due, ("_RELEASE_FIRST",), "FROM clock, grouped", "FROM clock, grouped LIMIT 0"),
    ),
    "pruning takes too much": statement(
        deletion, "over", "seen_at AND kept.deadline", "seen_at AND 2 * kept.deadline"
    ),
    "pruning takes what others need": statement(
        deletion,
        "dependents",
        "AND NOT EXISTS (SELECT FROM fairlane.outcome",
        "AND 0 IN (SELECT 1 FROM fairlane.outcome",
    ),
    "a parent that had ended is not noted": statement(
        dependencies,
        "add_dependents",
        "AS pair (parent, child)",
        "AS pair (parent, child)"
        " WHERE NOT EXISTS (SELECT FROM fairlane.outcome WHERE task_id = parent)",
    ),
}
