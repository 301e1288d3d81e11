"""The same commands on every engine."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.kit import Cli
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, World, opened

SHARED = [kind for kind in KINDS if kind != "sqlite-memory"]


@pytest.fixture(params=SHARED)
async def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


async def test_a_view_for_an_sql_prompt(
    world: World, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_STORE", world.url)
    for _ in range(2):
        result = await asyncio.to_thread(cli, "migrate", "--public-view")
        assert (result.exit_code == 0) is world.transactional
        said = "up to date" if world.transactional else "has no SQL"
        assert said in result.output


async def test_a_task_s_life(world: World, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_STORE", world.url)

    async def ask(*args: str) -> dict[str, Any]:
        """A command has, like any program, a loop of its own."""
        found: dict[str, Any] = await asyncio.to_thread(cli.json, *args)
        return found

    assert (await ask("migrate"))["previous_version"] != 0
    submitted = await ask("submit", "work", '{"n": 1}', "--priority", "high", "--tag", "a=b")
    task_id = str(submitted["task_id"])
    assert (await ask("list", "--tag", "a=b"))["tasks"] == [await ask("status", task_id)]
    codes = (await ask("why", task_id))["reasons"]
    assert [reason["code"] for reason in codes] == ["no_worker", "position"]
    assert (await ask("pause", "--type", "work"))["types"]
    assert (await ask("limit", "work", "--rate", "3"))["rate_limit"] == 3.0
    assert (await ask("cancel", "--type", "work", "--yes"))["applied"] == 1
    assert (await ask("replay", task_id))["applied"] == 1
    assert (await ask("stats"))["by_status"]["queued"] == 1
    await ask("cancel", task_id)
    text = await asyncio.to_thread(cli.ok, "events", "--json")
    events = [json.loads(line)["type"] for line in text.splitlines()]
    assert events == ["task.submitted", "task.cancelled", "task.queued", "task.cancelled"]
    assert (await ask("delete", task_id))["applied"] == 1
    worker_id = await world.worker()
    assert (await ask("drain", worker_id))["status"] == "draining"
    checks = (await ask("doctor"))["checks"]
    assert {"store", "schema", "durability", "clock", "workers"} <= {
        each["check"] for each in checks
    }
