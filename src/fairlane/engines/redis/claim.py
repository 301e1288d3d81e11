"""claim: tasks go to workers, by effective priority, then ready_at, then id."""

from __future__ import annotations

import struct
from functools import lru_cache

import msgspec

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import unpack
from fairlane.core.lanes import Opening, opening
from fairlane.core.model import PLAIN, Ask, Claimed, Grant, Spec
from fairlane.core.priority import HIGHEST, LOWEST, MICROSECONDS, Aging
from fairlane.engines.redis.context import Catalogue, Context
from fairlane.engines.redis.scripts import script

CLAIM = script("claim")

# A record without its worker (see FIELDS), of which a worker need not know everything, and then as
# `fixed` in record.py reads it.
_TOLD = struct.Struct(">37xQ8xQHHd8xHBIxHHI")


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
            _what_may_be_taken(catalogue, ask),
            _how_levels_age(self.aging),
            self.aging.youth,
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
        _claimed(catalogue, ask.worker_id, task_id, told)
        for task_id, told in zip(unpack(packed_ids), answers, strict=True)
    ]
    request_id = last[0].decode() if last else None
    return Grant(claimed, int(wait) / MICROSECONDS if wait else None, request_id)


def _what_may_be_taken(catalogue: Catalogue, ask: Ask) -> bytes:
    """Lanes and limits for the script, made once for all asks of a kind.

    `free`: lanes without limits, null for all there are. A quota counts what is held in all lanes
    of its type (`counted`), whether this worker may take from them or not.
    """
    kind = (ask.types, ask.queues, ask.capabilities)
    encoded = catalogue.openings.get(kind)
    if encoded is None:
        found = opening(catalogue.lanes.values(), catalogue.controls, ask)
        encoded = catalogue.openings[kind] = _encoded(found, catalogue)
    return encoded


def _encoded(found: Opening, catalogue: Catalogue) -> bytes:
    quotas = [
        {
            "type": quota.type,
            "rate": quota.rules.rate,
            "slots": quota.rules.slots,
            "open_until": quota.rules.open_until or 0,
            "lanes": quota.lanes,
            "counted": [lane.id for lane in catalogue.lanes.values() if lane.type == quota.type],
        }
        for quota in found.quotas
    ]
    free = None if len(found.free) == len(catalogue.lanes) else found.free
    return msgspec.json.encode({"free": free, "quotas": quotas, "rate": found.rate})


@lru_cache
def _how_levels_age(aging: Aging) -> bytes:
    """For each level, youngest first: an age in microseconds (-1: any), and what it counts as."""
    return msgspec.json.encode(
        [
            [
                (-1 if segment.to_age is None else segment.to_age, segment.effective)
                for segment in aging.segments(level)
            ]
            for level in range(LOWEST, HIGHEST + 1)
        ]
    )


def _claimed(catalogue: Catalogue, worker_id: str, task_id: str, told: bytes) -> Claimed:
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
    ) = _TOLD.unpack_from(told)
    lane = catalogue.lanes[lane_id]
    spec = _TOLD.size + key_length
    payload = spec + spec_length
    return Claimed(
        task_id,
        attempt or 1,  # zero: told as it was submitted
        worker_id,
        lane.type,
        lane.queue,
        level,
        told[payload:],
        retries,
        max_retries,
        returns,
        timeout or None,
        created_at,
        ready_at,
        Spec.decode(told[spec:payload]) if spec_length else PLAIN,
    )
