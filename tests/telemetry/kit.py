"""Metrics as whoever scrapes them has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from fairlane.core.facts import Facts
from fairlane.core.tick_counts import TickCounts
from fairlane.core.workflow_watch import WorkflowEnds
from fairlane.telemetry.metrics import exposition


class Scraped:
    """The samples of one scrape: `scraped("queue_depth", priority="low")`."""

    def __init__(self, text: str) -> None:
        self.kinds: dict[str, str] = {}
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.samples, f"{key} is told twice"
                self.samples[key] = sample.value
                self.kinds[sample.name] = family.type

    def __call__(self, name: str, /, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]

    def sum(self, name: str, /, **labels: str) -> float:
        """Over everything that has these labels, whatever else it has."""
        return sum(value for _, value in self.those(name, **labels))

    def by(self, name: str, label: str) -> dict[str, float]:
        """The sums over everything else, by one label; without those that are zero."""
        found: defaultdict[str, float] = defaultdict(float)
        for labels, value in self.those(name):
            found[labels[label]] += value
        return {each: value for each, value in found.items() if value}

    def those(self, name: str, /, **labels: str) -> Iterator[tuple[dict[str, str], float]]:
        """Labels and values of everything that has these labels."""
        for (each, found), value in self.samples.items():
            if each == name and labels.items() <= dict(found).items():
                yield dict(found), value

    def counters(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """What may only grow, histograms included."""
        return {
            key: value
            for key, value in self.samples.items()
            if self.kinds[key[0]] in {"counter", "histogram"}
        }


def scraped(facts: Facts, ticks: TickCounts | None = None) -> Scraped:
    """What a server would tell of these facts."""
    return Scraped(exposition(facts, ticks or TickCounts(), WorkflowEnds(), "1.2.3").decode())
