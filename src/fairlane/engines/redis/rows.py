"""Convert stored bytes to structs."""

from __future__ import annotations

import struct

import msgspec

from fairlane.core.journal import Passage
from fairlane.core.lanes import Lane
from fairlane.core.model import Attempt, Progress, Task, Worker, moment
from fairlane.core.priority import MICROSECONDS, Aging
from fairlane.core.records import TaskRecord, WorkerRecord, attempt_of
from fairlane.core.states import TERMINAL, State
from fairlane.core.tally import Tally, TallyKey
from fairlane.engines.redis.context import pairs
from fairlane.engines.redis.record import LINE, Record, fixed, text_id

# attempt, started_at, ended_at, then the lengths of worker, outcome and error, which follow
_RUN = struct.Struct(">IQQBBI")

WORKER_FIELDS = (
    "status",
    "capacity",
    "load",
    "capabilities",
    "queues",
    "types",
    "host",
    "version",
    "health",
    "lease",
    "start_within",
    "registered_at",
    "seen_at",
)


def runs_of(stored: bytes | None) -> list[Attempt]:
    """Return the runs of a task that did not complete, in the order of their ends."""
    found: list[Attempt] = []
    at = 0
    while stored and at < len(stored):
        number, started_at, ended_at, *lengths = _RUN.unpack_from(stored, at)
        at += _RUN.size
        parts = []
        for length in lengths:
            parts.append(stored[at : at + length])
            at += length
        worker, outcome, error = parts
        found.append(
            attempt_of(
                number,
                worker.decode() or None,
                started_at or None,
                ended_at,
                outcome.decode(),
                error,
            )
        )
    return found


def run_of(stored: bytes) -> tuple[str, int]:
    """Return the task id and the attempt of a run."""
    return text_id(stored[:16]), int.from_bytes(stored[16:20])


def task_of(
    task_id: str,
    record: Record,
    stored_task: bytes,
    runs: bytes | None,
    error: bytes | None,
    progress: bytes | None,
    trail: bytes | None,
    *,
    lane: Lane,
    aging: Aging,
    now: int,
) -> Task:
    """Return a task from its record and its runs. Zero and '' mean None."""
    max_retries, idempotency_key, spec, payload = fixed(stored_task)
    state = State.of(record.state)
    return TaskRecord(
        task_id=task_id,
        level=record.level,
        state=record.state,
        ready_at=record.ready_at,
        due_at=record.due_at or None,
        created_at=record.created_at,
        run_at=record.run_at,
        expires_at=record.expires_at or None,
        attempt=record.attempt,
        retry_count=record.retry_count,
        max_retries=max_retries,
        returns=record.returns,
        timeout=record.timeout or None,
        updated_at=record.updated_at,
        version=record.version,
        payload=payload,
        spec=spec or None,
        idempotency_key=idempotency_key.decode() or None,
        worker_id=record.worker_id or None,
        claimed_at=record.claimed_at or None,
        started_at=record.started_at or None,
        # Nothing changes a task after its end.
        completed_at=record.updated_at if state in TERMINAL else None,
        error=error,
        result=(record.rest or None) if state is State.COMPLETED else None,
        trail=trail,
    ).task(lane, runs_of(runs), progress_of(progress), aging, now)


def stored_progress(percent: float | None, message: str | None) -> bytes:
    """Return progress as it is stored; the script puts the time before it."""
    return msgspec.json.encode((percent, message))


def progress_of(stored: bytes | None) -> Progress | None:
    """Return the progress that `stored_progress` encoded."""
    if not stored:
        return None
    percent, message = msgspec.json.decode(stored[8:])
    return Progress(percent, message, moment(int.from_bytes(stored[:8])))


def worker_of(worker_id: bytes, row: list[bytes | None], runs: list[bytes], now: int) -> Worker:
    """Return a worker from its fields, in the order of WORKER_FIELDS."""
    texts = {
        field: (value or b"").decode() for field, value in zip(WORKER_FIELDS, row, strict=True)
    }
    return WorkerRecord(
        worker_id=worker_id.decode(),
        status=texts["status"],
        capacity=int(texts["capacity"]),
        load=int(texts["load"]),
        capabilities=texts["capabilities"],
        queues=texts["queues"] or None,
        types=texts["types"] or None,
        host=texts["host"],
        version=texts["version"],
        health=texts["health"] or None,
        lease=int(texts["lease"]),
        start_within=int(texts["start_within"]) if texts["start_within"] else None,
        registered_at=int(texts["registered_at"]),
        seen_at=int(texts["seen_at"]),
    ).worker(sorted(text_id(run[:16]) for run in runs), now)


def stored_key(key: TallyKey) -> str:
    """Return the field of a counter."""
    return ":".join(map(str, key))


def tallies_of(counts: list[bytes], durations: list[bytes]) -> list[Tally]:
    """Return the counters from their two hashes."""
    seconds = {field: int(value) / MICROSECONDS for field, value in pairs(durations)}
    return [
        Tally(_tally_key(field), int(times), seconds.get(field, 0.0))
        for field, times in sorted(pairs(counts))
    ]


def _tally_key(field: bytes) -> TallyKey:
    lane, level, source, target, label, bucket = field.decode().split(":")
    return TallyKey(int(lane), int(level), int(source), int(target), label, int(bucket))


def passage_of(field: tuple[bytes, bytes]) -> Passage:
    """Return a passage from a field of a journal entry; see lua/lib/accounting.lua."""
    name, value = field
    verb, *rest = name.decode().split(" ")
    if not value:
        return Passage(verb, rest[0])
    stream, worker_id = rest
    lane, level = map(int, stream.split(":"))
    lines = list(LINE.iter_unpack(value))
    return Passage(
        verb,
        worker_id or None,
        lane,
        level,
        [text_id(raw) for raw, _, _ in lines],
        [attempt for _, attempt, _ in lines],
        [None if ran < 0 else ran / MICROSECONDS for _, _, ran in lines],
    )
