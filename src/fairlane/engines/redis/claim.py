"""claim: give tasks to workers, by effective priority, then ready_at, then id."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import unpack
from fairlane.core.lanes import Opening, opening, retimed
from fairlane.core.model import PLAIN, Ask, Claimed, Grant, Spec
from fairlane.core.priority import HIGHEST, LOWEST, MICROSECONDS, Aging
from fairlane.core.streams import FEW
from fairlane.engines.redis.calls import Argument
from fairlane.engines.redis.context import Catalogue, Context
from fairlane.engines.redis.record import raw_id
from fairlane.engines.redis.scripts import script

CLAIM = script("claim")
SET_TIMEOUTS = script("set_timeouts")

# A record without its worker (see FIELDS in record.py), of which some fields are skipped, then the
# numbers that `fixed` reads.
_GRANTED = struct.Struct(">37xQ8xQHHd8xHBIxHHI")


@writes
def claim(self: Context, ask: Ask) -> Flow[Grant]:
    catalogue = self.catalogue
    while True:
        status, *reply = yield from self.call(
            CLAIM,
            catalogue.version,
            ask.worker_id,
            ask.request_id,
            ask.slots,
            ask.ahead,
            limits.BATCH,
            _encoded_opening(catalogue, ask),
            _encoded_aging(catalogue.aging),
            catalogue.aging.youth,
            0 if ask.heard is None else 1,
            ask.heard or "",
        )
        if status != b"stale":
            break
        catalogue = yield from self.refresh()
    if status == b"gone":
        raise WorkerGone
    wait, packed_ids, answers, *last = reply
    claimed = [
        _claimed(catalogue, ask.worker_id, task_id, granted)
        for task_id, granted in zip(unpack(packed_ids), answers, strict=True)
    ]
    request_id = last[0].decode() if last else None
    if catalogue.timeouts and request_id is None:
        changed = retimed(claimed, catalogue.timeouts)
        yield from _set_timeouts(self, ask.worker_id, changed.values())
        claimed = [changed.get(task.task_id, task) for task in claimed]
    return Grant(claimed, int(wait) / MICROSECONDS if wait else None, request_id)


def _set_timeouts(self: Context, worker_id: str, tasks: Iterable[Claimed]) -> Flow[None]:
    """Store the timeouts of tasks that get the one of their type.

    If the connection is lost before this, they keep the timeout that they had.
    """
    arguments: list[Argument] = []
    for task in tasks:
        attempt = struct.pack(">I", task.attempt)
        arguments += (raw_id(task.task_id), attempt, struct.pack(">d", task.timeout))
    if arguments:
        yield from self.call(SET_TIMEOUTS, worker_id, *arguments)


def _encoded_opening(catalogue: Catalogue, ask: Ask) -> bytes:
    """Return lanes and limits for the script; cached for all asks of a kind.

    `spans`: the spans of lanes from which the worker may take, null for all lanes. `few`: these
    lanes one by one if they are few, else null. A quota counts the held tasks in all lanes of its
    type (`counted`), even in lanes from which this worker must not take.
    """
    kind = (ask.types, ask.queues, ask.capabilities)
    encoded = catalogue.openings.get(kind)
    if encoded is None:
        found = opening(catalogue.lanes.values(), catalogue.controls, ask)
        if len(catalogue.openings) >= limits.ASK_KINDS:
            catalogue.openings.clear()
        encoded = catalogue.openings[kind] = _encode(found, catalogue)
    return encoded


def _encode(found: Opening, catalogue: Catalogue) -> bytes:
    quotas = [
        {
            "type": quota.type,
            "rate": quota.rules.rate,
            "slots": quota.rules.slots,
            "open_until": quota.rules.open_until or 0,
            "opened_at": quota.rules.opened_at or 0,
            "lanes": quota.lanes,
            "counted": [lane.id for lane in catalogue.lanes.values() if lane.type == quota.type],
        }
        for quota in found.quotas
    ]
    spans = None if len(found.lanes) == len(catalogue.lanes) else found.spans
    few = found.lanes if spans is not None and len(found.lanes) <= FEW else None
    encoded = {"spans": spans, "few": few, "quotas": quotas, "rate": found.rate}
    return msgspec.json.encode(encoded)


@lru_cache
def _encoded_aging(aging: Aging) -> bytes:
    """Return per level, youngest first, pairs of an age limit (-1: none) and effective level."""
    return msgspec.json.encode(
        [
            [
                (-1 if segment.to_age is None else segment.to_age, segment.effective)
                for segment in aging.segments(level)
            ]
            for level in range(LOWEST, HIGHEST + 1)
        ]
    )


def _claimed(catalogue: Catalogue, worker_id: str, task_id: str, granted: bytes) -> Claimed:
    (
        ready_at,
        created_at,
        retries,
        returns,
        timeout,
        lane_id,
        level,
        attempt,
        max_retries,
        key_length,
        spec_length,
    ) = _GRANTED.unpack_from(granted)
    lane = catalogue.lanes[lane_id]
    spec = _GRANTED.size + key_length
    payload = spec + spec_length
    return Claimed(
        task_id,
        attempt or 1,  # zero: sent as it was submitted
        worker_id,
        lane.type,
        lane.queue,
        level,
        granted[payload:],
        retries,
        max_retries,
        returns,
        timeout or None,
        created_at,
        ready_at,
        Spec.decode(granted[spec:payload]) if spec_length else PLAIN,
    )
