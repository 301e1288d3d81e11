"""Workers as `/api/v1` and `--json` show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairlane.core.held_back import held_back
from fairlane.core.model import Worker, WorkerStatus
from fairlane.wire.times import Moment, iso


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker. Null for `queues` or `types` means all."""

    worker_id: str
    status: WorkerStatus
    current_tasks: tuple[str, ...]
    last_heartbeat: Moment
    registered_at: Moment
    capacity: int
    current_load: int
    capabilities: tuple[str, ...]
    queues: tuple[str, ...] | None
    types: tuple[str, ...] | None
    version: str
    host: str
    health: Mapping[str, Any] | None
    lease_seconds: float
    """How long it may send no heartbeat before it counts as dead."""
    start_within_seconds: float | None
    """How long it may hold a task unstarted; null for any time."""
    held_back: tuple[str, ...] = ()
    """Types that it takes no tasks of, but for one now and then, because their handlers hang."""


class WorkerList(msgspec.Struct, frozen=True):
    """All workers. Dead ones are listed until they are removed."""

    workers: tuple[WorkerView, ...]


class WorkerState(msgspec.Struct, frozen=True):
    """A worker's status."""

    worker_id: str
    status: WorkerStatus


def workers_of(workers: Iterable[Worker]) -> WorkerList:
    """Return workers as JSON shows them, ordered by id."""
    return WorkerList(tuple(map(worker_of, sorted(workers, key=lambda each: each.worker_id))))


def worker_of(worker: Worker) -> WorkerView:
    """Return a worker as JSON shows it."""
    return WorkerView(
        worker_id=worker.worker_id,
        status=WorkerStatus.DEAD if worker.lost else worker.status,
        current_tasks=worker.current_tasks,
        last_heartbeat=iso(worker.last_heartbeat),
        registered_at=iso(worker.registered_at),
        capacity=worker.capacity,
        current_load=worker.load,
        capabilities=tuple(sorted(worker.capabilities)),
        queues=_names(worker.queues),
        types=_names(worker.types),
        version=worker.version,
        host=worker.host,
        health=worker.health,
        lease_seconds=worker.lease,
        start_within_seconds=worker.start_within,
        held_back=tuple(sorted(held_back(worker))),
    )


def _names(names: frozenset[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(sorted(names))
