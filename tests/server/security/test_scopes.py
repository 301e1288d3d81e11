"""Who may do what: every operation of the route table, with every kind of token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane.core.tokens import Scope
from fairlane.server.operations import Operation
from fairlane.server.routes import OPERATIONS
from tests.conftest import Servers
from tests.fixtures.stores import KINDS
from tests.server.kit import Api, refused
from tests.server.security.kit import (
    BOTH,
    EXPIRED,
    HOURLY,
    REVOKED,
    SCHEDULE,
    WRONG,
    Guarded,
    admits,
    audit_log,
    bearer,
    guarded,
    name_of,
    needing_a_scope,
    new_token,
    snapshot,
    until,
)

CLOSED = needing_a_scope(OPERATIONS)
OPEN = [each for each in OPERATIONS if not each.scopes]


async def test_nobody_comes_in_without_a_token_that_counts(server: Guarded) -> None:
    api, scene, secrets = server
    before = await snapshot(api.world)
    strangers: list[dict[str, str]] = [
        {},
        bearer(WRONG),
        bearer(""),
        bearer("\xe9\xff\x80"),
        bearer(f"{secrets['admin']}x"),
        bearer(secrets["admin"].upper()),
        bearer(secrets[EXPIRED]),
        bearer(secrets[REVOKED]),
        {"authorization": secrets["admin"]},
        {"authorization": f"Basic {secrets['admin']}"},
        {"cookie": f"fairlane_session={WRONG}"},
        {"cookie": f"fairlane_session={secrets[REVOKED]}"},
        {"cookie": f"other={secrets['admin']}"},
    ]
    for operation in CLOSED:
        for headers in strangers:
            for method in dict.fromkeys([operation.method, "HEAD", "OPTIONS"]):
                if method == operation.method and "cookie" in headers and method != "GET":
                    continue  # those are asked for an Origin first
                reply = await api.ask(
                    method, scene.path(operation), scene.body(operation), **headers
                )
                assert reply.status == 401, (name_of(operation), method, headers)
                assert reply.headers["www-authenticate"] == "Bearer"
                assert method == "HEAD" or reply.code == "unauthorized"
    assert await snapshot(api.world) == before


async def test_nobody_does_what_is_not_in_the_scopes(server: Guarded) -> None:
    api, scene, secrets = server
    before = await snapshot(api.world)
    checked = 0
    for operation in CLOSED:
        for scope in Scope:
            if admits(operation, scope):
                continue
            reply = await api.ask(
                operation.method,
                scene.path(operation),
                scene.body(operation),
                **bearer(secrets[scope]),
            )
            refused(reply, 403, "forbidden")
            assert (await api.ask("OPTIONS", scene.path(operation), **bearer(secrets[scope]))).code
            checked += 1
    assert checked > 2 * len(CLOSED)
    assert await snapshot(api.world) == before


@pytest.mark.parametrize("operation", CLOSED, ids=name_of)
async def test_the_right_scope_is_enough(operation: Operation, server: Guarded) -> None:
    # Which also shows that the requests of the other tests would have done something.
    api, scene, secrets = server
    before = await snapshot(api.world)
    for number, scope in enumerate(sorted(operation.scopes)):
        reply = await api.ask(
            operation.method,
            scene.path(operation),
            scene.body(operation),
            **bearer(secrets[BOTH if operation.besides else scope]),
        )
        if number == 0:
            statuses = {operation.status, *operation.further}
            assert reply.status in statuses, reply.body
        assert reply.status not in {401, 403}
    if operation.method == "GET":
        assert await snapshot(api.world) == before


@pytest.mark.parametrize("scope", Scope)
async def test_who_declares_schedules_may_submit_too(scope: Scope, server: Guarded) -> None:
    """They submit tasks of any type, queue and payload: no scope is enough by itself."""
    api, scene, secrets = server
    path = "/internal/workers/schedules"
    (operation,) = (each for each in CLOSED if each.path == path)
    assert admits(operation, Scope.WORKER, Scope.SUBMIT)
    body = scene.body(operation)
    refused(await api.ask("POST", path, body, **bearer(secrets[scope])), 403, "forbidden")
    replaced = {**body, "schedules": [{"schedule_id": SCHEDULE, **HOURLY}]}
    both = bearer(secrets[BOTH])
    refused(await api.ask("POST", path, replaced, **both), 409, "schedule_conflict")
    quick = {"max_retries": 1_000, "retry_policy": {"base_seconds": 0.0}}
    flood = {**HOURLY, "task": {**HOURLY["task"], **quick}}
    reply = await api.ask(
        "POST", path, {**body, "schedules": [{"schedule_id": "flood", **flood}]}, **both
    )
    refused(reply, 422, "invalid_max_retries")
    assert await audit_log(api.world) == []


async def test_an_admin_is_not_a_worker(server: Guarded) -> None:
    api, _, secrets = server
    reply = await api.ask("POST", "/internal/workers/register", {}, **bearer(secrets["admin"]))
    refused(reply, 403, "forbidden")


VARIANTS: dict[str, Callable[[str], str]] = {
    "slash": lambda path: f"{path}/",
    "slashes": lambda path: path.replace("/", "//"),
    "upper case": str.upper,
    "encoded slash": lambda path: path[0] + path[1:].replace("/", "%2f"),
    "encoded letters": lambda path: "/" + "".join(f"%{ord(each):02x}" for each in path[1:]),
    "there and back": lambda path: f"/x/..{path}",
    "there and back, encoded": lambda path: f"/healthz/%2e%2e{path}",
    "up": lambda path: f"{path}/../healthz",
    "semicolon": lambda path: f"{path};/healthz",
    "dot": lambda path: path.replace("/", "/./"),
    "nul": lambda path: f"{path}%00",
    "line": lambda path: f"{path}%0d%0aX:%20y",
    "backslash": lambda path: path.replace("/", "\\", 2).replace("\\", "/", 1),
    "whole URL": lambda path: f"http://127.0.0.1{path}",
    "bad UTF-8": lambda path: f"{path}%ff%c0%af",
}


def elsewhere(operation: Operation) -> set[int]:
    """What becomes of what is open when it is written in other ways: signing out where nobody is
    signed in goes on working; everything below the files of the dashboard is open, or not there."""
    return {200, 204, 401, 404, 405} if "{path:path}" in operation.path else {200, 204, 401}


@pytest.mark.parametrize("variant", VARIANTS)
async def test_no_way_of_writing_an_address_leads_around(variant: str, server: Guarded) -> None:
    api, scene, secrets = server
    before = await snapshot(api.world)
    for operation in OPERATIONS:
        path = VARIANTS[variant](scene.path(operation).partition("?")[0])
        for method in dict.fromkeys([operation.method, "GET", "HEAD", "OPTIONS", "PUT"]):
            reply = await api.ask(method, path, scene.body(operation))
            assert reply.status in ({401} if operation.scopes else elsewhere(operation)), (
                method,
                path,
            )
        for scope in Scope:
            if operation.scopes and not admits(operation, scope):
                reply = await api.ask(
                    operation.method, path, scene.body(operation), **bearer(secrets[scope])
                )
                assert reply.status in {403, 404, 405}, (path, scope)
    assert await snapshot(api.world) == before


async def test_what_is_open_tells_nothing(server: Guarded) -> None:
    api, scene, secrets = server
    for operation in OPEN:
        reply = await api.ask(operation.method, scene.path(operation), scene.body(operation))
        assert reply.status in {operation.status, 401}
        for secret in secrets.values():
            assert secret.encode() not in reply.body
        assert scene.waiting.encode() not in reply.body


async def test_strangers_are_not_told_what_is_there(server: Guarded) -> None:
    api, scene, secrets = server
    unknown = await api.ask("GET", "/api/v1/nothing")
    known = await api.ask("GET", f"/api/v1/tasks/{scene.waiting}")
    assert (unknown.status, unknown.body) == (known.status, known.body)
    refused(await api.ask("GET", "/api/v1/nothing", **bearer(secrets["read"])), 404, "not_found")


# -- once for every engine -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_on_every_engine(kind: str, servers: Servers, tmp_path: Path) -> None:
    async with guarded(servers, tmp_path, kind) as (api, scene, secrets):
        for name, status in {
            "": 401,
            EXPIRED: 401,
            REVOKED: 401,
            "read": 403,
            "submit": 201,
        }.items():
            headers = bearer(secrets[name]) if name else {}
            body = {"task_type": "work", "parameters": {}}
            assert (await api.ask("POST", "/api/v1/tasks", body, **headers)).status == status, name
        reply = await api.ask("GET", f"/api/v1/tasks/{scene.done}", **bearer(secrets["read"]))
        assert reply.status == 200


async def test_the_first_token_closes_the_door_and_the_last_leaves_it_closed(api: Api) -> None:
    async def answers(status: int, **headers: str) -> bool:
        return (await api.ask("GET", "/api/v1/queues", **headers)).status == status

    assert await answers(200)
    token_id, secret = await new_token(api.world, "read")
    await until(lambda: answers(401))
    assert await answers(200, **bearer(secret))
    await api.world.run(api.world.ops.drop_token(token_id))
    await until(lambda: answers(401, **bearer(secret)))
    assert await answers(401)
