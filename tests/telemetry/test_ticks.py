"""Ticks in the log: each one that was not fired, with the reason, and not too many of them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from fairlane.core.model import microseconds_of
from fairlane.core.schedules import Outcome, ScheduleRun
from fairlane.telemetry.logs import FIELDS
from fairlane.telemetry.repeats import Repeats
from fairlane.telemetry.ticks import Kind, TickLog

AT = microseconds_of(datetime(2026, 11, 18, 2, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("run", "level", "expected"),
    [
        (
            ScheduleRun(AT, Outcome.MISSED, None, 3_000),
            logging.WARNING,
            "3,000 ticks until 2026-11-18 02:30:00 UTC: nobody fired it in time",
        ),
        (
            ScheduleRun(AT, Outcome.OVERLAP, "t1"),
            logging.INFO,
            "the tick of 2026-11-18 02:30:00 UTC: task t1 of an earlier tick has not ended",
        ),
        (
            ScheduleRun(AT, Outcome.OVERLAP),
            logging.INFO,
            "the tick of 2026-11-18 02:30:00 UTC: a later tick replaces it",
        ),
        (
            ScheduleRun(AT, Outcome.PAUSED),
            logging.INFO,
            "the tick of 2026-11-18 02:30:00 UTC: the schedule was paused",
        ),
        (
            ScheduleRun(AT, Outcome.PAUSED, None, 1, "It was paused after 2 tasks had failed."),
            logging.WARNING,
            "the tick of 2026-11-18 02:30:00 UTC: It was paused after 2 tasks had failed.",
        ),
        (
            ScheduleRun(AT, Outcome.REFUSED, None, 1, "too_many_lanes: Full."),
            logging.WARNING,
            "the tick of 2026-11-18 02:30:00 UTC: the store refused it: too_many_lanes: Full.",
        ),
    ],
)
def test_what_was_not_fired_is_a_line(
    run: ScheduleRun, level: int, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        TickLog().log([("daily", run)])
    (record,) = caplog.records
    assert record.levelno == level
    assert record.getMessage() == f"Schedule daily did not fire {expected}"
    fields = getattr(record, FIELDS)
    assert (fields["schedule_id"], fields["outcome"], fields["count"]) == (
        "daily",
        run.outcome,
        run.count,
    )
    assert fields["tick"] == "2026-11-18T02:30:00+00:00"


def test_what_was_fired_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        TickLog().log([("a", ScheduleRun(AT, each)) for each in (Outcome.FIRED, Outcome.MANUAL)])
    assert caplog.records == []


def test_what_is_not_fired_here_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    log = TickLog()
    log.log_unknown({"a": "The time zone is unknown."})
    log.log_unknown({"a": "The time zone is unknown.", "b": "Another one."})
    log.log_unknown({})
    lines = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert lines == [
        (logging.WARNING, "Schedule a is not fired here: The time zone is unknown."),
        (logging.WARNING, "Schedule b is not fired here: Another one."),
    ]
    assert getattr(caplog.records[0], FIELDS)["schedule_id"] == "a"


def test_what_repeats_is_summarised(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = TickLog(Repeats[Kind](most=2, seconds=10.0, clock=lambda: now, kinds=2))
    with caplog.at_level(logging.INFO):
        log.log([("busy", ScheduleRun(AT, Outcome.OVERLAP, "t1"))] * 5)
        log.log([("other", ScheduleRun(AT, Outcome.MISSED))])
        log.log([("third", ScheduleRun(AT, Outcome.MISSED))])
        assert len(caplog.records) == 3
        caplog.clear()
        log.summarise()
        assert caplog.records == []
        now = 10.0
        log.summarise()
    assert [record.getMessage() for record in caplog.records] == [
        "… and 3 more of schedule busy (overlap) in the last 10 s",
        "… and 1 more of further schedules in the last 10 s",
    ]
