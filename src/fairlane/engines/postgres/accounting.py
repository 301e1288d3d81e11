"""Counters and journal. Most statements write them by themselves (see accounting.sql); the rest is
here."""

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
    """Tell of workers in the journal."""
    if worker_ids:
        yield Query(SQL["mention"], (verb, list(worker_ids)))


def count(keys: Sequence[TallyKey]) -> Flow[None]:
    """Count transitions that happened once each."""
    if keys:
        columns = zip(*keys, strict=True)
        yield Query(SQL["count"], [list(column) for column in columns])


def trim(most: int, until: int) -> Flow[int]:
    """Cut the journal to its length, and to what is younger than this time."""
    values = (TRIMMING, most, limits.JOURNAL_ENTRIES, until)
    ((gone,),) = yield Query(SQL["trim"], values)
    return int(gone)


def upkeep(self: Context) -> Flow[None]:
    """Now and then, after a write: add up the deltas, and cut the journal to its length."""
    if next(self.writes) % _EVERY:
        return
    try:
        yield Chore(SQL["fold"], (FOLDING, _DELTAS))
        yield Chore(SQL["trim"], (TRIMMING, _ENTRIES, limits.JOURNAL_ENTRIES, _NEVER))
    except StoreUnavailable:
        # What the operation is about has been done. The next one will see to this.
        return
