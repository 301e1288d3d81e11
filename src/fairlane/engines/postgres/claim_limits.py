"""Claims where some types, or everything, are limited: counted under a lock, paid with tokens."""

from __future__ import annotations

import random
from collections import Counter

from fairlane.core import limits
from fairlane.core.flow import Flow
from fairlane.core.lanes import Bucket, Opening, Quota, Rules, allowance, opens_in, refilled
from fairlane.core.model import Ask
from fairlane.engines.postgres.calls import BEGIN, CLASS, COMMIT, Query
from fairlane.engines.postgres.claim_order import (
    SQL,
    Reading,
    arms_of,
    occupied,
    statement_within_limits,
)
from fairlane.engines.postgres.context import Context, Known
from fairlane.engines.postgres.rows import Header, Row

_EVERYTHING = ""
_SOON = 0.05
"""Seconds within which to come back for types that someone else was claiming."""


def claim_within_limits(
    self: Context, known: Known, ask: Ask, opening: Opening, tidied: bool
) -> Flow[tuple[list[Row], float | None]]:
    """A claim's reply, and when a limit may let more through.

    Each statement sees what was committed before it, so what is counted after a lock is counted
    right. All tasks are picked by one statement, the first that writes.
    """
    yield BEGIN
    quotas, everything = yield from _lock(opening)
    rated = [quota for quota in (*everything, *quotas) if quota.rules.rate]
    now, buckets = yield from _buckets(rated)
    held = yield from _held(known, quotas)
    waits = [random.uniform(0, _SOON)] if len(quotas) < len(opening.quotas) else []

    def allowed(quota: Quota) -> int:
        bucket = buckets.get(quota.type)
        wait = opens_in(quota.rules, bucket, now)
        if wait is not None:
            waits.append(wait)
        return allowance(quota.rules, bucket, held[quota.type], now)

    # What is held ahead of its run would use up tokens and slots for nothing.
    most = min(ask.slots if opening.rate else ask.slots + ask.ahead, limits.BATCH)
    for quota in everything:
        most = min(most, allowed(quota))
    caps = {quota.type: min(ask.slots, allowed(quota)) for quota in quotas}
    lanes = [(opening.free, most)]
    lanes += [(quota.lanes, caps[quota.type]) for quota in quotas if caps[quota.type]]
    sections = []
    for section, cap in lanes:
        arms = arms_of(section, known.levels, self.aging)
        sections.append((yield from occupied(arms, cap)))
    reading = Reading(sections)
    reply: list[Row] = yield Query(
        statement_within_limits(reading.shapes),
        (
            *(ask.worker_id, ask.request_id, known.version, most, tidied, ask.heard),
            *reading.columns,
            [cap for _, cap in lanes],
            [number > 0 for number in range(len(lanes))],
            ask.slots,
        ),
    )
    yield from _pay(known, rated, buckets, reply)
    yield COMMIT
    return reply, min(waits, default=None)


def _lock(opening: Opening) -> Flow[tuple[list[Quota], list[Quota]]]:
    """The limited types that are ours for this transaction, and the quota for everything."""
    everything = [Quota(_EVERYTHING, Rules(rate=opening.rate), ())] if opening.rate else []
    types = [quota.type for quota in opening.quotas]
    rows = yield Query(SQL["lock_limits"], (types, bool(everything), CLASS))
    locked = {type for (type,) in rows}
    return [quota for quota in opening.quotas if quota.type in locked], everything


def _buckets(rated: list[Quota]) -> Flow[tuple[int, dict[str, Bucket]]]:
    """The time, and the token buckets as they stand then."""
    rows = yield Query(SQL["buckets"], ([quota.type for quota in rated],))
    now = rows[0][0]
    stored = {type: Bucket(tokens, at) for _, type, tokens, at in rows if type is not None}
    return now, {
        quota.type: refilled(stored.get(quota.type), quota.rules.rate, now) for quota in rated
    }


def _held(known: Known, quotas: list[Quota]) -> Flow[Counter[str]]:
    """How many tasks of each type are in workers' hands, counted from what is there."""
    found: Counter[str] = Counter()
    if any(quota.rules.slots for quota in quotas):
        for lane, count in (yield Query(SQL["held"])):
            if lane in known.lanes:  # else it is newer than what we know, and so is its type
                found[known.lanes[lane].type] += count
    return found


def _pay(
    known: Known, rated: list[Quota], buckets: dict[str, Bucket], reply: list[Row]
) -> Flow[None]:
    """Take a token for each claimed task out of the buckets it falls under.

    As they stand at the moment that the claimed tasks bear, which is a little later than the one
    they were looked at: else the windows of a rate would not be those that anyone can check.
    """
    now = Header.of(reply).now
    claimed = [known.lanes[row[3]].type for row in reply if row[3] is not None]
    taken = Counter(claimed)
    taken[_EVERYTHING] = len(claimed)
    paid = [
        (quota.type, refilled(buckets[quota.type], quota.rules.rate, now))
        for quota in rated
        if taken[quota.type]
    ]
    if paid:
        yield Query(
            SQL["fill_buckets"],
            (
                [type for type, _ in paid],
                [bucket.tokens - taken[type] for type, bucket in paid],
                [bucket.at for _, bucket in paid],
            ),
        )
