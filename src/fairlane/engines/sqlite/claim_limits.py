"""How many tasks a claim may take where some types, or everything, are limited."""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple

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


class Allowances(NamedTuple):
    """What a claim may take under the limits that hold as it begins.

    `most`: of everything. `of_types`: of each limited type. `slots`: of all limited types together.
    `opens_in`: the seconds until a limit may let more through.
    """

    quotas: tuple[Quota, ...]
    most: int
    of_types: dict[str, int]
    slots: int
    rated: list[Quota]
    buckets: dict[str, Bucket]
    opens_in: float | None

    def by_lane(self) -> dict[int, Left]:
        """Return what is left of it, by lane of a limited type: all of it, for one merge."""
        slots = Left(self.slots, None)
        left = {type: Left(most, slots) for type, most in self.of_types.items()}
        return {lane: left[quota.type] for quota in self.quotas for lane in quota.lanes}


def allowances(self: Context, opening: Opening, ask: Ask, now: int) -> Flow[Allowances | None]:
    """Return what a claim may take where some types, or everything, are limited; else None."""
    if not (opening.quotas or opening.rate):
        return None
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
    of_types = {quota.type: allowed(quota) for quota in opening.quotas}
    wait = min(waits, default=None)
    return Allowances(opening.quotas, most, of_types, ask.slots, rated, buckets, wait)


def pick_within_limits(
    self: Context, allowed: Allowances, streams: list[Stream], now: int
) -> Flow[Picked]:
    """Pick tasks where some types, or everything, are limited; pay with tokens."""
    left = allowed.by_lane()
    picked = yield from merge(self, streams, now, left, allowed.most)
    taken: Counter[str] = Counter()
    for (lane, _), count in picked.items():
        taken[self.catalogue.lane(lane).type] += count
        taken[_EVERYTHING] += count
    for quota in allowed.rated:
        if taken[quota.type]:
            bucket = allowed.buckets[quota.type]
            tokens = bucket.tokens - taken[quota.type]
            yield Execute(SQL["fill_bucket"], (quota.type, tokens, bucket.at))
    return picked


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
