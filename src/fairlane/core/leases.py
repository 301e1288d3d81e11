"""Leases belong to workers: one heartbeat keeps everything a worker holds."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.errors import InvalidWorker
from fairlane.core.model import NewWorker, WorkerStatus
from fairlane.core.text import NAME_RULE, is_name, is_plain, shown


def checked(worker: NewWorker) -> NewWorker:
    """Return the worker. Raises InvalidWorker if it cannot be registered."""
    if not is_name(worker.worker_id):
        raise InvalidWorker(f"A worker id has {NAME_RULE}. Got {shown(worker.worker_id)}.")
    for names in (worker.capabilities, worker.queues, worker.types):
        for name in names or ():
            if not is_name(name):
                raise InvalidWorker(
                    f"A capability, queue or type has {NAME_RULE}. Got {shown(name)}."
                )
    for text in (worker.host, worker.version):
        if not is_plain(text):
            raise InvalidWorker(
                f"A worker's host and version are texts of at most {limits.NAME_LENGTH} "
                f"characters without control characters. Got {shown(text)}."
            )
    if not isinstance(worker.capacity, int) or not 1 <= worker.capacity <= limits.CONCURRENCY:
        raise InvalidWorker(f"A worker's capacity is 1 to {limits.CONCURRENCY:,} tasks.")
    if not 0 < worker.lease <= limits.LEASE_SECONDS_LONGEST:
        raise InvalidWorker(
            f"A worker's lease is above 0 and at most {limits.LEASE_SECONDS_LONGEST:,.0f} seconds."
        )
    within = worker.start_within
    if within is not None and not 0 < within <= limits.LEASE_SECONDS_LONGEST:
        raise InvalidWorker(
            "The time from the claim of a task to its start is above 0 and at most "
            f"{limits.LEASE_SECONDS_LONGEST:,.0f} seconds. Got {shown(within)}."
        )
    return worker


def status_after_beat(current: WorkerStatus, reported: WorkerStatus | None) -> WorkerStatus:
    """Return the status after a heartbeat. A drain stays, whatever the worker reports."""
    if reported is None or current is WorkerStatus.DRAINING:
        return current
    return reported
