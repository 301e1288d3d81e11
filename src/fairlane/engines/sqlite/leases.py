"""start, progress, heartbeat, expired, register, mark, bury, forget: workers and what they hold.

And `shortest_lease`, which other engines do not need: only here does one transaction keep every
worker from sending heartbeats.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.ids import checked_all
from fairlane.core.journal import Passage
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
from fairlane.core.tally import LOST_WORKERS, TallyKey, apart
from fairlane.engines.files import statements
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.rows import Row, stored_progress

SQL = statements(__package__, "leases")


@writes
def start(self: Context, worker_id: str, starts: Sequence[Start]) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in starts])
    now = self.clock()
    accounts = Accounts()
    verdicts = []
    for item in starts:
        task, verdict = yield from _held("start", item.task_id, item.attempt, worker_id, accounts)
        if task is not None:
            began = now - int(item.seconds * MICROSECONDS)
            yield Execute(SQL["start"], (began, _deadline(began, task), item.task_id))
        verdicts.append(verdict)
    yield from accounts.post(now)
    return verdicts


@writes
def progress(self: Context, worker_id: str, reports: Sequence[Report]) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in reports])
    now = self.clock()
    accounts = Accounts()
    verdicts = []
    for item in reports:
        task, verdict = yield from _held(
            "progress", item.task_id, item.attempt, worker_id, accounts
        )
        if task is not None:
            stored = stored_progress(item.percent, item.message, now)
            yield Execute(SQL["progress"], (stored, task[0]))
            yield Execute(SQL["start_if_unstarted"], (now, _deadline(now, task), item.task_id))
        verdicts.append(verdict)
    yield from accounts.post(now)
    return verdicts


def _deadline(began: int, task: Row) -> int | None:
    """Return when the time of a run is over."""
    timeout = task[3]
    return None if timeout is None else began + int(timeout * MICROSECONDS)


def _held(
    verb: str, task_id: str, attempt: int, worker_id: str, accounts: Accounts
) -> Flow[tuple[Row | None, Verdict]]:
    """Return the running task if the fence matches, and what to say of it."""
    row = (yield Execute(SQL["held"], (task_id, attempt, worker_id))).fetchone()
    if row is not None:
        _, lane, level, _ = row
        accounts.mention(Passage(verb, worker_id, lane, level, [task_id], [attempt]))
        return row, Verdict.APPLIED
    ((exists,),) = yield Execute(SQL["exists"], (task_id,))
    return None, Verdict.STALE if exists else Verdict.MISSING


@writes
def heartbeat(self: Context, beat: Beat) -> Flow[Pulse]:
    health = stored_health(beat)
    now = self.clock()
    row = (yield Execute(SQL["worker"], (beat.worker_id,))).fetchone()
    if row is None or row[0] == WorkerStatus.DEAD:
        raise WorkerGone
    current, lease = row
    status = status_after_beat(WorkerStatus(current), beat.status)
    yield Execute(SQL["beat"], (beat.worker_id, now, beat.load, status, health))
    if status != current:
        yield from _tell(f"worker_{status}", [beat.worker_id], now)
    lingering = yield Execute(SQL["lingering"], (beat.worker_id, limits.BATCH))
    return Pulse(lease / MICROSECONDS, status, list(lingering))


@reads
def shortest_lease(self: Context) -> Flow[float | None]:
    """Return the shortest lease of all workers that are not dead; None if there are none."""
    ((lease,),) = yield Execute(SQL["shortest_lease"])
    return None if lease is None else lease / MICROSECONDS


@reads
def expired(self: Context, limit: int, since: int = 0) -> Flow[list[Overdue]]:
    most = min(limit, limits.BATCH)
    rows = (yield Execute(SQL["lost"], (most,))).fetchall()
    for cause in ("timed_out", "unstarted"):
        rows += (yield Execute(SQL[cause], (self.clock(), since, most - len(rows)))).fetchall()
    return [overdue_of(row) for row in rows]


@writes
def register(self: Context, worker: NewWorker) -> Flow[str]:
    checked(worker)
    now = self.clock()
    row = (yield Execute(SQL["worker"], (worker.worker_id,))).fetchone()
    if row is not None and row[0] == WorkerStatus.DEAD:
        raise WorkerGone
    yield Execute(
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
            now,
            COUNTED,
        ),
    )
    if row is None:
        yield from _tell("worker_joined", [worker.worker_id], now)
    return worker.worker_id


@writes
def mark(self: Context, worker_id: str, status: WorkerStatus) -> Flow[bool]:
    cursor = yield Execute(SQL["mark"], (worker_id, status))
    if cursor.rowcount:
        yield from _tell(f"worker_{status}", [worker_id], self.clock())
    return bool(cursor.rowcount)


@writes
def bury(self: Context, worker_ids: Sequence[str]) -> Flow[list[str]]:
    now = self.clock()
    buried = []
    for worker_id in worker_ids:
        if (yield Execute(SQL["bury"], (worker_id, now))).rowcount:
            yield Execute(SQL["drop_lingering"], (worker_id,))
            buried.append(worker_id)
    yield from _tell("worker_dead", buried, now, apart(LOST_WORKERS))
    return buried


@writes
def forget(self: Context, worker_id: str) -> Flow[bool]:
    row = (yield Execute(SQL["worker"], (worker_id,))).fetchone()
    if row is None:
        return False
    yield Execute(SQL["drop_lingering"], (worker_id,))
    ((holds,),) = yield Execute(SQL["holds"], (worker_id,))
    yield Execute(SQL["declare_dead" if holds else "remove"], (worker_id,))
    yield from _tell("worker_left", [worker_id], self.clock())
    return True


def _tell(
    verb: str, worker_ids: list[str], now: int, counted: TallyKey | None = None
) -> Flow[None]:
    accounts = Accounts()
    for worker_id in worker_ids:
        accounts.mention(Passage(verb, worker_id))
        if counted is not None:
            accounts.count(counted, 1)
    yield from accounts.post(now)
