"""Leases belong to workers: one heartbeat keeps everything a worker holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidWorker, PayloadTooDeep
from fairlane.core.model import Beat, NewWorker, WorkerStatus
from fairlane.core.raw_json import may_be_deep
from fairlane.core.submission import check_tree
from fairlane.core.text import NAME_RULE, is_name, is_plain, shown


def checked(worker: NewWorker) -> NewWorker:
    """Return the worker. Raises InvalidWorker if it cannot be registered."""
    if not is_name(worker.worker_id):
        raise InvalidWorker(f"A worker id has {NAME_RULE}. Got {shown(worker.worker_id)}.")
    kinds = (worker.capabilities, worker.queues, worker.types)
    check_amount(*kinds)
    for names in kinds:
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


def check_amount(*kinds: Collection[str] | None) -> None:
    """Raise InvalidWorker if a worker names too many capabilities, queues or types."""
    if any(names is not None and len(names) > limits.WORKER_NAMES for names in kinds):
        raise InvalidWorker(f"A worker names at most {limits.WORKER_NAMES:,} of each kind.{_ALL}")
    if amount_of(*kinds) > limits.WORKER_NAME_BYTES:
        raise InvalidWorker(
            "The capabilities, queues and types of a worker have at most "
            f"{limits.WORKER_NAME_BYTES:,} characters together.{_ALL}"
        )


def amount_of(*kinds: Collection[str] | None) -> int:
    """Return how many characters a worker's capabilities, queues and types have together."""
    return sum(len(name) for names in kinds for name in names or ())


_ALL: Final = " A worker that names no queues or types takes all of them."


def stored_health(beat: Beat) -> str | None:
    """Return a worker's health as it is stored. Raises InvalidWorker if it is too large or deep."""
    if beat.health is None:
        return None
    try:
        health = msgspec.json.encode(beat.health)
        if len(health) > limits.HEALTH_BYTES:
            raise InvalidWorker(
                f"A worker's health has at most {limits.HEALTH_BYTES:,} bytes of JSON."
            )
        if may_be_deep(health):
            check_tree(msgspec.json.decode(health), limits.JSON_DEPTH)
    except (RecursionError, PayloadTooDeep):
        raise InvalidWorker(
            f"A worker's health is nested at most {limits.JSON_DEPTH} levels deep: flatten it."
        ) from None
    return health.decode()


def health_of(stored: str | None) -> Mapping[str, Any] | None:
    """Return what `stored_health` was given. Earlier versions stored values of any depth, which
    no response could hold: they are replaced by a mark."""
    if stored is None:
        return None
    try:
        health: Mapping[str, Any] = msgspec.json.decode(stored)
        if may_be_deep(stored.encode()):
            check_tree(health, limits.JSON_DEPTH)
    except (RecursionError, PayloadTooDeep):
        return {"unreadable": f"nested more than {limits.JSON_DEPTH} levels deep"}
    return health


def status_after_beat(current: WorkerStatus, reported: WorkerStatus | None) -> WorkerStatus:
    """Return the status after a heartbeat. A drain stays, whatever the worker reports."""
    if reported is None or current is WorkerStatus.DRAINING:
        return current
    return reported
