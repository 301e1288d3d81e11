"""Users of a Redis server who may do what is needed and no more, and those who may do less."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlane.core.backend import Backend
from fairlane.core.errors import AccessDenied
from fairlane.core.ids import new_id
from fairlane.core.model import Ask
from fairlane.core.states import State
from fairlane.core.store_settings import Adjustable
from fairlane.core.submission import new_task
from tests.engines.redis_kit import PATIENT, counted, opened, operator, registered, submitted
from tests.engines.redis_verbs import everything
from tests.fixtures.servers import RedisServer, redis
from tests.fixtures.stores import settlement

DOCS = Path(__file__).parents[2] / "docs" / "engines.md"


def documented() -> list[str]:
    """The rules that users are told to give."""
    found = re.search(r"^ACL SETUSER fairlane on >PASSWORD (.+)$", DOCS.read_text(), re.MULTILINE)
    assert found is not None
    return found[1].split()


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with redis(request.param, tcp=True) as own:
        yield own


def user(server: RedisServer, *rules: str, db: int = 0) -> str:
    """The URL of a user with these rights."""
    with operator(server) as client:
        client.execute_command("ACL", "SETUSER", "app", "reset", "on", ">right", *rules)
        client.execute_command("ACL", "LOG", "RESET")
    return f"redis://app:right@127.0.0.1:{server.port}/{db}"


def refused(server: RedisServer) -> list[Any]:
    """What the server has refused to its users."""
    with operator(server) as client:
        return [entry["object"] for entry in client.acl_log()]


async def test_the_rights_in_the_docs_are_enough(server: RedisServer) -> None:
    async with opened(user(server, *documented()), PATIENT) as backend:
        used = await everything(backend)
        await asyncio.to_thread(backend.run_sync, backend.ops.submit([new_task("work")]))
        assert (await backend.driver.durability()).settings["appendonly"] == "no"
    assert refused(server) == []
    with operator(server) as client:
        assert {key.split(b":")[0] for key in client.scan_iter()} == {b"{fairlane}"}
    verbs = {name for name in dir(type(backend.ops)) if not name.startswith("_")}
    parts = {"apply", "call", "call_in_pieces", "refresh", "lane", "with_lanes", "remove_lanes"}
    parts |= {"submit_along", *dir(Adjustable)}
    assert verbs - used <= {*parts, "publish_view"}  # of which there is none on Redis


async def test_another_prefix_and_database(server: RedisServer) -> None:
    rules = [rule.replace("fairlane", "mine") for rule in documented()]
    async with opened(user(server, *rules, "+select", db=1), prefix="mine") as backend:
        await backend.run(backend.ops.migrate())
        await submitted(backend)
    assert refused(server) == []
    async with opened(user(server, *rules, db=1), prefix="mine") as backend:
        with pytest.raises(AccessDenied, match="select"):
            await submitted(backend)
    async with opened(user(server, *rules)) as backend:
        with pytest.raises(AccessDenied, match="keys"):
            await backend.run(backend.ops.migrate())


async def test_working_on_a_store_takes_less_than_making_one(server: RedisServer) -> None:
    async with opened(server.url) as backend:
        await backend.run(backend.ops.migrate())
    less = [rule for rule in documented() if rule not in {"+eval", "+scan", "+config|get"}]
    async with opened(user(server, *less)) as backend:
        await backend.run(backend.ops.verify())
        await submitted(backend)
        found = await backend.driver.durability()
        assert set(found.settings.values()) == {"unknown"}
        (warning,) = found.warnings
        assert "CONFIG GET" in warning


async def a_life(backend: Backend) -> None:
    """Of a task, and of a worker."""
    await submitted(backend)
    worker = await registered(backend)
    grant = await backend.run(backend.ops.claim(Ask(worker, new_id(), 1)))
    await backend.run(backend.ops.settle([settlement(task) for task in grant.tasks]))
    await backend.run(backend.ops.forget(worker))


@pytest.mark.parametrize("right", ["+del", "+time", "+evalsha", "+script|load", "+publish"])
async def test_each_right_is_needed(server: RedisServer, right: str) -> None:
    async with opened(server.url) as backend:
        await backend.run(backend.ops.migrate())
    with operator(server) as client:
        client.script_flush()
    async with opened(user(server, *(set(documented()) - {right}))) as backend:
        with pytest.raises(AccessDenied, match=r"docs/engines\.md"):
            await a_life(backend)


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ("~other:* &* +@all", "keys"),
        ("~* &* +@all -@scripting", "evalsha"),
        ("~* resetchannels +@all", "channel"),
        ("~* &* +@all -hset -hincrby", "hset|hincrby|scripts need"),
    ],
)
async def test_what_is_missing_is_named(server: RedisServer, rules: str, named: str) -> None:
    async with opened(server.url) as backend:
        await backend.run(backend.ops.migrate())
    async with opened(user(server, *rules.split())) as backend:
        with pytest.raises(AccessDenied, match=named):
            await submitted(backend)
        with pytest.raises(AccessDenied, match=named):
            await asyncio.to_thread(backend.run_sync, backend.ops.submit([new_task("work")]))


async def test_a_user_who_may_not_listen_gets_no_hints(server: RedisServer) -> None:
    rules = [rule for rule in documented() if rule != "+subscribe"]
    async with opened(user(server, *rules)) as backend:
        await backend.run(backend.ops.migrate())
        wakeup = await backend.driver.listen()
        await submitted(backend)
        assert not await wakeup.wait(0.2)
        await wakeup.aclose()


async def test_a_user_who_loses_a_right(server: RedisServer) -> None:
    async with opened(user(server, *documented())) as backend:
        await backend.run(backend.ops.migrate())
        await submitted(backend)
        with operator(server) as client:
            client.execute_command("ACL", "SETUSER", "app", "-evalsha")
        with pytest.raises(AccessDenied, match="evalsha"):
            await submitted(backend)
        with operator(server) as client:
            client.execute_command("ACL", "SETUSER", "app", "+evalsha")
        await submitted(backend)
        assert await counted(backend) == {State.QUEUED: 2}
        with operator(server) as client:
            client.execute_command("ACL", "DELUSER", "app")  # cuts its connections
        with pytest.raises(AccessDenied, match="password"):
            await submitted(backend)
