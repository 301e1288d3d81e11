"""`/api/v1/queue/stats`, `/api/v1/stats/history`, `/metrics`: the store's counters."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from fairlane import __version__
from fairlane.core.facts import sample_of
from fairlane.core.model import microseconds_of
from fairlane.core.stats import Stats
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.telemetry.metrics import CONTENT_TYPE, exposition
from fairlane.wire.figures import SampleList, SampleQuery, samples_of


async def stats(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Depths, ages, workers, throughput, recovery."""
    return Response(await services.run(services.ops.stats()))


async def history(services: Services, call: Call[None, SampleQuery]) -> Response:
    """Samples of the counters for charts: about every ten seconds of the last day, and now."""
    given = call.query.since
    since = 0 if isinstance(given, msgspec.UnsetType) else microseconds_of(given)
    samples = await services.run(services.ops.samples(since, call.query.limit))
    facts = await services.run(services.ops.facts())
    return Response(samples_of(samples, sample_of(facts.tallies, facts.now)))


async def metrics(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """The store's counters in the text format of Prometheus; the same from every server."""
    facts = await services.run(services.ops.facts())
    # On a thread: with thousands of types the text is long, and other requests must not wait.
    return Response(await asyncio.to_thread(exposition, facts, __version__), kind=CONTENT_TYPE)


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/queue/stats",
        handler=stats,
        summary="Read statistics",
        scopes=READ,
        returns=Stats,
    ),
    Operation(
        method="GET",
        path="/api/v1/stats/history",
        handler=history,
        summary="Read statistics over time",
        scopes=READ,
        query=SampleQuery,
        returns=SampleList,
    ),
    Operation(
        method="GET",
        path="/metrics",
        handler=metrics,
        summary="Read metrics for Prometheus",
        scopes=READ,
    ),
]
