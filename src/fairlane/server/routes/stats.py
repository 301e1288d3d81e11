"""`/api/v1/queue/stats`, `/api/v1/stats/history`, `/metrics`: the store's counters."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from fairlane import __version__
from fairlane.core.facts import sample_of
from fairlane.core.model import microseconds_of
from fairlane.core.stats import Stats, stats_of
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services, from_facts
from fairlane.telemetry.metrics import CONTENT_TYPE, exposition
from fairlane.wire.figures import SampleList, SampleQuery, samples_of


async def stats(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Read statistics: depths, ages, workers, throughput, recovery."""
    return Response(await from_facts(services, stats_of))


async def history(services: Services, call: Call[None, SampleQuery]) -> Response:
    """Read samples of the counters, for charts. About one for every ten seconds of the last day."""
    given = call.query.since
    since = 0 if isinstance(given, msgspec.UnsetType) else microseconds_of(given)
    samples = await services.run(services.ops.samples(since, call.query.limit))
    current = await from_facts(services, lambda facts: sample_of(facts.tallies, facts.now))
    return Response(samples_of(samples, current))


async def metrics(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Read the store's counters in the text format of Prometheus. Every server returns the same."""
    ticks = await services.run(services.ops.tick_counts())
    ends = (await services.run(services.ops.workflow_news(0))).ends
    told = partial(exposition, ticks=ticks, ends=ends, version=__version__)
    text = await from_facts(services, told)
    return Response(text, kind=CONTENT_TYPE)


OPERATIONS: Final = [
    Operation("GET", "/api/v1/queue/stats", stats, READ, returns=Stats),
    Operation("GET", "/api/v1/stats/history", history, READ, query=SampleQuery, returns=SampleList),
    Operation("GET", "/metrics", metrics, READ),
]
