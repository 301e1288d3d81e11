"""What the doctor says about schedules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.cli.schedule_checks import NAMES
from fairlane.client.app import Fairlane
from fairlane.core import limits, recurrence
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.recurrence import Cron, every
from fairlane.core.schedules import new_schedule
from fairlane.core.submission import new_task
from fairlane.core.zones import zone_of
from tests.cli.kit import Cli, in_store
from tests.fixtures.stores import World

LEAD = 30


async def declared(app: Fairlane, schedule_id: str, type: str = "work", **options: Any) -> None:
    now = (await app.run(app.backend.ops.facts())).now
    rule = every(3600, (now // 1_000_000 + LEAD) % 3600)
    new = new_schedule(schedule_id, rule, new_task(type), **options)
    await app.run(app.backend.ops.put_schedules([new]))


async def advance(app: Fairlane, seconds: float) -> None:
    await app.run(app.backend.ops.shift_clock(seconds))


def said(cli: Cli) -> list[tuple[str, str]]:
    """The status and the message of each check of schedules."""
    checks = json.loads(cli("doctor", "--json").stdout)["checks"]
    return [(each["status"], each["message"]) for each in checks if each["check"] == "schedules"]


def test_nothing_is_said_without_schedules(ready: Cli) -> None:
    assert said(ready) == []


def test_schedules_that_are_late(ready: Cli) -> None:
    async def use(app: Fairlane) -> None:
        await declared(app, "nightly")
        await declared(app, "paused")
        await app.run(app.backend.ops.pause_schedule("paused"))
        await advance(app, LEAD + 2)

    in_store(use)
    assert said(ready) == [("ok", "2, of which 1 are paused.")]
    in_store(lambda app: advance(app, 60))
    _, (status, message) = said(ready)
    assert status == "wrong"
    assert message.startswith("Late, by up to ")
    assert ": nightly. Every worker and server fires schedules" in message
    assert ready("doctor").exit_code == 1


def test_schedules_whose_zone_is_not_known_here(
    ready: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(app: Fairlane) -> None:
        rule: Any = Cron("* * * * *", "Mars/Olympus")
        with monkeypatch.context() as patch:
            patch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
            new = new_schedule("nightly", rule, new_task("work"), jitter=5)
            await app.run(app.backend.ops.put_schedules([new]))
        await advance(app, 120)

    in_store(use)
    _, (status, message) = said(ready)
    assert status == "warning"
    assert message.startswith(
        "Not fired by processes like this one: nightly. Of the first one: The"
    )
    assert "Mars/Olympus" in message
    shown = ready("schedule", "show", "nightly").stdout
    assert "active, not here" in shown
    assert "'Mars/Olympus' is not known here" in " ".join(shown.split())
    assert "active, not here" in ready("schedule", "list").stdout


def test_a_line_names_only_a_few(ready: Cli) -> None:
    async def use(app: Fairlane) -> None:
        for number in range(NAMES + 3):
            await declared(app, f"s{number:02}")
        await advance(app, 60)

    in_store(use)
    _, (_, message) = said(ready)
    assert "s00, s01" in message
    assert "s09 and 3 more. " in message


def test_schedules_whose_tasks_fail(ready: Cli) -> None:
    async def use(app: Fairlane) -> None:
        world = World(app.backend, app.url, {})
        await declared(app, "nightly", pause_after_failures=1)
        await advance(app, LEAD + 1)
        await app.run(app.backend.ops.fire_due())
        worker = await world.worker(lease=86_400)
        await world.claim_and_settle(worker, Failed(TaskError("no", retriable=False)))
        await advance(app, 3600)
        await app.run(app.backend.ops.fire_due())

    in_store(use)
    _, (status, message) = said(ready)
    assert status == "warning"
    assert message.startswith("Paused because their tasks failed: nightly.")


def test_schedules_whose_tasks_are_refused(ready: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(app: Fairlane) -> None:
        await World(app.backend, app.url, {}).submit("work")
        await declared(app, "nightly", "unheard-of")
        await advance(app, LEAD + 1)
        lanes = limits.LANES
        monkeypatch.setattr(limits, "LANES", 1)
        await app.run(app.backend.ops.fire_due())
        monkeypatch.setattr(limits, "LANES", lanes)

    in_store(use)
    _, (status, message) = said(ready)
    assert status == "warning"
    assert message.startswith("The store refused the task of their last tick: nightly.")
    assert "too_many_lanes" in message
