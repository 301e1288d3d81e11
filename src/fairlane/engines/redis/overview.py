"""facts, sample, samples: the store at a glance, and as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from fairlane.core import limits
from fairlane.core.facts import Facts, Sample, Stream, sample_of
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.lanes import Bucket
from fairlane.core.priority import MICROSECONDS
from fairlane.core.retention import past
from fairlane.core.states import State
from fairlane.core.stats import HOUR, MINUTE
from fairlane.core.tally import Tally
from fairlane.engines.redis.context import Context, catalogue_of, pairs
from fairlane.engines.redis.rows import WORKER_FIELDS, tallies_of, worker_of
from fairlane.engines.redis.scripts import script

FACTS = script("facts")
SAMPLES = script("samples")
TALLIES = script("tallies")
SAMPLE = script("sample")

_EXECUTING = State.EXECUTING.code
_sample = msgspec.json.Decoder(Sample)


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
        samples=[_sample.decode(each) for each in sorted(set(samples))],
    )


def _stream(name: bytes, depth: int, oldest: bytes, newest: bytes) -> Stream:
    lane, _, level = name.partition(b":")
    return Stream(int(lane), int(level), depth, int(float(oldest)), int(float(newest)))


def _bucket(stored: bytes) -> Bucket:
    tokens, at = stored.split()
    return Bucket(float(tokens), int(at))


def _held(tallies: Iterable[Tally], lingering: Iterable[bytes]) -> dict[int, int]:
    """Slots that are taken: what the counters say is executing, and what lingers.

    The sets of slots exist only where a limit asks for them.
    """
    held: Counter[int] = Counter()
    for key, times, _ in tallies:
        if _EXECUTING in (key.source, key.target):
            held[key.lane] += times if key.target == _EXECUTING else -times
    held.update(int.from_bytes(place[:2]) for place in lingering)
    return {lane: count for lane, count in held.items() if count}


@writes
def sample(self: Context) -> Flow[bool]:
    now, newest, counts, durations = yield from self.call(TALLIES)
    latest = past(limits.SAMPLE_SECONDS, int(now))
    if newest and float(newest) > latest:
        return False
    taken = sample_of(tallies_of(counts, durations), int(now))
    return bool((yield from self.call(SAMPLE, taken.at, latest, msgspec.json.encode(taken))))


@reads
def samples(self: Context, since: int, limit: int) -> Flow[list[Sample]]:
    found = yield from self.call(SAMPLES, since, max(0, limit))
    return [_sample.decode(each) for each in found]
