"""Alert rules and dashboard: Prometheus accepts them, each alert fires when it should, and all they
name is what a server tells."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from fairlane.core.breaker import Breaker
from fairlane.core.lanes import Controls, Rules
from fairlane.core.states import State
from fairlane.core.tally import Tally, TallyKey
from tests.deploy.kit import (
    ALERT_TESTS,
    ALERTS,
    DEPLOY,
    documents,
    labels_in,
    metrics_in,
    rules,
    values_in,
)
from tests.telemetry.kit import Scraped, scraped
from tests.unit.make import facts

DASHBOARD = DEPLOY / "grafana" / "fairlane.json"
MONITOR = DEPLOY.parent / "docs" / "howto" / "monitor.md"
OF_PROMETHEUS = {"up"}
"""What Prometheus itself says of whom it scrapes."""


def promtool(*arguments: object) -> str:
    tool = shutil.which("promtool")
    assert tool is not None, "promtool is needed: `make setup` installs Debian's prometheus"
    done = subprocess.run(
        [tool, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def told() -> Scraped:
    """What a server tells of a store in which something of every kind has happened."""
    queued, executing = State.QUEUED.code, State.EXECUTING.code
    return scraped(
        facts(
            tallies=[
                Tally(TallyKey(1, 5, 0, queued), 9, 0.0),
                Tally(TallyKey(1, 5, executing, State.COMPLETED.code, "", 3), 4, 1.0),
            ],
            controls=Controls(types={"email": Rules(breaker=Breaker(3, 60.0, 30.0))}),
        )
    )


def expressions() -> list[str]:
    panels = dashboard()["panels"]
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    return [rule["expr"] for rule in rules()] + shown


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def test_prometheus_accepts_the_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", ALERTS)


def test_each_alert_fires_when_it_should_and_only_then() -> None:
    assert "SUCCESS" in promtool("test", "rules", ALERT_TESTS)


def test_each_alert_is_tested() -> None:
    (tests,) = documents(ALERT_TESTS)
    tested = {test["name"] for test in tests["tests"]}
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert alerts - tested == set()
    for test in tests["tests"]:
        if test["name"] in alerts:
            (check,) = test["promql_expr_test"]
            (sample,) = check["exp_samples"]
            assert test["name"] in sample["labels"]


def test_prometheus_accepts_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
    changed = text.replace("/etc/prometheus/fairlane-token", str(tmp_path / "token"))
    assert changed != text
    (tmp_path / "prometheus.yml").write_text(changed)
    shutil.copy(ALERTS, tmp_path)
    assert "SUCCESS" in promtool("check", "config", tmp_path / "prometheus.yml")


def test_the_rules_name_what_there_is(told: Scraped) -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    known = {name for name, _ in told.samples} | recorded | OF_PROMETHEUS
    for expression in expressions():
        names = metrics_in(expression)
        assert names, expression
        assert names <= known, expression


def test_the_rules_choose_by_labels_that_there_are(told: Scraped) -> None:
    of_scraping = {"job", "instance"}
    for expression in expressions():
        for name, labels in labels_in(expression).items():
            if name not in OF_PROMETHEUS:
                known = {label for each, _ in told.those(name) for label in each}
                assert labels <= known | of_scraping, expression


def test_values_that_the_rules_choose_by_exist(told: Scraped) -> None:
    """A misspelt status would never match, and nobody would notice."""
    known = {value for _, labels in told.samples for _, value in labels} | set(State)
    chosen = {value for expression in expressions() for value in values_in(expression)}
    assert {"active", "low", "p95", "cancelled"} <= chosen
    assert chosen - known == set()


def test_every_panel_has_a_place_of_its_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def test_every_metric_and_every_alert_is_documented(told: Scraped) -> None:
    text = MONITOR.read_text()
    names = {name.removesuffix("_bucket") for name, _ in told.samples}
    names = {name for name in names if not name.endswith(("_sum", "_count", "_created"))}
    assert {name for name in names if f"`{name}" not in text} == set()
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert {alert for alert in alerts if f"`{alert}`" not in text} == set()
