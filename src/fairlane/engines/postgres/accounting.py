"""Counters and journal. Statements that move tasks write both (see accounting.sql)."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core import limits
from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Flow
from fairlane.core.tally import TallyKey
from fairlane.engines.postgres.calls import FOLDING, TRIMMING, Chore, Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("accounting")

_EVERY = 128
_DELTAS = 5_000
_ENTRIES = 1_000
_NEVER = 0


def mention(verb: str, worker_ids: Sequence[str]) -> Flow[None]:
    """Write a journal entry for each of these workers."""
    if worker_ids:
        yield Query(SQL["mention"], (verb, list(worker_ids)))


def count(keys: Sequence[TallyKey]) -> Flow[None]:
    """Add 1 to the counter of each key."""
    if keys:
        columns = zip(*keys, strict=True)
        yield Query(SQL["count"], [list(column) for column in columns])


def trim(most: int, until: int) -> Flow[int]:
    """Delete journal entries that are too many, or older than `until`. Return how many."""
    values = (TRIMMING, most, limits.JOURNAL_ENTRIES, until)
    ((gone,),) = yield Query(SQL["trim"], values)
    return int(gone)


def fold_and_trim(self: Context) -> Flow[None]:
    """After every 128th write, add up the counters' deltas and trim the journal."""
    if next(self.writes) % _EVERY:
        return
    try:
        yield Chore(SQL["fold"], (FOLDING, _DELTAS))
        yield Chore(SQL["trim"], (TRIMMING, _ENTRIES, limits.JOURNAL_ENTRIES, _NEVER))
    except StoreUnavailable:
        # The operation itself has succeeded. A later one will fold and trim.
        return
