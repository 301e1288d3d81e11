"""Families of metrics, made in one call each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from fairlane.telemetry.counts import Durations

Value = tuple[Sequence[str], float]
"""Label values and a number."""


def one(value: float) -> list[Value]:
    """The value of a metric without labels."""
    return [((), value)]


def gauge(name: str, about: str, labels: Sequence[str], values: Iterable[Value]) -> Metric:
    """What goes up and down."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for names, value in values:
        family.add_metric(names, float(value))
    return family


def counter(name: str, about: str, labels: Sequence[str], values: Iterable[Value]) -> Metric:
    """What only grows."""
    family = CounterMetricFamily(name, about, labels=labels)
    for names, value in values:
        family.add_metric(names, float(value))
    return family


def histogram(
    name: str, about: str, labels: Sequence[str], values: Mapping[tuple[str, ...], Durations]
) -> Metric:
    """How durations are spread."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for names, found in values.items():
        buckets = [(_shown(bound), float(times)) for bound, times in found.cumulative()]
        family.add_metric(names, buckets, found.seconds)
    return family


def _shown(bound: float) -> str:
    return "+Inf" if math.isinf(bound) else str(bound)
