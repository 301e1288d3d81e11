"""Metrics as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from fairlane.core.facts import Facts
from fairlane.telemetry.metrics import families

KIND: Final = b"text/plain; version=0.0.4; charset=utf-8"


class _Collected(Collector):
    """A collector of what has been collected: counters live in the store, not in this process."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def exposition(facts: Facts, version: str) -> bytes:
    """The metrics of a store in the text format."""
    return generate_latest(_Collected(families(facts, version)))
