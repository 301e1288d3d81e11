"""`/api/v1/queue/stats` and `/api/v1/stats/history`: the store at a glance, and over time."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.core.facts import sample_of
from fairlane.core.model import microseconds_of
from fairlane.core.stats import Stats
from fairlane.server.answers import Answer
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.services import Services
from fairlane.wire.figures import SampleList, SampleQuery, samples_of


async def stats(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """Depths, ages, workers, throughput, recovery."""
    return Answer(await services.run(services.ops.stats()))


async def history(services: Services, call: Call[None, SampleQuery]) -> Answer:
    """How the counters stood, every ten seconds or so of the last day, and stand now: the data of
    charts."""
    given = call.query.since
    since = 0 if isinstance(given, msgspec.UnsetType) else microseconds_of(given)
    samples = await services.run(services.ops.samples(since, call.query.limit))
    facts = await services.run(services.ops.facts())
    return Answer(samples_of(samples, sample_of(facts.tallies, facts.now)))


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/queue/stats",
        handler=stats,
        summary="The store at a glance",
        scopes=READ,
        returns=Stats,
    ),
    Operation(
        method="GET",
        path="/api/v1/stats/history",
        handler=history,
        summary="The store over time",
        scopes=READ,
        query=SampleQuery,
        returns=SampleList,
    ),
]
