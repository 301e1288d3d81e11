"""Tasks end: settled, cancelled or expired, they move to the finished ones in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fairlane.core.flow import Flow
from fairlane.core.machine import Verb
from fairlane.core.model import TaskError
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.engines.files import statements
from fairlane.engines.sqlite.driver import Execute, ExecuteMany
from fairlane.engines.sqlite.ledger import Ledger

SQL = statements(__package__, "finish")

CONNECT = SQL["connect"]
"""What every connection that writes needs."""


class End(NamedTuple):
    """How one task ends. Its row must still match attempt, worker and source state."""

    verb: Verb
    task_id: str
    attempt: int
    worker_id: str
    source: State
    state: State
    reason: str = ""
    error: TaskError | None = None
    outcome: str | None = None
    result: bytes | None = None
    retry_count: int = -1
    seconds: float | None = None
    linger: bool = False


def finish(ends: Sequence[End], now: int, ledger: Ledger) -> Flow[set[tuple[str, int]]]:
    """Move tasks to the finished ones; answers (id, attempt) of those that did match."""
    yield ExecuteMany(SQL["note"], [_noted(end, now) for end in ends])
    moved = (yield Execute(SQL["move"], (now,))).fetchall()
    yield Execute(SQL["remove"])
    yield Execute(SQL["clear"])
    by_run = {(end.task_id, end.attempt): end for end in ends}
    for task_id, lane, level, attempt, worker_id, started_at in moved:
        end = by_run[task_id, attempt]
        ledger.add(
            end.verb,
            task_id,
            lane,
            level,
            attempt,
            end.source.code,
            end.state.code,
            worker_id=worker_id,
            label=end.reason,
            seconds=end.seconds,
        )
        if end.outcome is not None:
            error = None if end.error is None else msgspec.json.encode(end.error)
            yield Execute(
                SQL["record_attempt"],
                (task_id, attempt, worker_id, started_at, now, end.outcome, error),
            )
        if end.linger:
            yield Execute(SQL["linger"], (worker_id, task_id, attempt, lane))
    return {(row[0], row[3]) for row in moved}


def _noted(end: End, now: int) -> tuple[object, ...]:
    return (
        end.task_id,
        end.attempt,
        end.worker_id,
        end.source.code,
        end.state.code,
        0 if end.seconds is None else now - int(end.seconds * MICROSECONDS),
        end.retry_count,
        "" if end.error is None else bytearray(msgspec.json.encode(end.error)),
        "" if end.result is None else bytearray(end.result),
    )
