"""facts, sample, samples, elect: the store at a glance, and what the maintenance notes of it."""

from __future__ import annotations

from collections import Counter

import msgspec

from fairlane.core import limits
from fairlane.core.facts import Facts, Sample, Stream, sample_of
from fairlane.core.flow import Flow, reads, transacts, writes
from fairlane.core.lanes import Bucket
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.stats import HOUR, MINUTE
from fairlane.core.tally import Tally
from fairlane.engines.postgres import inspect
from fairlane.engines.postgres.calls import SAMPLING, Query
from fairlane.engines.postgres.claim_order import SQL as CLAIM
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("overview")

_sample = msgspec.msgpack.Decoder(Sample)


@reads
def facts(self: Context) -> Flow[Facts]:
    tallies = yield from inspect.counted()
    known = yield from self.catalogue.load()
    streams = yield from _streams(tallies)
    buckets = yield Query(SQL["buckets"])
    held: Counter[int] = Counter()
    for lane, count in (yield Query(CLAIM["held"])):
        held[lane] += count
    workers = yield from inspect.known_workers()
    # The time comes last: nothing here is younger.
    ages = [int(seconds * MICROSECONDS) for seconds in (MINUTE, HOUR)]
    about = yield Query(SQL["samples_about"], (ages,))
    return Facts(
        now=about[0][0],
        lanes=known.lanes,
        tallies=tallies,
        streams=streams,
        controls=known.controls,
        buckets={type: Bucket(tokens, at) for type, tokens, at in buckets},
        held=held,
        workers=workers,
        # The same one may be nearest to both times.
        samples=[_sample.decode(each) for each in {row[1] for row in about} - {None}],
    )


def _streams(tallies: list[Tally]) -> Flow[list[Stream]]:
    """Those that are not empty, by the counters."""
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


@transacts
def sample(self: Context) -> Flow[bool]:
    every = int(limits.SAMPLE_SECONDS * MICROSECONDS)
    ((now, due),) = yield Query(SQL["time_for_a_sample"], (SAMPLING, every))
    if due:
        taken = sample_of((yield from inspect.counted()), now)
        yield Query(SQL["add_sample"], (now, msgspec.msgpack.encode(taken)))
    return bool(due)


@reads
def samples(self: Context, since: int, limit: int) -> Flow[list[Sample]]:
    rows = yield Query(SQL["samples"], (since, max(0, limit)))
    return [_sample.decode(stored) for (stored,) in rows]


@writes
def elect(self: Context, role: str, candidate: str, seconds: float) -> Flow[bool]:
    rows = yield Query(SQL["elect"], (role, candidate, int(seconds * MICROSECONDS)))
    return bool(rows)
