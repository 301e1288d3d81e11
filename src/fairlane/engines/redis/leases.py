"""start, progress, heartbeat, expired, register, mark, bury, forget: workers and their tasks."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.ids import checked_all
from fairlane.core.leases import checked, status_after_beat, stored_health
from fairlane.core.model import (
    Beat,
    Cause,
    NewWorker,
    Overdue,
    Pulse,
    Report,
    Spec,
    Start,
    Verdict,
    WorkerStatus,
)
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import COUNTED, stored_names, stored_seconds
from fairlane.core.tally import LOST_WORKERS, apart
from fairlane.engines.redis.calls import Argument
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.record import Record, fixed, raw_id, text_id, unpacked
from fairlane.engines.redis.rows import run_of, stored_key, stored_progress
from fairlane.engines.redis.scripts import script

START = script("start")
PROGRESS = script("progress")
HEARTBEAT = script("heartbeat")
EXPIRED = script("expired")
REGISTER = script("register")
SET_WORKER_STATUS = script("set_worker_status")
BURY = script("bury")
FORGET = script("forget")


@writes
def start(self: Context, worker_id: str, starts: Sequence[Start]) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in starts])
    arguments: list[Argument] = []
    for item in starts:
        began = int(item.seconds * MICROSECONDS)
        arguments += (raw_id(item.task_id), struct.pack(">I", item.attempt), began)
    return _verdicts((yield from self.call(START, worker_id, *arguments)))


@writes
def progress(self: Context, worker_id: str, reports: Sequence[Report]) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in reports])
    arguments: list[Argument] = []
    for item in reports:
        report = stored_progress(item.percent, item.message)
        arguments += (raw_id(item.task_id), struct.pack(">I", item.attempt), report)
    return _verdicts((yield from self.call(PROGRESS, worker_id, *arguments)))


def _verdicts(reply: list[bytes]) -> list[Verdict]:
    return [Verdict(verdict.decode()) for verdict in reply]


@writes
def heartbeat(self: Context, beat: Beat) -> Flow[Pulse]:
    # The next status depends on the stored one, so the script receives the next status for each.
    next_statuses: list[Argument] = []
    for status in (WorkerStatus.ACTIVE, WorkerStatus.DRAINING, WorkerStatus.UNHEALTHY):
        next_statuses += (status.value, status_after_beat(status, beat.status).value)
    load = "" if beat.load is None else beat.load
    health = stored_health(beat) or ""
    reply = yield from self.call(
        HEARTBEAT, beat.worker_id, load, health, limits.BATCH, *next_statuses
    )
    if reply[0] == b"gone":
        raise WorkerGone
    _, lease, status, lingering = reply
    return Pulse(
        int(lease) / MICROSECONDS,
        WorkerStatus(status.decode()),
        sorted(run_of(run) for run in lingering),
    )


@reads
def expired(self: Context, limit: int, since: int = 0) -> Flow[list[Overdue]]:
    rows = yield from self.call(EXPIRED, min(limit, limits.BATCH), since)
    found: list[Overdue] = []
    for cause, raw, stored, task in rows:
        record = unpacked(stored)
        lane = yield from self.lane(record.lane)
        if lane is not None:  # else it was dropped since, so the task is gone as well
            found.append(_overdue(cause, raw, record, task, lane.type))
    return found


def _overdue(cause: bytes, raw: bytes, record: Record, task: bytes, type: str) -> Overdue:
    max_retries, _, spec, _ = fixed(task)
    return Overdue(
        task_id=text_id(raw),
        attempt=record.attempt,
        worker_id=record.worker_id,
        type=type,
        cause=Cause(cause.decode()),
        started=record.started_at != 0,
        retry_count=record.retry_count,
        max_retries=max_retries,
        returns=record.returns,
        timeout=record.timeout or None,
        retry=Spec.decode(spec or None).retry,
    )


@writes
def register(self: Context, worker: NewWorker) -> Flow[str]:
    checked(worker)
    within = stored_seconds(worker.start_within)
    fields: dict[str, Argument] = {
        "capacity": worker.capacity,
        "capabilities": stored_names(worker.capabilities) or "",
        "queues": stored_names(worker.queues) or "",
        "types": stored_names(worker.types) or "",
        "host": worker.host,
        "version": worker.version,
        "lease": int(worker.lease * MICROSECONDS),
        "start_within": "" if within is None else within,
    }
    flat = [part for field in fields.items() for part in field]
    if (yield from self.call(REGISTER, worker.worker_id, COUNTED, *flat)) == b"gone":
        raise WorkerGone
    return worker.worker_id


@writes
def mark(self: Context, worker_id: str, status: WorkerStatus) -> Flow[bool]:
    return bool((yield from self.call(SET_WORKER_STATUS, worker_id, status.value)))


@writes
def bury(self: Context, worker_ids: Sequence[str]) -> Flow[list[str]]:
    buried = yield from self.call(BURY, stored_key(apart(LOST_WORKERS)), *worker_ids)
    return [worker_id.decode() for worker_id in buried]


@writes
def forget(self: Context, worker_id: str) -> Flow[bool]:
    return bool((yield from self.call(FORGET, worker_id)))
