"""How many tasks a claim may take where some types, or everything, are limited."""

from __future__ import annotations

import json

from fairlane.core import limits
from fairlane.core.flow import Flow
from fairlane.core.lanes import (
    Bucket,
    Opening,
    Quota,
    Rules,
    allowance,
    opens_in,
    refilled,
)
from fairlane.core.model import Ask
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.claim_order import SQL, Left, Picked, Stream, merge
from fairlane.engines.sqlite.context import Context

_EVERYTHING = ""


def pick_within_limits(
    self: Context,
    opening: Opening,
    streams: list[Stream],
    ask: Ask,
    now: int,
) -> Flow[tuple[Picked, float | None]]:
    """Pick tasks where some types, or everything, are limited; pay with tokens."""
    # What is held ahead of its run would use up tokens and slots for nothing.
    most = min(ask.slots if opening.rate else ask.slots + ask.ahead, limits.BATCH)
    everything = Quota(_EVERYTHING, Rules(rate=opening.rate), ())
    rated = [quota for quota in (everything, *opening.quotas) if quota.rules.rate]
    buckets = yield from _buckets(rated, now)
    held = yield from _held(self, opening.quotas)
    waits: list[float] = []

    def allowed(quota: Quota) -> int:
        bucket = buckets.get(quota.type)
        wait = opens_in(quota.rules, bucket, now)
        if wait is not None:
            waits.append(wait)
        return allowance(quota.rules, bucket, held.get(quota.type, 0), now)

    most = min(most, allowed(everything))
    slots = Left(ask.slots, None)
    left = {quota.type: Left(allowed(quota), slots) for quota in opening.quotas}
    by_lane = {lane: left[quota.type] for quota in opening.quotas for lane in quota.lanes}
    picked = yield from merge(self, streams, now, by_lane, most)
    for quota in rated:
        taken = sum(picked.values()) if quota is everything else left[quota.type].taken
        if taken:
            bucket = buckets[quota.type]
            yield Execute(SQL["fill_bucket"], (quota.type, bucket.tokens - taken, bucket.at))
    return picked, min(waits, default=None)


def _buckets(rated: list[Quota], now: int) -> Flow[dict[str, Bucket]]:
    if not rated:
        return {}
    types = json.dumps([quota.type for quota in rated])
    rows = yield Execute(SQL["buckets"], (types,))
    stored = {type: Bucket(tokens, at) for type, tokens, at in rows}
    return {quota.type: refilled(stored.get(quota.type), quota.rules.rate, now) for quota in rated}


def _held(self: Context, quotas: tuple[Quota, ...]) -> Flow[dict[str, int]]:
    """Count the slots that each limited type has taken."""
    found: dict[str, int] = {}
    if any(quota.rules.slots for quota in quotas):
        for lane, count in (yield from held_by_lane()).items():
            type = self.catalogue.lane(lane).type
            found[type] = found.get(type, 0) + count
    return found


def held_by_lane() -> Flow[dict[int, int]]:
    """Count the slots that are taken in each lane, by held tasks and by lingering runs."""
    rows = yield Execute(SQL["held"])
    return dict(rows)
