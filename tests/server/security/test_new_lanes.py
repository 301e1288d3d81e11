"""New lanes per client: nobody uses up the lanes of a store, at any server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.server.config import Admission, ServerConfig
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, opened
from tests.server.kit import Api, refused
from tests.server.kit import serving as serve
from tests.server.security.kit import bearer, new_token


@asynccontextmanager
async def serving(
    kind: str, servers: Servers, folder: Path, *, lanes: int | None = 10, doors: int = 1
) -> AsyncIterator[list[Api]]:
    config = ServerConfig(maintenance=False, admission=Admission(lanes_per_hour=lanes))
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(opened(kind, servers, folder))
        yield [await stack.enter_async_context(serve(world, config)) for _ in range(doors)]


def batch(*types: str, **options: Any) -> dict[str, Any]:
    return {"tasks": [{"task_type": type, "parameters": {}, **options} for type in types]}


def some(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{n}" for n in range(count)]


async def lanes(api: Api) -> int:
    return len((await api.world.run(api.world.ops.facts())).lanes)


@pytest.mark.parametrize("kind", KINDS)
async def test_servers_together_admit_no_more(servers: Servers, tmp_path: Path, kind: str) -> None:
    async with serving(kind, servers, tmp_path, doors=2) as (one, other):
        _, secret = await new_token(one.world, "submit")
        path, me = "/api/v1/tasks/batch", bearer(secret)
        assert (await one.ask("POST", path, batch(*some("a", 6)), **me)).status == 201
        reply = await other.ask("POST", path, batch(*some("b", 5)), **me)
        refused(reply, 429, "too_many_new_lanes")
        assert b"into the payload or the tags" in reply.body
        assert b"At most 10 in 3,600 s" in reply.body
        assert int(reply.headers["retry-after"]) > 3000
        assert await lanes(one) == 6  # all or none
        assert (await other.ask("POST", path, batch(*some("b", 4)), **me)).status == 201
        single = {"task_type": "c", "parameters": {}}
        refused(await one.ask("POST", "/api/v1/tasks", single, **me), 429, "too_many_new_lanes")
        plain = {"type": "c", "payload": {}}
        refused(await other.ask("POST", "/api/tasks", plain, **me), 429, "too_many_new_lanes")
        # What exists is submitted as before, at every server.
        for api in (one, other):
            assert (await api.ask("POST", path, batch(*some("a", 6)), **me)).status == 201
        assert await lanes(one) == 10


async def test_queues_and_capabilities_make_lanes_too(servers: Servers, tmp_path: Path) -> None:
    async with serving("sqlite-memory", servers, tmp_path) as (api,):
        _, secret = await new_token(api.world, "submit")
        path, me = "/api/v1/tasks/batch", bearer(secret)
        for n in range(5):
            body = batch("a", queue=f"q{n}")
            assert (await api.ask("POST", path, body, **me)).status == 201
            body = batch("a", required_capabilities=[f"c{n}"])
            assert (await api.ask("POST", path, body, **me)).status == 201
        body = batch("a", queue="q0", required_capabilities=["c0"])
        refused(await api.ask("POST", path, body, **me), 429, "too_many_new_lanes")


async def test_each_subject_is_counted_once_and_apart(servers: Servers, tmp_path: Path) -> None:
    async with serving("sqlite-memory", servers, tmp_path) as (api,):
        path = "/api/v1/tasks/batch"
        _, first = await new_token(api.world, "submit", name="a")
        _, again = await new_token(api.world, "submit", name="b", subject="a")
        _, other = await new_token(api.world, "submit", name="c")
        reply = await api.ask("POST", path, batch(*some("a", 10)), **bearer(first))
        assert reply.status == 201
        reply = await api.ask("POST", path, batch("more"), **bearer(again))
        refused(reply, 429, "too_many_new_lanes")
        reply = await api.ask("POST", path, batch(*some("b", 10)), **bearer(other))
        assert reply.status == 201


@pytest.mark.parametrize("kind", KINDS)
async def test_a_subject_takes_a_part_of_all_lanes(
    servers: Servers, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slowly: what it has made counts as long as it is there."""
    monkeypatch.setattr(limits, "LANES_OF_ONE", 10)
    async with serving(kind, servers, tmp_path, lanes=None, doors=2) as (one, other):
        path = "/api/v1/tasks/batch"
        _, secret = await new_token(one.world, "submit", name="a", subject="me")
        _, again = await new_token(one.world, "submit", name="b", subject="me")
        reply = await one.ask("POST", path, batch(*some("a", 9)), **bearer(secret))
        assert reply.status == 201
        reply = await other.ask("POST", path, batch(*some("b", 2)), **bearer(again))
        refused(reply, 409, "too_many_lanes")
        assert b"me has made 9 combinations" in reply.body
        assert b"into the payload or the tags" in reply.body
        assert await lanes(one) == 9  # all or none
        single = {"task_type": "c", "parameters": {}}
        assert (await other.ask("POST", "/api/v1/tasks", single, **bearer(again))).status == 201
        single = {"task_type": "d", "parameters": {}}
        refused(
            await one.ask("POST", "/api/v1/tasks", single, **bearer(secret)), 409, "too_many_lanes"
        )
        # What is there is submitted as before, and others make lanes of their own.
        reply = await other.ask("POST", path, batch(*some("a", 9), "c"), **bearer(again))
        assert reply.status == 201
        _, stranger = await new_token(one.world, "submit", name="c")
        reply = await other.ask("POST", path, batch(*some("s", 10)), **bearer(stranger))
        assert reply.status == 201
        _, admin = await new_token(one.world, "submit", "admin", name="d")
        reply = await one.ask("POST", path, batch(*some("x", 30)), **bearer(admin))
        assert reply.status == 201
        assert await lanes(one) == 50


async def test_operators_are_not_limited(servers: Servers, tmp_path: Path) -> None:
    async with serving("sqlite-memory", servers, tmp_path) as (api,):
        path = "/api/v1/tasks/batch"
        _, admin = await new_token(api.world, "submit", "admin")
        _, exempt = await new_token(api.world, "submit", name="vip", exempt=True)
        for n, secret in enumerate((admin, exempt)):
            reply = await api.ask("POST", path, batch(*some(f"{n}", 30)), **bearer(secret))
            assert reply.status == 201
    async with serving("sqlite-memory", servers, tmp_path, lanes=None) as (api,):
        _, secret = await new_token(api.world, "submit")
        reply = await api.ask("POST", path, batch(*some("a", 1_000)), **bearer(secret))
        assert reply.status == 201
