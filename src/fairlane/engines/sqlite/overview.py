"""facts: the store at a glance."""

from __future__ import annotations

from fairlane.core.facts import SAMPLE, Facts, Sample, Stream, sample_in
from fairlane.core.flow import Flow, reads
from fairlane.core.lanes import Bucket
from fairlane.core.retention import past
from fairlane.core.stats import HOUR, MINUTE
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.claim_limits import held_by_lane
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.inspect import all_tallies, all_workers

SQL = statements(__package__, "overview")


@reads
def facts(self: Context) -> Flow[Facts]:
    now = self.clock()
    controls = yield from self.catalogue.controls()
    streams = [Stream(*row) for row in (yield Execute(SQL["streams"]))]
    buckets = {type: Bucket(tokens, at) for type, tokens, at in (yield Execute(SQL["buckets"]))}
    nearest: dict[int, Sample] = {}
    for seconds in (MINUTE, HOUR):
        for (stored,) in (yield Execute(SQL["nearest"], (SAMPLE, past(seconds, now)))):
            sample = sample_in(stored)
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
