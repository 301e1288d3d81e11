"""`/metrics` for Prometheus, and the backlog of a queue for autoscalers."""

from __future__ import annotations

import asyncio
from typing import Final

from fairlane import __version__
from fairlane.core.breakdown import QueueFacts, queues_of
from fairlane.core.lanes import checked_scope
from fairlane.core.states import State
from fairlane.server.answers import Answer
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.services import Services
from fairlane.telemetry.exposition import KIND, exposition
from fairlane.wire.backlog import Backlog, backlog_of


async def metrics(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """The store's counters in the text format of Prometheus; the same from every server."""
    facts = await services.run(services.ops.facts())
    # On a thread: with thousands of types it is a long text, and others want an answer too.
    return Answer(await asyncio.to_thread(exposition, facts, __version__), kind=KIND)


async def backlog(services: Services, call: Call[None, None]) -> Answer:
    """How much there is to do in a queue; nothing in one that nobody has heard of."""
    name = call.path["queue"]
    checked_scope(name)
    facts = await services.run(services.ops.facts())
    unheard = QueueFacts(name, paused=False, by_status=_NONE, oldest_age_seconds=0.0)
    found = next((each for each in queues_of(facts) if each.queue == name), unheard)
    return Answer(backlog_of(found, paused=found.paused or facts.controls.everything.paused))


_NONE: Final = dict.fromkeys(State, 0)

OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/queues/{queue}/backlog",
        handler=backlog,
        summary="How much there is to do in a queue",
        scopes=READ,
        returns=Backlog,
    ),
    Operation(
        method="GET",
        path="/metrics",
        handler=metrics,
        summary="Metrics for Prometheus",
        scopes=READ,
    ),
]
