"""Claims where types, or everything, have a limit: slots are counted under a lock, tokens taken."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.flow import Flow
from fairlane.core.lanes import Bucket, Opening, Quota, Rules, allowance, opens_in, refilled
from fairlane.core.model import Ask
from fairlane.engines.postgres.calls import BEGIN, CLASS, COMMIT, Query
from fairlane.engines.postgres.claim_order import (
    SQL,
    Reading,
    Section,
    choose_arms,
    statement_within_limits,
)
from fairlane.engines.postgres.context import Context, Known
from fairlane.engines.postgres.rows import Header, Row


class LimitedReply(NamedTuple):
    """A claim's reply, the sections that it was picked from, and in how many seconds a limit may
    allow more."""

    rows: list[Row]
    sections: list[Section]
    opens_in: float | None


WITHIN_LIMITS = [SQL[name] for name in ("lock_limits", "buckets", "held", "heads", "fill_buckets")]
"""The statements of a claim within limits, besides the one that picks the tasks."""

_EVERYTHING = ""
_SOON = 0.05
"""Seconds within which to claim again if another worker had locked a type."""


def claim_within_limits(
    self: Context, known: Known, ask: Ask, opening: Opening, tidied: bool
) -> Flow[LimitedReply]:
    """Claim where types, or everything, have a limit.

    Each statement sees what was committed before it, so what is counted under a lock is exact. One
    statement picks all tasks; it is the first that writes.
    """
    yield BEGIN
    quotas, everything = yield from _lock_types(opening)
    rated = [quota for quota in (*everything, *quotas) if quota.rules.rate]
    now, buckets = yield from _read_buckets(rated)
    held = yield from _count_held(known, quotas)
    waits = [random.uniform(0, _SOON)] if len(quotas) < len(opening.quotas) else []

    def allowed(quota: Quota) -> int:
        bucket = buckets.get(quota.type)
        wait = opens_in(quota.rules, bucket, now)
        if wait is not None:
            waits.append(wait)
        return allowance(quota.rules, bucket, held[quota.type], now)

    # Tasks that are held ahead would use tokens and slots before they run.
    most = min(ask.slots if opening.rate else ask.slots + ask.ahead, limits.BATCH)
    for quota in everything:
        most = min(most, allowed(quota))
    caps = {quota.type: min(ask.slots, allowed(quota)) for quota in quotas}
    sections: list[Section] = [(opening.free, most)]
    sections += [(quota.lanes, caps[quota.type]) for quota in quotas if caps[quota.type]]
    reading = Reading((yield from choose_arms(known, opening, sections)))
    reply: list[Row] = yield Query(
        statement_within_limits(reading.shapes),
        (
            *(ask.worker_id, ask.request_id, known.version, most, tidied, ask.heard),
            *reading.columns,
            [cap for _, cap in sections],
            [number > 0 for number in range(len(sections))],
            ask.slots,
        ),
    )
    yield from _take_tokens(known, rated, buckets, reply)
    yield COMMIT
    return LimitedReply(reply, sections, min(waits, default=None))


def _lock_types(opening: Opening) -> Flow[tuple[list[Quota], list[Quota]]]:
    """Lock limited types. Return the quotas of those that were free, and that of everything."""
    everything = [Quota(_EVERYTHING, Rules(rate=opening.rate), ())] if opening.rate else []
    types = [quota.type for quota in opening.quotas]
    rows = yield Query(SQL["lock_limits"], (types, bool(everything), CLASS))
    locked = {type for (type,) in rows}
    return [quota for quota in opening.quotas if quota.type in locked], everything


def _read_buckets(rated: list[Quota]) -> Flow[tuple[int, dict[str, Bucket]]]:
    """Return the time, and the token buckets as they are at that time."""
    rows = yield Query(SQL["buckets"], ([quota.type for quota in rated],))
    now = rows[0][0]
    stored = {type: Bucket(tokens, at) for _, type, tokens, at in rows if type is not None}
    return now, {
        quota.type: refilled(stored.get(quota.type), quota.rules.rate, now) for quota in rated
    }


def _count_held(known: Known, quotas: list[Quota]) -> Flow[Counter[str]]:
    """Return how many slots of each type are taken, counted from the rows that hold them."""
    found: Counter[str] = Counter()
    if any(quota.rules.slots for quota in quotas):
        for lane, count in (yield Query(SQL["held"])):
            if lane in known.lanes:  # else its type is newer than `known`, and has no quota
                found[known.lanes[lane].type] += count
    return found


def _take_tokens(
    known: Known, rated: list[Quota], buckets: dict[str, Bucket], reply: list[Row]
) -> Flow[None]:
    """Take a token for each claimed task from its buckets.

    Buckets are refilled up to the time that the tasks were claimed at, which is a little later than
    the time they were read at: the rate then holds for the times that tasks have.
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
