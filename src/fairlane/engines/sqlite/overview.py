"""facts, sample, samples, elect: the store at a glance, and who looks after it."""

from __future__ import annotations

import msgspec

from fairlane.core import limits
from fairlane.core.facts import Facts, Sample, Stream, sample_of
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.lanes import Bucket
from fairlane.core.priority import MICROSECONDS
from fairlane.core.retention import past
from fairlane.core.stats import HOUR, MINUTE
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.claim_limits import held_by_lane
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.inspect import all_tallies, all_workers

SQL = statements(__package__, "overview")

_sample = msgspec.json.Decoder(Sample)


@reads
def facts(self: Context) -> Flow[Facts]:
    now = self.clock()
    controls = yield from self.catalogue.controls()
    streams = [Stream(*row) for row in (yield Execute(SQL["streams"]))]
    buckets = {type: Bucket(tokens, at) for type, tokens, at in (yield Execute(SQL["buckets"]))}
    nearest: dict[int, Sample] = {}
    for seconds in (MINUTE, HOUR):
        for (stored,) in (yield Execute(SQL["nearest"], (past(seconds, now),))):
            sample = _sample.decode(stored)
            nearest[sample.at] = sample
    return Facts(
        now=now,
        lanes=self.catalogue.lanes(),
        tallies=(yield from all_tallies()),
        streams=streams,
        controls=controls,
        buckets=buckets,
        held=(yield from held_by_lane()),
        workers=(yield from all_workers(now)),
        samples=list(nearest.values()),
    )


@writes
def sample(self: Context) -> Flow[bool]:
    now = self.clock()
    ((newest,),) = yield Execute(SQL["newest"])
    if newest is not None and newest > past(limits.SAMPLE_SECONDS, now):
        return False
    taken = sample_of((yield from all_tallies()), now)
    yield Execute(SQL["add_sample"], (now, msgspec.json.encode(taken)))
    return True


@reads
def samples(self: Context, since: int, limit: int) -> Flow[list[Sample]]:
    rows = yield Execute(SQL["samples"], (since, max(0, limit)))
    return [_sample.decode(stored) for (stored,) in rows]


@writes
def elect(self: Context, role: str, candidate: str, seconds: float) -> Flow[bool]:
    now = self.clock()
    until = now + int(seconds * MICROSECONDS)
    return bool((yield Execute(SQL["elect"], (role, candidate, until, now))).rowcount)
