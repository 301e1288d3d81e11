"""docs/reference/metrics.md: what `/metrics` shows, from `telemetry/metrics.py`."""

from __future__ import annotations

from prometheus_client.core import Metric

from fairlane.core.facts import Facts
from fairlane.core.lanes import Controls
from fairlane.core.tick_counts import TickCounts
from fairlane.core.workflow_watch import WorkflowEnds
from fairlane.telemetry.metrics import families
from tools.reference.markdown import code, page, table


def render() -> str:
    """Return the page."""
    empty = Facts(0, {}, [], [], Controls(), {}, {}, [], [])
    metrics = families(empty, TickCounts(), WorkflowEnds(), "")
    return page(
        "Metrics",
        "What `/metrics` shows, in Prometheus' text format. The numbers live in the store: every "
        "server of a store shows the same. How to use them is in [Monitor](../howto/monitor.md).",
        table(("name", "type", "labels", "meaning"), map(_row, metrics)),
    )


def _row(metric: Metric) -> tuple[str, ...]:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    labels = ", ".join(map(code, metric._labelnames))  # type: ignore[attr-defined]
    return (code(name), metric.type, labels, metric.documentation)
