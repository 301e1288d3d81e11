"""Definitions decide about everybody's tasks, and schedules make some: nobody takes all places,
changes are told, and an admin can drop them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlane.core import limits
from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.server.http.kit import Reply
from tests.server.kit import Api, refused, serving
from tests.server.security.kit import bearer, new_token

PUBLISH = "/internal/workers/definitions"
DECLARE = "/internal/workers/schedules"
MOST = limits.DEFINITIONS_OF_ONE


async def publish(api: Api, secret: str | None, *types: str, **options: Any) -> Reply:
    me = {} if secret is None else bearer(secret)
    body = {"definitions": [{"type": type, **options} for type in types]}
    return await api.ask("POST", PUBLISH, body, **me)


async def fill(api: Api, secret: str | None, count: int = MOST) -> None:
    for start in range(0, count, limits.BATCH):
        some = [f"t{number}" for number in range(start, min(count, start + limits.BATCH))]
        assert (await publish(api, secret, *some)).status == 200


async def entries(api: Api) -> Sequence[Any]:
    return (await api.world.run(api.world.ops.audit(1_000))).entries


async def test_a_subject_publishes_no_more_than_its_quota(served: Api) -> None:
    _, first = await new_token(served.world, "worker", name="a")
    _, again = await new_token(served.world, "worker", name="b", subject="a")
    _, other = await new_token(served.world, "worker", name="c")
    await fill(served, first)
    for secret in (first, again):
        reply = await publish(served, secret, "more")
        refused(reply, 422, "invalid_definition")
        assert b"a has made 1,000 definitions" in reply.body
    assert (await publish(served, other, "more")).status == 200
    assert (await publish(served, first, "t1", queue="q")).status == 200


async def test_an_admin_drops_what_is_too_much(served: Api) -> None:
    _, worker = await new_token(served.world, "worker")
    _, admin = await new_token(served.world, "admin")
    await fill(served, worker)
    path = "/api/v1/definitions/t1"
    for scopes in (["worker"], ["read", "submit"]):
        _, secret = await new_token(served.world, *scopes, name="x")
        refused(await served.ask("DELETE", path, **bearer(secret)), 403, "forbidden")
    assert (await served.ask("DELETE", path, **bearer(admin))).status == 204
    refused(await served.ask("DELETE", path, **bearer(admin)), 404, "type_not_found")
    assert (await publish(served, worker, "more")).status == 200
    told = [(each.actor, each.action, each.subject) for each in await entries(served)]
    assert ("admin", "definition.drop", "t1") in told


async def test_operators_and_open_servers_are_not_limited(servers: Servers, tmp_path: Path) -> None:
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world) as api:
        await fill(api, None, MOST + 1)
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world) as api:
        _, admin = await new_token(world, "admin", "worker")
        await fill(api, admin, MOST + 1)


async def test_changes_are_told_once_with_what_they_say(servers: Servers, tmp_path: Path) -> None:
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world) as api:
        _, secret = await new_token(world, "worker", name="w")
        await publish(api, secret, "greet", "mail", parameters={"type": "object"})
        await publish(api, secret, "greet", "mail", parameters={"type": "object"})
        await publish(api, secret, "greet", queue="evil")
        second, first = await entries(api)
        assert (first.actor, first.action, first.subject) == (
            "w",
            "definition.publish",
            "greet mail",
        )
        assert (second.subject, second.address) == ("greet", "127.0.0.1")
        (said,) = json.loads(second.detail)["definitions"]
        assert (said["type"], said["queue"]) == ("greet", "evil")


async def test_a_subject_declares_no_more_schedules_than_its_quota(
    servers: Servers, tmp_path: Path
) -> None:
    async def declare(secret: str, *ids: str) -> Reply:
        some = [{"schedule_id": id, "cron": "@hourly", "task": {"task_type": "work"}} for id in ids]
        return await api.ask("POST", DECLARE, {"owner": "o", "schedules": some}, **bearer(secret))

    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world) as api:
        _, first = await new_token(world, "worker", "submit", name="a")
        _, other = await new_token(world, "worker", "submit", name="b")
        for start in range(0, limits.SCHEDULES_OF_ONE, limits.SCHEDULE_PAGE):
            ids = [f"s{number}" for number in range(start, start + limits.SCHEDULE_PAGE)]
            assert (await declare(first, *ids)).status == 200
        refused(await declare(first, "more"), 422, "invalid_schedule")
        assert (await declare(first, "s1")).status == 200
        assert (await declare(other, "more")).status == 200
