"""Events about the current state: queue depths and metrics. They are not in the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairlane.core.estimates import outlook_of
from fairlane.core.facts import Facts
from fairlane.core.priority import Band, band_of
from fairlane.core.states import State
from fairlane.core.stats import Recovery, Throughput, WorkerStats, stats_of
from fairlane.server.stream.items import Item, live_item
from fairlane.wire.events import EventType


class DepthData(msgspec.Struct, frozen=True):
    """How many tasks are queued, and how many of each priority."""

    queue: str
    depth: int
    priorities: Mapping[Band, int]


class MetricsData(msgspec.Struct, frozen=True, kw_only=True):
    """The store at a glance."""

    depth: int
    by_status: Mapping[State, int]
    workers: WorkerStats
    throughput: Throughput
    p50_age_seconds: float
    p95_age_seconds: float
    recovery: Recovery


def figures_of(facts: Facts) -> list[tuple[Item, int]]:
    """Return the figures, each with a hash of its content."""
    outlook = outlook_of(facts)
    queues = sorted({lane.queue for lane in facts.lanes.values()})
    figures = [
        _figure(EventType.DEPTH, _depth(name, outlook.depths.get(name, {})), name)
        for name in queues
    ]
    stats = stats_of(facts)
    metrics = MetricsData(
        depth=outlook.depth,
        by_status=stats.by_status,
        workers=stats.workers,
        throughput=stats.throughput,
        p50_age_seconds=stats.p50_age_seconds,
        p95_age_seconds=stats.p95_age_seconds,
        recovery=stats.recovery,
    )
    return [*figures, _figure(EventType.METRICS, metrics)]


def _depth(queue: str, levels: Mapping[int, int]) -> DepthData:
    priorities = dict.fromkeys(Band, 0)
    for level, depth in levels.items():
        priorities[band_of(level)] += depth
    return DepthData(queue, sum(levels.values()), priorities)


def _figure(type: EventType, data: Any, queue: str | None = None) -> tuple[Item, int]:
    item = live_item(type.value, data, key=(type, queue), queue=queue)
    return item, hash(msgspec.json.encode(data))
