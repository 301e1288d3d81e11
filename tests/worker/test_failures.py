"""A worker logs what fails, with what happens next, and never floods the log."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from fairlane import Context, Fail, Fairlane, Retry, RetryPolicy
from fairlane.cli.logs import _Lines
from fairlane.core.machine import Move, decide
from fairlane.core.model import Cause, Overdue, Verdict
from fairlane.core.retry import DEFAULT
from fairlane.core.settlement import Settled, Settlement, reaped
from fairlane.telemetry.failures import FailureLog, logger
from fairlane.telemetry.logs import JsonFormatter
from tests.fixtures.stores import World
from tests.worker.kit import PATIENCE, application, ended, working

AT_ONCE = RetryPolicy(base=0.0, jitter=0.0)


def failures(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == logger.name]


async def test_each_failed_attempt_is_a_line_with_what_happens_next(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    app = application(world)

    @app.task(max_retries=1, retry=AT_ONCE)
    async def greet(name: str) -> None:
        raise ValueError(f"no greeting\nfor {name}")

    async with working(app):
        task = await ended(app, (await greet.submit("Ann")).task_id)
    first, last = failures(caplog)
    assert first.getMessage() == (
        f"greet {task.task_id} failed, attempt 1: ValueError: no greeting for Ann. Retry in 0 s."
    )
    assert last.getMessage() == (
        f"greet {task.task_id} failed, attempt 2: ValueError: no greeting for Ann. "
        "Dead letter: retries used up."
    )
    assert (first.levelname, last.levelname) == ("WARNING", "ERROR")
    assert "Traceback" not in _Lines(supervised=False).format(first)
    assert "Traceback" in _Lines(supervised=False).format(last)
    said = json.loads(JsonFormatter().format(first))
    assert {name: said[name] for name in ("task_id", "type", "attempt", "error_code")} == {
        "task_id": task.task_id,
        "type": "greet",
        "attempt": 1,
        "error_code": "ValueError",
    }
    assert said["retry_in_seconds"] == 0
    assert "exception" not in said
    said = json.loads(JsonFormatter().format(last))
    assert (said["event"], said["reason"]) == ("dead_letter", "max_retries_exceeded")
    assert "Traceback" in said["exception"]


async def test_what_is_not_retried_and_what_takes_too_long(
    quick: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    @quick.task()
    async def refuse() -> None:
        raise Fail("No such customer", code="NO_CUSTOMER")

    @quick.task(max_retries=0, timeout=0.05)
    async def linger() -> None:
        await asyncio.sleep(PATIENCE)

    @quick.task(max_retries=1)
    async def again() -> None:
        raise Retry("Not yet", after=0.0)

    async with working(quick):
        for task in (refuse, linger, again):
            await ended(quick, (await task.submit()).task_id)
    texts = [record.getMessage() for record in failures(caplog)]
    assert "NO_CUSTOMER: No such customer. Failed: not retriable." in texts[0]
    assert "TIMEOUT: The attempt took longer than its time limit of 0.05 s: give" in texts[1]
    assert "less to do in one run. Dead letter" in texts[1]
    assert "RETRY: Not yet. Retry in 0 s." in texts[2]


async def test_at_debug_a_retry_has_its_traceback(
    quick: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger.name)

    @quick.task(max_retries=1, retry=AT_ONCE)
    async def greet() -> None:
        raise ValueError("no")

    async with working(quick):
        await ended(quick, (await greet.submit()).task_id)
    assert all("Traceback" in str(record.exc_text) for record in failures(caplog))


async def test_many_alike_are_summarised(quick: Fairlane, caplog: pytest.LogCaptureFixture) -> None:
    @quick.task(max_retries=0)
    async def greet(number: int) -> None:
        raise ValueError(f"number {number}")

    async with working(quick):
        handles = await quick.submit_many([greet.prepare(number) for number in range(50)])
        for handle in handles:
            await ended(quick, handle.task_id)
    lines = [record.getMessage() for record in failures(caplog)]
    assert len(lines) == 6
    assert lines[-1].startswith(
        "… and 45 more like it (greet, ValueError, dead_letter) in the last "
    )


async def test_what_completes_or_waits_is_not_logged(
    quick: Fairlane, caplog: pytest.LogCaptureFixture
) -> None:
    @quick.task()
    async def fine() -> int:
        return 1

    async with working(quick):
        await ended(quick, (await fine.submit()).task_id)
    assert failures(caplog) == []


async def test_an_error_after_the_completing_transaction_is_logged(
    memory: World, caplog: pytest.LogCaptureFixture
) -> None:
    app = application(memory)

    @app.task()
    async def pay(context: Context) -> None:
        async with context.transaction():
            pass
        raise ValueError("the receipt is not sent")

    async with working(app):
        task = await ended(app, (await pay.submit()).task_id)
    assert task.state == "completed"
    assert "raised an error afterwards: the receipt is not sent" in caplog.text


def test_what_the_maintenance_finds_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    def overdue(cause: Cause, **terms: Any) -> Overdue:
        terms = {"started": True, "retry_count": 0, "max_retries": 3, "returns": 0} | terms
        return Overdue("id", 1, "w", "greet", cause, timeout=7.0, retry=DEFAULT, **terms)

    cases = [
        overdue(Cause.LOST),
        overdue(Cause.LOST, max_retries=0),
        overdue(Cause.TIMEOUT, max_retries=0),
        overdue(Cause.UNSTARTED, started=False, returns=10_000),
    ]
    settlements = [reaped(case) for case in cases]
    answers = [Settled(Verdict.APPLIED, _move(each)) for each in settlements]
    FailureLog().log(cases, settlements, answers)
    late_start = "NOT_STARTED: The worker did not start the task in time."
    late = (
        "The attempt took longer than its time limit of 7 s: give the task a longer `timeout`, or "
        "less to do in one run."
    )
    begins = "greet id failed, attempt 1: "
    lost = f"{begins}WORKER_LOST: The worker died while it held the task."
    assert [record.getMessage() for record in failures(caplog)] == [
        f"{lost} It runs again at once.",
        f"{lost} Dead letter: lost too often.",
        f"{begins}TIMEOUT: {late} Dead letter: retries used up.",
        f"{begins}{late_start} Dead letter: lost too often.",
    ]
    assert {json.loads(JsonFormatter().format(record))["type"] for record in failures(caplog)} == {
        "greet"
    }


def test_what_the_maintenance_finds_is_summarised_by_type(caplog: pytest.LogCaptureFixture) -> None:
    cases = [
        Overdue(f"id{number}", 1, "w", type, Cause.LOST, True, 0, 3, 0, 7.0, DEFAULT)  # noqa: FBT003
        for type in ("greet", "mail")
        for number in range(9)
    ]
    settlements = [reaped(case) for case in cases]
    log = FailureLog()
    log.log(cases, settlements, [Settled(Verdict.APPLIED, _move(each)) for each in settlements])
    log.summarise(all=True)
    lines = [record.getMessage() for record in failures(caplog)]
    assert sorted(line.partition(" in the last")[0] for line in lines[-2:]) == [
        "… and 4 more like it (greet, WORKER_LOST, release)",
        "… and 4 more like it (mail, WORKER_LOST, release)",
    ]


def test_a_refused_settlement_and_a_logger_that_is_off_say_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    case = Overdue("id", 1, "w", "greet", Cause.LOST, True, 0, 0, 0, 5.0, DEFAULT)  # noqa: FBT003
    settlement = reaped(case)
    FailureLog().log([case], [settlement], [Settled(Verdict.STALE, None)])
    caplog.set_level(logging.CRITICAL, logger.name)
    FailureLog().log([case], [settlement], [Settled(Verdict.APPLIED, _move(settlement))])
    assert failures(caplog) == []


def _move(settlement: Settlement) -> Move:
    return decide(settlement.standing, settlement.outcome, settlement.jitter)
