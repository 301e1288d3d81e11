"""Leases belong to workers: one heartbeat keeps everything a worker holds."""

from __future__ import annotations

import re
from typing import Final

from fairlane.core import limits
from fairlane.core.errors import InvalidWorker
from fairlane.core.model import NewWorker, WorkerStatus

_ID: Final = re.compile(r"[A-Za-z0-9_.:\-]{1,%d}\Z" % limits.NAME_LENGTH)  # noqa: UP031


def checked(worker: NewWorker) -> NewWorker:
    """The worker, if it can be registered."""
    if not _ID.match(worker.worker_id):
        raise InvalidWorker("A worker id has 1 to 255 characters out of A-Z a-z 0-9 _ . : - only.")
    if not 1 <= worker.capacity <= limits.CONCURRENCY:
        raise InvalidWorker(f"A worker's capacity is 1 to {limits.CONCURRENCY:,} tasks.")
    if not 0 < worker.lease <= limits.LEASE_SECONDS_LONGEST:
        raise InvalidWorker(
            f"A worker's lease is above 0 and at most {limits.LEASE_SECONDS_LONGEST:,.0f} seconds."
        )
    return worker


def status_after_beat(current: WorkerStatus, reported: WorkerStatus | None) -> WorkerStatus:
    """A worker speaks for its own health, but only an operator's drain is for good."""
    if reported is None or current is WorkerStatus.DRAINING:
        return current
    return reported
