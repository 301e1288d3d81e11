"""Faults of the PostgreSQL engine's `apply`."""

from __future__ import annotations

from fairlane.core.states import State
from fairlane.engines.postgres import (
    apply,
    circuits,
    claim_order,
    context,
    control,
    dependents,
    leases,
    moves,
)
from fairlane.engines.postgres import (
    reruns as postgres_reruns,
)
from tests.mutants import faults_reruns
from tests.mutants.planting import Break, assembled, statement, together

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
}
