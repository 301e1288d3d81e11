"""The files in deploy/, read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
ALERT_TESTS = DEPLOY / "prometheus" / "alerts.test.yml"


def documents(path: Path) -> list[Any]:
    """What a YAML file holds."""
    return list(yaml.safe_load_all(path.read_text()))


def rules() -> list[dict[str, Any]]:
    """All rules, recording and alerting."""
    (found,) = documents(ALERTS)
    return [rule for group in found["groups"] for rule in group["rules"]]


_MATCHERS = re.compile(r"\{([^}]*)\}")
_RANGES = re.compile(r"\[[^\]]*\]")
_GROUPING = re.compile(r"\b(?:by|without)\s*\([^)]*\)")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}")
_WORDS = {
    "and", "avg_over_time", "count", "histogram_quantile", "increase", "label_values", "max",
    "offset", "rate", "sum", "topk",
}  # fmt: skip


def metrics_in(expression: str) -> set[str]:
    """The names of the metrics that an expression is about."""
    bare = _RANGES.sub("", _GROUPING.sub("", _MATCHERS.sub("", expression)))
    bare = re.sub(r"\b\d+(?:\.\d+)?[smhd]?\b", "", bare)
    return set(_NAME.findall(bare)) - _WORDS


def labels_in(expression: str) -> dict[str, set[str]]:
    """Which labels of which metrics it chooses by."""
    found: dict[str, set[str]] = {}
    for name, matchers in _SELECTOR.findall(expression):
        found.setdefault(name, set()).update(re.findall(r"(\w+)\s*[=!]~?", matchers))
    return found


def values_in(expression: str) -> set[str]:
    """The values of labels that it chooses by, of those that Fairlane sets."""
    found: set[str] = set()
    for _, matchers in _SELECTOR.findall(expression):
        for label, values in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"', matchers):
            if label != "job":
                found.update(values.split("|"))
    return found
