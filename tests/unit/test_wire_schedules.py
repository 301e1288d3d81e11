"""Schedules in JSON: what goes over HTTP is the same schedule on the other side."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from fairlane.core.errors import InvalidSchedule
from fairlane.core.recurrence import Recurrence, cron, every
from fairlane.core.retry import RetryPolicy
from fairlane.core.schedules import new_schedule
from fairlane.core.submission import new_task
from fairlane.wire.schedule_changes import PreviewRequest
from fairlane.wire.schedules import ScheduleRequest, request_of

OPTIONS: list[dict[str, Any]] = [
    {},
    {"missed": "once", "most": 100, "within": timedelta(days=1), "overlap": "skip", "jitter": 0},
    {"missed": "all", "most": 1, "within": 1.5, "overlap": "allow", "jitter": 0.1, "note": "ä"},
    {"starts_at": datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "count": 5},
    {"ends_at": datetime(9999, 12, 31, tzinfo=UTC), "pause_after_failures": 1},
]
TASKS: list[dict[str, Any]] = [
    {},
    {"priority": 0, "timeout_seconds": None, "max_retries": 0, "delay_seconds": 0.5},
    {"priority": "critical", "timeout_seconds": 300, "retry_policy": RetryPolicy()},
    {"tags": {"a": "b"}, "queue": "mail", "required_capabilities": ["gpu", "arm"]},
    {"retry_policy": RetryPolicy(5.0, 3.0, 60.0, 0.0), "trace_id": "t", "traceparent": "p"},
]
RULES: list[Recurrence] = [
    cron("30 2 * * MON-FRI", "Europe/Berlin"),
    cron("@daily"),
    every(timedelta(minutes=5), timedelta(seconds=30)),
    every(1.000001, 0.000001),
    every(100 * 365 * 86_400),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("task", TASKS)
def test_a_schedule_is_the_same_on_the_other_side(
    rule: Recurrence, options: dict[str, Any], task: dict[str, Any]
) -> None:
    schedule = new_schedule("a", rule, new_task("work", {"b": 1, "a": "é"}, **task), **options)
    sent = msgspec.json.encode(request_of(schedule))
    assert msgspec.json.decode(sent, type=ScheduleRequest).schedule() == schedule


def test_what_is_equal_has_the_same_fingerprint() -> None:
    rule = every(60)
    plain = new_schedule("a", rule, new_task("work"))
    said = new_schedule("a", rule, new_task("work", retry_policy=RetryPolicy()), **OPTIONS[1])
    assert said.fingerprint == plain.fingerprint
    other = new_schedule("a", rule, new_task("work", tags={"a": "b"}))
    assert other.fingerprint != plain.fingerprint


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "Give either cron or every"),
        ({"tz": "UTC"}, "Give either cron or every"),
        ({"cron": "@daily", "every_seconds": 5}, "Give either cron or every"),
        ({"cron": "@daily", "offset_seconds": 5}, "offset goes with every"),
        ({"every_seconds": 5, "tz": "UTC"}, "tz goes with cron"),
        ({"every_seconds": 0}, "at least one second"),
        ({"cron": ""}, "five fields"),
        ({"cron": "@daily", "tz": ""}, "no time zone"),
    ],
)
def test_a_rule_is_one_of_two(said: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        PreviewRequest(**said).rule()
