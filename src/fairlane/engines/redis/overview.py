"""facts: read counters, streams, limits and workers at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairlane.core.facts import Facts, Stream, sample_in
from fairlane.core.flow import Flow, reads
from fairlane.core.lanes import Bucket
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.stats import HOUR, MINUTE
from fairlane.core.tally import Tally
from fairlane.engines.redis.context import Context, catalogue_of, pairs
from fairlane.engines.redis.rows import WORKER_FIELDS, tallies_of, worker_of
from fairlane.engines.redis.scripts import script

FACTS = script("facts")

_EXECUTING = State.EXECUTING.code


@reads
def facts(self: Context) -> Flow[Facts]:
    ages = [int(seconds * MICROSECONDS) for seconds in (MINUTE, HOUR)]
    (
        now,
        catalogue,
        counters,
        streams,
        buckets,
        lingering,
        workers,
        samples,
    ) = yield from self.call(FACTS, len(ages), *ages, *WORKER_FIELDS)
    known = self.catalogue = catalogue_of(catalogue)
    tallies = tallies_of(*counters)
    return Facts(
        now=int(now),
        lanes=known.lanes,
        tallies=tallies,
        streams=[_stream(*each) for each in streams],
        controls=known.controls,
        buckets={type.decode(): _bucket(stored) for type, stored in pairs(buckets)},
        held=_held(tallies, lingering),
        workers=[worker_of(worker_id, row, runs, int(now)) for worker_id, row, runs in workers],
        samples=[sample_in(each) for each in sorted(set(samples))],
    )


def _stream(name: bytes, depth: int, oldest: bytes, newest: bytes) -> Stream:
    lane, _, level = name.partition(b":")
    return Stream(int(lane), int(level), depth, int(float(oldest)), int(float(newest)))


def _bucket(stored: bytes) -> Bucket:
    tokens, at = stored.split()
    return Bucket(float(tokens), int(at))


def _held(tallies: Iterable[Tally], lingering: Iterable[bytes]) -> dict[int, int]:
    """Return the taken slots per lane: executing tasks, by the counters, and lingering runs.

    The sets of slots exist only for limited types.
    """
    held: Counter[int] = Counter()
    for key, times, _ in tallies:
        if _EXECUTING in (key.source, key.target):
            held[key.lane] += times if key.target == _EXECUTING else -times
    held.update(int.from_bytes(place[:2]) for place in lingering)
    return {lane: count for lane, count in held.items() if count}
