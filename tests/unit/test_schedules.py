"""Schedules: what can be declared, and what every bad input is told."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.blobs import IN_STORE, reference
from fairlane.core.errors import InvalidInput, InvalidSchedule
from fairlane.core.inputs import Input
from fairlane.core.model import NewTask
from fairlane.core.recurrence import cron, every
from fairlane.core.schedules import (
    Missed,
    NewSchedule,
    Outcome,
    Overlap,
    Policy,
    ScheduleRun,
    Template,
    checked_missed,
    checked_note,
    checked_overlap,
    checked_time,
    kept,
    new_schedule,
)
from fairlane.core.submission import new_task
from tests.unit.make import NOON, NOW, SECOND, TASK_ID

DAY = timedelta(days=1)
RULE = every(3600)


def declared(task: NewTask | None = None, schedule_id: Any = "daily", **options: Any) -> Any:
    return new_schedule(schedule_id, RULE, task or new_task("work", {"a": 1}), **options)


def test_what_is_not_said_has_defaults() -> None:
    schedule: NewSchedule = declared()
    assert schedule.policy == Policy(
        missed=Missed.ONCE, most=100, within=86_400.0, overlap=Overlap.SKIP, jitter=0.0
    )
    assert (schedule.template.type, schedule.payload, schedule.note) == ("work", b'{"a":1}', "")


def test_everything_that_is_said_is_kept() -> None:
    schedule: NewSchedule = declared(
        missed="all",
        most=48,
        within=timedelta(days=2),
        overlap="queue",
        jitter=30,
        starts_at=NOON,
        ends_at=NOON + DAY,
        count=3,
        pause_after_failures=5,
        note="for acme",
    )
    assert schedule.policy == Policy(
        missed=Missed.ALL,
        most=48,
        within=2 * 86_400.0,
        overlap=Overlap.QUEUE,
        jitter=30.0,
        starts_at=NOW,
        ends_at=NOW + 86_400 * SECOND,
        count=3,
        pause_after_failures=5,
    )
    assert schedule.note == "for acme"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missed": "never"}, "missed is one of skip, once, all. Got 'never'."),
        ({"missed": None}, "missed is one of skip, once, all. Got None."),
        ({"overlap": "kill"}, "overlap is one of skip, queue, replace, allow. Got 'kill'."),
        ({"most": 0}, "most is a whole number from 1 to 1,000. Got 0."),
        ({"most": 1_001}, "most is a whole number from 1 to 1,000. Got 1001."),
        ({"most": True}, "most is a whole number from 1 to 1,000. Got True."),
        ({"most": 2.0}, "most is a whole number from 1 to 1,000. Got 2.0."),
        ({"within": 0}, "within is a timedelta or a number of seconds from 1 to "),
        ({"within": float("nan")}, "Got nan."),
        ({"within": float("inf")}, "Got inf."),
        ({"within": "1h"}, "Got '1h'."),
        ({"within": True}, "Got True."),
        ({"within": timedelta(days=100_000)}, "Got datetime.timedelta(days=100000)."),
        ({"jitter": -1}, "jitter is a timedelta or a number of seconds from 0 to "),
        ({"count": 0}, "count is a whole number from 1 to 1,000,000,000. Got 0."),
        ({"count": 10**400}, "Got 1000"),
        ({"pause_after_failures": 0}, "pause_after_failures is a whole number from 1 to "),
        ({"starts_at": 5}, "starts_at is a datetime with a time zone. Got 5."),
        ({"starts_at": datetime(2026, 1, 1)}, "starts_at is a datetime with a time zone."),  # noqa: DTZ001
        ({"ends_at": "now"}, "ends_at is a datetime with a time zone. Got 'now'."),
        (
            {"ends_at": datetime.max.replace(tzinfo=timezone(-DAY / 2))},
            "ends_at lies outside the years 1 to 9999 in UTC.",
        ),
        ({"starts_at": NOON, "ends_at": NOON - DAY}, "The schedule ends before it starts"),
        ({"note": "two\nlines"}, "at most 1,000 characters on one line. Got 'two\\nlines'."),
        ({"note": "x" * 1_001}, "A note is a text of at most 1,000 characters"),
        ({"note": None}, "Got None."),
        ({"schedule_id": ""}, "A schedule's id has 1 to 255 characters out of A-Z"),
        ({"schedule_id": "x" * 201}, "and at most 200 of them."),
        ({"schedule_id": "a b"}, "Got 'a b'."),
        ({"schedule_id": "a\n"}, "Got 'a\\n'."),
        ({"schedule_id": "\0"}, "Got '\\x00'."),
        ({"schedule_id": "#ticks"}, "Got '#ticks'."),
        ({"schedule_id": 5}, "Got 5."),
    ],
    ids=str,
)
def test_other_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        declared(**options)
    assert message in refused.value.message


def test_missed_ticks_with_large_payloads_are_bounded() -> None:
    """All of them are submitted at once."""
    task = new_task("work", {"a": "x" * 250_000})
    with pytest.raises(InvalidSchedule, match="at most 134 missed ticks are fired, not 135"):
        new_schedule("daily", every(60), task, missed="all", most=135)
    for options in ({"missed": "all", "most": 134}, {"missed": "all"}, {"most": 1_000}):
        new_schedule("daily", every(60), task, **options)


def test_the_longest_id_and_note() -> None:
    schedule = declared(schedule_id="x" * 200, note="é" * 1_000)
    assert (len(schedule.schedule_id), len(schedule.note)) == (200, 1_000)


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ({"idempotency_key": "k"}, "idempotency_key"),
        ({"run_at": NOON.replace(year=2100)}, "run_at"),
        ({"expires_at": NOON.replace(year=2100)}, "expires_at"),
        ({"depends_on": [TASK_ID]}, "depends_on"),
        ({"inputs": {"all": Input((), many=True)}}, "inputs"),
        ({"task_id": TASK_ID}, "task_id"),
        ({"task_id": TASK_ID, "idempotency_key": "k"}, "idempotency_key and task_id"),
    ],
)
def test_what_goes_for_one_task_only(task: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"cannot all have the same {named}: leave it out"):
        declared(new_task("work", **task))


def test_unique_tasks_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="cannot be unique: its overlap says"):
        declared(new_task("work", unique=True))


def test_a_payload_by_reference_is_refused() -> None:
    task = replace(new_task("work"), payload=reference(IN_STORE, b"{}").payload())
    with pytest.raises(InvalidSchedule, match="kept by reference: it has at most 262,144 bytes"):
        declared(task)


def test_what_its_task_is_refused_for() -> None:
    """A payload beyond the limit, for example, is refused where the task is made."""
    with pytest.raises(InvalidInput):
        declared(new_task("work", {"x": "y" * limits.PAYLOAD_BYTES}))


def test_a_template_makes_tasks_like_the_one_it_came_from() -> None:
    task = new_task(
        "work",
        queue="mail",
        required_capabilities=["gpu"],
        priority="high",
        max_retries=7,
        timeout_seconds=9,
        delay_seconds=4,
        tags={"a": "b"},
    )
    template: Template = declared(task).template
    assert template.task(task.task_id, task.payload, task.spec) == task
    assert template.task(task.task_id, task.payload, task.spec, chosen=True).chosen


@pytest.mark.parametrize(
    "change",
    [
        {"rule": every(7200)},
        {"rule": cron("@hourly")},
        {"task": new_task("other", {"a": 1})},
        {"task": new_task("work", {"a": 2})},
        {"task": new_task("work", {"a": 1}, tags={"a": "b"})},
        {"overlap": "allow"},
        {"note": "new"},
    ],
    ids=str,
)
def test_whatever_is_declared_otherwise_has_another_fingerprint(change: dict[str, Any]) -> None:
    said = {"rule": RULE, "task": new_task("work", {"a": 1})}

    def fingerprint(rule: Any, task: Any, **options: Any) -> bytes:
        return new_schedule("daily", rule, task, **options).fingerprint

    same = {"rule": every(3600), "task": new_task("work", {"a": 1})}
    assert fingerprint(**said) == fingerprint(**same)
    assert fingerprint(**said) != fingerprint(**(said | change))


def test_values_of_their_own() -> None:
    assert checked_missed("all") is Missed.ALL
    assert checked_overlap(Overlap.ALLOW) is Overlap.ALLOW
    assert checked_note("why") == "why"
    assert checked_time("since", NOON) == NOW
    with pytest.raises(InvalidSchedule, match="since is a datetime with a time zone"):
        checked_time("since", None)
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    with pytest.raises(InvalidSchedule, match="since lies outside the years 1 to 9999"):
        checked_time("since", early)


def test_the_newest_runs_are_kept() -> None:
    runs = [ScheduleRun(number, Outcome.FIRED) for number in range(150)]
    assert kept(runs) == tuple(runs[50:])


def test_an_address_of_the_api_is_no_id() -> None:
    with pytest.raises(InvalidSchedule, match="No schedule can have the id preview, because an"):
        new_schedule("preview", every(60), new_task("work"))
    assert new_schedule("Preview", every(60), new_task("work")).schedule_id == "Preview"
