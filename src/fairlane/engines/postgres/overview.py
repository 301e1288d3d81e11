"""facts: the store at a glance."""

from __future__ import annotations

from collections import Counter

from fairlane.core.facts import SAMPLE, Facts, Stream, sample_in
from fairlane.core.flow import Flow, reads
from fairlane.core.lanes import Bucket
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.stats import HOUR, MINUTE
from fairlane.core.tally import Tally
from fairlane.engines.postgres import inspect
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.claim_order import SQL as CLAIM
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("overview")


@reads
def facts(self: Context) -> Flow[Facts]:
    tallies = yield from inspect.read_counters()
    known = yield from self.catalogue.load()
    streams = yield from _streams(tallies)
    buckets = yield Query(SQL["buckets"])
    held: Counter[int] = Counter()
    for lane, count in (yield Query(CLAIM["held"])):
        held[lane] += count
    workers = yield from inspect.read_workers()
    # The time is read last: nothing else is younger.
    ages = [int(seconds * MICROSECONDS) for seconds in (MINUTE, HOUR)]
    about = yield Query(SQL["samples_about"], (SAMPLE, ages))
    return Facts(
        now=about[0][0],
        lanes=known.lanes,
        tallies=tallies,
        streams=streams,
        controls=known.controls,
        buckets={type: Bucket(tokens, at) for type, tokens, at in buckets},
        held=held,
        workers=workers,
        # One sample may be the nearest to both times.
        samples=[sample_in(each) for each in {row[1] for row in about} - {None}],
    )


def _streams(tallies: list[Tally]) -> Flow[list[Stream]]:
    """Return the streams that are not empty, by the counters."""
    depths: Counter[tuple[int, int]] = Counter()
    for key, times, _ in tallies:
        depths[key.lane, key.level] += times * ((key.target == _QUEUED) - (key.source == _QUEUED))
    full = [(lane, level, depth) for (lane, level), depth in depths.items() if depth > 0]
    if not full:
        return []
    columns = [list(column) for column in zip(*full, strict=True)]
    rows = yield Query(SQL["streams"], columns)
    return [Stream(*row) for row in rows]


_QUEUED = State.QUEUED.code
