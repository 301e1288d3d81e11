"""start, progress, heartbeat, expired, register, mark, bury, forget: workers and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fairlane.core import limits
from fairlane.core.errors import AccessDenied, WorkerGone
from fairlane.core.flow import Flow, reads, transacts, writes
from fairlane.core.ids import checked_all
from fairlane.core.leases import checked, status_after_beat, stored_health
from fairlane.core.model import (
    Beat,
    NewWorker,
    Overdue,
    Pulse,
    Report,
    Start,
    Verdict,
    WorkerStatus,
)
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import COUNTED, overdue_of, stored_names, stored_seconds
from fairlane.core.tally import LOST_WORKERS, apart
from fairlane.engines.postgres.accounting import count, mention
from fairlane.engines.postgres.calls import BEGIN, COMMIT, Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.rows import array, array_of_ids, stored_progress
from fairlane.engines.postgres.session import session_name
from fairlane.engines.postgres.statements import load

SQL = load("leases")


@writes
def start(self: Context, worker_id: str, starts: Sequence[Start]) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in starts])
    values = array(item.seconds for item in starts)
    return (yield from _touch("start", worker_id, starts, values))


@writes
def progress(self: Context, worker_id: str, reports: Sequence[Report]) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in reports])
    values = [stored_progress(item.percent, item.message) for item in reports]
    return (yield from _touch("progress", worker_id, reports, values))


def _touch(
    verb: str, worker_id: str, items: Sequence[Start | Report], values: Any
) -> Flow[list[Verdict]]:
    """Update executing tasks whose fence matches. Return the verdicts."""
    ids = [item.task_id for item in items]
    attempts = [item.attempt for item in items]
    rows = yield Query(SQL[verb], (worker_id, array_of_ids(ids), array(attempts), values))
    touched = {number - 1 for (number,) in rows}
    existing: set[str] = set()
    if len(touched) < len(items):
        rows = yield Query(SQL["existing"], (array_of_ids(ids),))
        existing = {str(task_id) for (task_id,) in rows}
    return [
        Verdict.APPLIED
        if number in touched
        else (Verdict.STALE if task_id in existing else Verdict.MISSING)
        for number, task_id in enumerate(ids)
    ]


@writes
def heartbeat(self: Context, beat: Beat) -> Flow[Pulse]:
    health = stored_health(beat)
    while True:
        rows = yield Query(SQL["worker"], (beat.worker_id,))
        if not rows or rows[0][0] == WorkerStatus.DEAD:
            raise WorkerGone
        ((current, lease),) = rows
        status = status_after_beat(WorkerStatus(current), beat.status)
        values = (beat.worker_id, beat.load, current, status.value, health, limits.BATCH)
        rows = yield Query(SQL["beat"], values)
        if rows[0][0]:
            break
        # The status has changed in the meantime: decide again.
    lingering = [(str(task_id), attempt) for _, task_id, attempt in rows if task_id is not None]
    return Pulse(lease / MICROSECONDS, status, lingering)


@reads
def expired(self: Context, limit: int, since: int = 0) -> Flow[list[Overdue]]:
    most = min(limit, limits.BATCH)
    rows = list((yield Query(SQL["lost"], (most,))))
    for cause in ("timed_out", "unstarted"):
        rows += yield Query(SQL[cause], (most - len(rows), since))
    return [overdue_of(row) for row in rows]


@writes
def register(self: Context, worker: NewWorker) -> Flow[str]:
    checked(worker)
    rows = yield Query(
        SQL["register"],
        (
            worker.worker_id,
            worker.capacity,
            stored_names(worker.capabilities),
            stored_names(worker.queues),
            stored_names(worker.types),
            worker.host,
            worker.version,
            stored_seconds(worker.lease),
            stored_seconds(worker.start_within),
            COUNTED,
        ),
    )
    if not rows:
        raise WorkerGone
    return worker.worker_id


@transacts
def mark(self: Context, worker_id: str, status: WorkerStatus) -> Flow[bool]:
    rows = yield Query(SQL["mark"], (worker_id, status.value))
    yield from mention(f"worker_{status}", [worker_id for (worker_id,) in rows])
    return bool(rows)


@writes
def bury(self: Context, worker_ids: Sequence[str]) -> Flow[list[str]]:
    # A process that was stopped in a transaction keeps its locks, and so the rows written below.
    with suppress(AccessDenied):  # then they keep them until a time limit ends their sessions
        yield Query(SQL["end_sessions"], (list(worker_ids), session_name("")))
    yield BEGIN
    rows = yield Query(SQL["bury"], (list(worker_ids),))
    buried = [worker_id for (worker_id,) in rows]
    if buried:
        yield Query(SQL["drop_lingering"], (buried,))
        yield from count([apart(LOST_WORKERS)] * len(buried))
    yield from mention("worker_dead", buried)
    yield COMMIT
    return buried


@transacts
def forget(self: Context, worker_id: str) -> Flow[bool]:
    if not (yield Query(SQL["lock_worker"], (worker_id,))):
        return False
    yield Query(SQL["drop_lingering"], ([worker_id],))
    if not (yield Query(SQL["declare_dead"], (worker_id,))):
        yield Query(SQL["remove"], (worker_id,))
    yield from mention("worker_left", [worker_id])
    return True
