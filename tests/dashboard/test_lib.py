"""What the modules of the dashboard compute by themselves: in the browser that runs them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fairlane.core.machine import Verb, allows
from fairlane.core.priority import HIGHEST, LOWEST, band_of, shown_as
from fairlane.core.states import LIVE, WAITING, State
from tests.dashboard.kit import Dashboard

NOW = 1_800_000_000_000
"""In milliseconds."""


async def computed(dashboard: Dashboard, module: str, expression: str) -> Any:
    """What an expression comes to that has the exports of a module as `m`."""
    page = await dashboard.open()
    source = await page.locator("script[type=module]").get_attribute("src")
    assert source is not None
    path = f"{dashboard.site.address}/{source.removesuffix('main.js')}{module}"
    return await page.evaluate(
        f"async () => {{ const m = await import('{path}'); return {expression}; }}"
    )


FORMATS = {
    "m.duration(0)": "0 s",
    "m.duration(null)": "–",
    "m.duration(0.0001)": "1 ms",
    "m.duration(0.35)": "350 ms",
    "m.duration(4.26)": "4.2 s",
    "m.duration(59.9)": "59 s",
    "m.duration(60)": "1 min",
    "m.duration(90)": "1.5 min",
    "m.duration(7200)": "2 h",
    "m.duration(864000)": "10 d",
    f"m.ago(new Date({NOW} - 500).toISOString(), {NOW})": "just now",
    f"m.ago(new Date({NOW} - 180000).toISOString(), {NOW})": "3 min ago",
    f"m.ago(new Date({NOW} + 7200000).toISOString(), {NOW})": "in 2 h",
    "m.count(12345)": "12,345",
    "m.count(1234567)": "1.2M",
    "m.counted(1, 'task')": "1 task",
    "m.counted(2000, 'task')": "2,000 tasks",
    "m.rate(0)": "0",
    "m.rate(0.25)": "0.3",
    "m.rate(1234)": "1.2K",
    "m.spaced('dead_letter')": "dead letter",
}


async def test_numbers_and_times(dashboard: Dashboard) -> None:
    asked = ", ".join(FORMATS)
    assert await computed(dashboard, "lib/format.js", f"[{asked}]") == list(FORMATS.values())


async def test_the_core_has_the_same_rules(dashboard: Dashboard) -> None:
    asked = (
        "{states: m.STATES, waiting: [...m.WAITING], live: [...m.LIVE], "
        "allowed: Object.entries(m.may).map(([verb, may]) => [verb, m.STATES.filter(may)]), "
        f"bands: {[shown_as(each) for each in range(LOWEST, HIGHEST + 1)]}.map(m.band)}}"
    )
    found = await computed(dashboard, "lib/states.js", asked)
    assert set(found["states"]) == set(State)
    assert set(found["waiting"]) == WAITING
    assert set(found["live"]) == LIVE
    verbs = {"replay": Verb.REPLAY, "cancel": Verb.CANCEL, "delete": Verb.DELETE}
    assert {verb: set(states) for verb, states in found["allowed"]} == {
        name: {state for state in State if allows(verb, state)} for name, verb in verbs.items()
    }
    assert found["bands"] == [band_of(each) for each in range(LOWEST, HIGHEST + 1)]


@pytest.mark.parametrize(
    ("parts", "query", "address"),
    [
        ("''", "{}", "#/"),
        (
            "'tasks'",
            "{status: ['failed', 'queued'], type: ''}",
            "#/tasks?status=failed&status=queued",
        ),
        ("['tasks', 'a/b#?%']", "{}", "#/tasks/a%2Fb%23%3F%25"),
        ("'tasks'", "{tag: 'a:b&c=d', until: null}", "#/tasks?tag=a%3Ab%26c%3Dd"),
    ],
)
async def test_addresses(dashboard: Dashboard, parts: str, query: str, address: str) -> None:
    assert await computed(dashboard, "lib/router.js", f"m.link({parts}, {query})") == address


async def test_rates_out_of_counters(dashboard: Dashboard) -> None:
    samples = (
        "[0, 10, 20].map((s) => ({timestamp: new Date(1000 * s).toISOString(), "
        "submitted: s, completed: 2 * s, failed: 0}))"
    )
    found = await computed(dashboard, "lib/samples.js", f"m.rates({samples})")
    assert found == [[10, 20], [1, 1], [2, 2], [0, 0]]
    many = "Array.from({length: 1001}, (_, s) => ({timestamp: new Date(1000 * s).toISOString()}))"
    asked = f"m.thinned({many}).map((each) => Date.parse(each.timestamp) / 1000)"
    thinned = await computed(dashboard, "lib/samples.js", asked)
    assert len(thinned) <= 240
    assert thinned[-1] == 1000
    close = "[0, 0.5, 1.2, 2.1, 2.3].map((s) => ({timestamp: new Date(1000 * s).toISOString()}))"
    asked = f"m.spacedOut({close}).map((each) => Date.parse(each.timestamp) / 1000)"
    assert await computed(dashboard, "lib/samples.js", asked) == [0, 1.2, 2.3]


RULES = {
    "m.parsedRule({...m.ruleOf(null, 'Asia/Tokyo'), cron: ' @daily '}).request": {
        "cron": "@daily",
        "tz": "Asia/Tokyo",
    },
    "m.parsedRule(m.ruleOf(null, 'UTC')).request": None,
    "Object.keys(m.parsedRule(m.ruleOf(null, 'UTC')).errors)": ["cron"],
    "m.parsedRule(m.ruleOf({cron: null, every_seconds: 5400, offset_seconds: 7}, 'UTC'))": {
        "request": {"every_seconds": 5400, "offset_seconds": 7},
        "errors": {},
    },
    "m.ruleOf({cron: null, every_seconds: 172800, offset_seconds: 0}, 'UTC').unit": "days",
    "m.ruleOf({cron: null, every_seconds: 0.5, offset_seconds: 0}, 'UTC').every": "0.5",
    "m.ruleOf({cron: '@daily', tz: 'Asia/Tokyo'}, 'UTC').tz": "Asia/Tokyo",
    "Object.keys(m.parsedRule({kind: 'every', every: 'x', unit: 'days', offset: '-1'}).errors)": [
        "every",
        "offset",
    ],
}


async def test_rules_of_schedules_as_they_are_entered(dashboard: Dashboard) -> None:
    asked = ", ".join(RULES)
    found = await computed(dashboard, "pages/schedule-form/rule.js", f"[{asked}]")
    assert found == list(RULES.values())


async def test_policies_are_sent_if_they_were_changed(dashboard: Dashboard) -> None:
    """A time keeps its seconds, which the field does not show, unless it is entered anew."""
    stored = {
        "overlap": "skip",
        "missed": "all",
        "most": 7,
        "within_seconds": 86_400,
        "jitter_seconds": 0,
        "count": 5,
        "pause_after_failures": None,
        "starts_at": "2027-01-02T03:04:05.000000Z",
        "ends_at": None,
        "note": "old",
    }
    asked = f"""(() => {{
        const before = m.policiesOf({json.dumps(stored)});
        const change = (said) => m.parsedPolicies({{ ...before, ...said }}, before);
        return [
            change({{}}).request,
            change({{ most: "", count: " ", note: "", starts_at: "" }}).request,
            change({{ most: "9", jitter_seconds: "1.5", overlap: "queue" }}).request,
            Object.keys(change({{ count: "many" }}).errors),
        ];
    }})()"""
    assert await computed(dashboard, "pages/schedule-form/policy.js", asked) == [
        {},
        {"most": 100, "count": None, "note": "", "starts_at": None},
        {"most": 9, "jitter_seconds": 1.5, "overlap": "queue"},
        ["count"],
    ]


async def test_a_local_time_is_that_of_its_own_zone(dashboard: Dashboard) -> None:
    asked = "['2027-03-28T03:00:00+02:00', '2026-11-01T23:59:30-10:00'].map(m.wallTime)"
    minute, second = await computed(dashboard, "lib/local-times.js", asked)
    assert re.fullmatch(r"Sun, Mar 28, 2027, 0?3:00 AM", minute)
    assert re.fullmatch(r"Sun, Nov 1, 2026, 11:59:30 PM", second)
