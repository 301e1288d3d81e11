"""Bound tokens: every operation is refused, or shows and changes nothing of others."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from fairlane import Fairlane
from fairlane.core.errors import OutOfBounds, TaskIdTaken, UnknownDependency
from fairlane.core.ids import new_id
from fairlane.core.ownership import Bounds
from fairlane.core.states import State
from fairlane.core.tokens import Scope, digest_of
from fairlane.server import tasks
from fairlane.server.auth import Identity
from fairlane.server.bound_services import within
from fairlane.server.routes import OPERATIONS
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, World
from tests.server.http.kit import Reply
from tests.server.kit import Api, refused, told
from tests.server.security.kit import (
    Guarded,
    Scene,
    bearer,
    guarded,
    name_of,
    needing_a_scope,
    new_token,
    scene,
    snapshot,
)
from tests.server.stream.kit import knock
from tests.server.workers import WORKERS

CLOSED = {name_of(each): each for each in needing_a_scope(OPERATIONS)}

REFUSED = {
    *("GET /api/v1/queue/stats", "GET /api/v1/stats/history", "GET /metrics"),
    *("GET /api/v1/events", "GET /internal/store/facts", "GET /internal/store/events"),
    *("GET /api/v1/queues", "POST /api/v1/queues/{queue}/pause"),
    *("POST /api/v1/queues/{queue}/resume", "GET /api/v1/queues/{queue}/backlog"),
    "GET /api/v1/capabilities/{capability}/backlog",
    *("GET /api/v1/types", "GET /api/v1/types/{type}", "PATCH /api/v1/types/{type}"),
    *("GET /api/v1/definitions", "POST /internal/workers/definitions"),
    *("GET /api/v1/control", "POST /api/v1/control"),
    *("GET /api/v1/settings", "PATCH /api/v1/settings", "GET /api/v1/audit"),
    *("DELETE /api/v1/dlq", "GET /api/v1/dlq/analysis", "POST /api/v1/dlq/replay"),
    *("GET /api/v1/workers", "GET /api/v1/workers/{worker_id}"),
    "POST /api/v1/workers/{worker_id}/drain",
    *("GET /api/tasks/stats", "POST /api/tasks/pause", "POST /api/tasks/resume"),
    "POST /api/tasks/rate-limit",
    *("GET /api/v1/schedules", "POST /api/v1/schedules", "POST /api/v1/schedules/preview"),
    *(f"{method} /api/v1/schedules/{{schedule_id}}" for method in ("GET", "PATCH", "DELETE")),
    *(
        f"POST /api/v1/schedules/{{schedule_id}}/{verb}"
        for verb in ("pause", "resume", "run", "backfill")
    ),
    *("POST /internal/store/schedules", "POST /internal/workers/schedules"),
    "DELETE /api/v1/definitions/{type}",
}
ONE_TASK = {
    *("GET /api/v1/tasks/{task_id}", "GET /api/v1/tasks/{task_id}/result"),
    *("GET /api/v1/tasks/{task_id}/why", "DELETE /api/v1/tasks/{task_id}"),
    *("POST /api/v1/tasks/{task_id}/replay", "POST /api/v1/tasks/{task_id}/retry"),
    *("POST /api/v1/dlq/{task_id}/replay", "GET /api/tasks/{task_id}"),
    *("DELETE /api/tasks/{task_id}", "POST /api/tasks/{task_id}/retry"),
    "POST /api/tasks/{task_id}/cancel",
    *("GET /api/v1/workflows/{workflow_id}", "POST /api/v1/workflows/{workflow_id}/cancel"),
    *("DELETE /api/v1/workflows/{workflow_id}", "POST /api/v1/workflows/{workflow_id}/resume"),
}
BY_ID = {
    *("POST /api/v1/tasks/cancel", "POST /api/v1/tasks/replay", "POST /api/v1/tasks/retry"),
    *("POST /api/v1/tasks/delete", "POST /api/v1/tasks/lookup"),
}
LISTS = {
    *("GET /api/v1/tasks", "GET /api/v1/tasks/summaries", "GET /api/v1/tasks/count"),
    *("GET /api/v1/dlq", "GET /api/tasks", "DELETE /api/tasks", "GET /api/v1/workflows"),
}
SUBMIT = {
    *("POST /api/v1/tasks", "POST /api/v1/tasks/batch", "POST /api/tasks"),
    "POST /api/v1/workflows",
}
WORKER = {
    f"POST {WORKERS}/register",
    f"POST {WORKERS}/completions",
    *(
        f"POST {WORKERS}/{{worker_id}}/{name}"
        for name in (
            *("poll", "start", "progress", "result", "heartbeat", "deregister"),
            *("claim", "starts", "reports", "results", "pulse", "holdings", "disown"),
        )
    ),
}
ABOUT = {"GET /openapi.json", "GET /docs", "GET /api/v1/definitions/{type}"}

ACME = Bounds("acme", own=True)


async def token(world: World, *scopes: str, **options: Any) -> dict[str, str]:
    """The header of a new token: of a tenant who sees what is his own, unless told otherwise."""
    options = {"name": "acme", "own": True, **options}
    return bearer((await new_token(world, *(scopes or ("submit", "read")), **options))[1])


async def ask(api: Api, place: Scene, name: str, headers: dict[str, str]) -> Reply:
    operation = CLOSED[name]
    return await api.ask(operation.method, place.path(operation), place.body(operation), **headers)


def anonymous(reply: Reply, place: Scene) -> tuple[int, str]:
    """An answer with the ids that were asked for left out."""
    text = reply.body.decode()
    for task_id in place[:4]:
        text = text.replace(task_id, "…")
    return reply.status, text


def nowhere(place: Scene) -> Scene:
    """The same with tasks that do not exist."""
    return Scene(new_id(), new_id(), new_id(), new_id(), place.worker)


# -- the matrix ------------------------------------------------------------------------------------


def test_every_operation_has_been_decided_about() -> None:
    """A new operation belongs into one of the sets above; in doubt, bound tokens are refused."""
    groups = [REFUSED, ONE_TASK, BY_ID, LISTS, SUBMIT, WORKER, ABOUT]
    assert sorted(CLOSED) == sorted(name for group in groups for name in group)
    assert {name for name, each in CLOSED.items() if each.bound is None} == REFUSED
    assert all(Scope.ADMIN not in (each.bound or ()) for each in CLOSED.values())


def test_open_operations_find_what_they_use(api: Api) -> None:
    """What a route uses of the services is there for bound tokens, too."""
    handlers = [each.handler for each in CLOSED.values() if each.bound is not None]
    modules = {inspect.getmodule(handler) for handler in handlers}
    used = {
        name
        for module in [*modules, tasks]
        for name in re.findall(r"\bservices\.(\w+)", inspect.getsource(cast(Any, module)))
    }
    assert {"ops", "run", "polls", "submissions"} < used
    offered = vars(within(api.services, ACME))
    assert used <= set(offered), "see server/bound_services.py"


async def test_what_concerns_others_is_refused(server: Guarded) -> None:
    api, place, _ = server
    before = await snapshot(api.world)
    kinds = [
        await token(api.world),
        await token(api.world, own=False, queues=["default"]),
        await token(api.world, own=False, tags={"a": "b"}),
        await token(api.world, "submit", "read", "worker", own=False, queues=["default"]),
    ]
    for name in REFUSED:
        for headers in kinds:
            reply = await ask(api, place, name, headers)
            refused(reply, 403, "forbidden")
            assert b"This token is bound to " in reply.body, name
    refused(await knock(api, **kinds[0]), 403, "forbidden")
    after = await snapshot(api.world)
    assert (after[:4], after[5:]) == (before[:4], before[5:])


async def test_a_task_of_others_is_like_one_that_does_not_exist(server: Guarded) -> None:
    api, place, _ = server
    headers = await token(api.world)
    before = await snapshot(api.world)
    unknown = nowhere(place)
    for name in sorted(ONE_TASK | BY_ID):
        theirs, none = [
            anonymous(await ask(api, where, name, headers), where) for where in (place, unknown)
        ]
        assert theirs == none, name
        assert name not in ONE_TASK or theirs[0] == 404, name
    assert (await snapshot(api.world))[:5] == before[:5]


async def test_lists_and_sweeps_leave_others_alone(server: Guarded) -> None:
    api, place, _ = server
    headers = await token(api.world)
    before = await snapshot(api.world)
    for name in sorted(LISTS):
        reply = await ask(api, place, name, headers)
        assert reply.status == 200, reply.body
        assert not any(task_id.encode() in reply.body for task_id in place[:4]), name
        answer = json.loads(reply.body)
        numbers = [answer[key] for key in ("count", "total", "deleted") if key in answer]
        assert numbers in ([], [0]), name
    for verb in ("cancel", "replay", "retry", "delete"):
        for chosen in ({"all": True}, {"queue": "default"}, {"type": ["work"]}):
            answer = await api.ask("POST", f"/api/v1/tasks/{verb}", chosen, **headers)
            assert told(answer, 200) == {"matched": 0, "applied": 0, "next_cursor": None}
    assert (await snapshot(api.world))[:4] == before[:4]


@pytest.mark.parametrize("name", sorted(set(CLOSED) - REFUSED - WORKER))
async def test_what_is_ones_own(name: str, server: Guarded) -> None:
    # Which also shows that the requests of the other tests would have done something.
    api, _, _ = server
    mine = await scene(api.world, whose=ACME)
    operation = CLOSED[name]
    assert operation.bound is not None
    for scope in sorted(operation.bound)[:1]:
        reply = await ask(api, mine, name, await token(api.world, scope))
        assert reply.status in {operation.status, *operation.further}, reply.body
    other = next(scope for scope in ("worker", "read", "submit") if scope not in operation.bound)
    options = {"own": False, "queues": ["default"]} if other == "worker" else {}
    refused(await ask(api, mine, name, await token(api.world, other, **options)), 403, "forbidden")


async def test_of_ones_own_tasks_everything_is_shown(server: Guarded) -> None:
    api, _, _ = server
    mine = await scene(api.world, whose=ACME)
    headers = await token(api.world)
    answer = told(await api.ask("GET", "/api/v1/tasks?limit=100", **headers), 200)
    assert {task["task_id"] for task in answer["tasks"]} == set(mine[:4])
    assert {task["owner"] for task in answer["tasks"]} == {"acme"}
    assert told(await api.ask("GET", "/api/v1/tasks/count", **headers), 200)["count"] == 4
    path = f"/api/v1/tasks/{mine.dead}?include_history=true"
    assert told(await api.ask("GET", path, **headers), 200)["state_history"]
    path = f"/api/v1/tasks/{mine.done}/result?wait=5"
    assert told(await api.ask("GET", path, **headers), 200)["status"] == "completed"
    body = {"status": ["queued", "executing"]}
    swept = told(await api.ask("POST", "/api/v1/tasks/cancel", body, **headers), 200)
    assert swept["applied"] == 2


async def test_a_result_of_others_is_not_waited_for(server: Guarded) -> None:
    api, place, _ = server
    headers = await token(api.world)
    async with asyncio.timeout(10):
        path = f"/api/v1/tasks/{place.waiting}/result?wait=20"
        refused(await api.ask("GET", path, **headers), 404, "task_not_found")


# -- subjects --------------------------------------------------------------------------------------


async def test_tasks_carry_the_subject_of_their_token(server: Guarded) -> None:
    api, place, secrets = server
    for headers, owner in (
        (bearer(secrets["submit"]), "submit"),
        (await token(api.world, name="ci", subject="Team Größe", own=False), "Team Größe"),
        (await token(api.world), "acme"),
    ):
        body: dict[str, Any] = {"task_type": "t", "parameters": {}}
        plain = told(await api.ask("POST", "/api/v1/tasks", body, **headers), 201)["task_id"]
        full = {"task_type": "t", "tags": {"a": "b"}, "timeout_seconds": 5}
        batch = {"tasks": [body, full]}
        answer = told(await api.ask("POST", "/api/v1/tasks/batch", batch, **headers), 201)
        spec = {"type": "t", "payload": 1}
        other = told(await api.ask("POST", "/api/tasks", spec, **headers), 201)["id"]
        for task_id in (plain, *(task["task_id"] for task in answer["tasks"]), other):
            assert (await api.world.task(task_id)).owner == owner
        reader = bearer(secrets["read"])
        path = f"/api/v1/tasks?owner={owner.replace(' ', '%20').replace('ö', '%C3%B6')}"
        path = path.replace("ß", "%C3%9F")
        assert len(told(await api.ask("GET", path, **reader), 200)["tasks"]) == 4
    assert (await api.world.task(place.waiting)).owner is None


async def test_nobody_chooses_the_owner(server: Guarded) -> None:
    api, _, secrets = server
    for headers in (bearer(secrets["admin"]), await token(api.world)):
        body = {"task_type": "t", "parameters": {}, "owner": "other"}
        refused(await api.ask("POST", "/api/v1/tasks", body, **headers), 422, "invalid_request")


async def test_without_tokens_there_are_no_owners(api: Api) -> None:
    assert (await api.world.task(await api.submit())).owner is None


# -- what a filter or a task asks for --------------------------------------------------------------


async def test_what_is_named_outside_of_the_bounds_is_refused_with_a_reason(
    server: Guarded,
) -> None:
    api, _, _ = server
    headers = await token(api.world, queues=["a", "b"], tags={"team": "blue"})
    before = await snapshot(api.world)
    bound = "This token is bound to the tasks of 'acme' in the queues a, b with the tag 'team': "
    for query, why in {
        "queue=c": "the queue 'c' is not among them",
        "queue=a&queue=default": "the queue 'default' is not among them",
        "tag=team:red": "'red' is another value of 'team'",
        "owner=other": "the tasks of 'other' are not among them",
    }.items():
        for path in ("/api/v1/tasks", "/api/v1/tasks/count", "/api/v1/dlq"):
            reply = await api.ask("GET", f"{path}?{query}", **headers)
            refused(reply, 403, "out_of_bounds")
            message = json.loads(reply.body)["error"]["message"]
            assert message == f"{bound}'blue': {why}."
    for task in ({}, {"queue": "c"}, {"queue": "a", "tags": {"team": "red"}}):
        body = {"task_type": "t", "parameters": {}, **task}
        for path, sent in {
            "/api/v1/tasks": body,
            "/api/v1/tasks/batch": {"tasks": [{**body, "queue": "a", "tags": {}}, body]},
        }.items():
            refused(await api.ask("POST", path, sent, **headers), 403, "out_of_bounds")
    refused(
        await api.ask("POST", "/api/tasks", {"type": "t", "payload": 1}, **headers),
        403,
        "out_of_bounds",
    )
    assert await snapshot(api.world) == before
    body = {"task_type": "t", "parameters": {}, "queue": "b"}
    task_id = told(await api.ask("POST", "/api/v1/tasks", body, **headers), 201)["task_id"]
    assert (await api.world.task(task_id)).tags == {"team": "blue"}


async def test_keys_and_ids_of_two_tenants(server: Guarded) -> None:
    api, place, secrets = server
    mine, theirs = await token(api.world), await token(api.world, name="other")
    headers = {"idempotency_key": "k"}

    async def submit(who: dict[str, str], status: int = 201, **fields: Any) -> Any:
        body = {"task_type": "t", "parameters": {}, **fields}
        return told(await api.ask("POST", "/api/v1/tasks", body, **who), status)

    first = (await submit(mine | headers))["task_id"]
    assert (await submit(mine | headers, 200))["task_id"] == first
    assert (await submit(theirs | headers))["task_id"] != first
    assert (await submit(bearer(secrets["submit"]) | headers))["task_id"] != first
    shown = told(await api.ask("GET", f"/api/v1/tasks/{first}", **mine), 200)
    assert (shown["idempotency_key"], shown["owner"]) == ("k", "acme")
    assert (await submit(theirs, unique=True))["task_id"] != (await submit(mine, unique=True))[
        "task_id"
    ]
    before = await api.world.task(first)
    for taken in (first, place.done):
        sent: dict[str, Any] = {"task_type": "t", "parameters": {}, "task_id": taken}
        for path, body in {
            "/api/v1/tasks": sent,
            "/api/v1/tasks/batch": {"tasks": [{"task_type": "t"}, sent]},
        }.items():
            reply = await api.ask("POST", path, body, **theirs)
            assert refused(reply, 409, "task_id_taken") == {}
            assert taken.encode() not in reply.body
    assert await api.world.task(first) == before
    assert (await submit(mine, 200, task_id=first))["task_id"] == first
    for parent in (first, new_id()):
        reply = await api.ask(
            "POST", "/api/v1/tasks", {"task_type": "t", "depends_on": [parent]}, **theirs
        )
        refused(reply, 422, "unknown_dependency")
        inputs = {"result": {"parents": [parent]}}
        reply = await api.ask(
            "POST", "/api/v1/tasks", {"task_type": "t", "inputs": inputs}, **theirs
        )
        refused(reply, 422, "unknown_dependency")
    await submit(mine, depends_on=[first])


async def test_tokens_without_bounds_share_keys_and_ids(server: Guarded) -> None:
    api, _, _ = server
    one, other = [
        bearer((await new_token(api.world, "submit", name=name))[1]) for name in ("one", "other")
    ]
    for fields in ({"idempotency_key": "k"}, {"unique": True}, {"task_id": new_id()}):
        body = {"task_type": "t", "parameters": {}, **fields}
        first = told(await api.ask("POST", "/api/v1/tasks", body, **one), 201)["task_id"]
        again = told(await api.ask("POST", "/api/v1/tasks", body, **other), 200)["task_id"]
        assert again == first, fields
        assert (await api.world.task(first)).owner == "one"


async def test_tokens_of_one_subject_share_keys_but_not_bounds(server: Guarded) -> None:
    api, _, _ = server
    one, other = [
        await token(api.world, own=False, queues=[queue], subject="acme") for queue in "ab"
    ]
    body = {"task_type": "t", "idempotency_key": "k"}
    for status in (201, 200):
        told(await api.ask("POST", "/api/v1/tasks", {**body, "queue": "a"}, **one), status)
    reply = await api.ask("POST", "/api/v1/tasks", {**body, "queue": "b"}, **other)
    refused(reply, 422, "idempotency_conflict")


# -- workers ---------------------------------------------------------------------------------------


async def test_workers_of_a_queue(server: Guarded) -> None:
    api, place, _ = server
    options = {"own": False, "queues": ["a"], "name": "crew"}
    headers = await token(api.world, "worker", **options)
    ours = await api.world.submit(queue="a")
    refused(
        await api.ask("POST", f"{WORKERS}/register", {"queues": ["a", "default"]}, **headers),
        403,
        "out_of_bounds",
    )
    answer = await api.ask("POST", f"{WORKERS}/register", {"capacity": 10}, **headers)
    worker_id = told(answer, 200)["worker_id"]
    stored = {each.worker_id: each for each in await api.world.run(api.world.ops.workers())}
    assert stored[worker_id].queues == frozenset({"a"})

    async def call(name: str, body: Any) -> Reply:
        return await api.ask("POST", f"{WORKERS}/{worker_id}/{name}", body, **headers)

    claim = {"request_id": "r", "slots": 5}
    refused(await call("claim", {**claim, "queues": ["default"]}), 403, "out_of_bounds")
    answer = told(await call("poll", {"available_capacity": 10}), 200)
    assert [task["task_id"] for task in answer["tasks"]] == [ours]
    for body in (claim, {**claim, "request_id": "s", "queues": None}):
        assert told(await call("claim", body), 200)["tasks"] == []
    before = await snapshot(api.world)
    for task_id in (place.held, place.waiting, new_id()):
        attempts: list[dict[str, Any]] = [{}, {"attempt": 1}]
        for fields in attempts:
            run: dict[str, Any] = {"task_id": task_id, **fields}
            result = {**run, "status": "completed"}
            for name, body in {"start": run, "progress": run, "result": result}.items():
                refused(await call(name, body), 404, "task_not_found")
        run = {"task_id": task_id, "attempt": 1}
        ended = {**run, "status": "completed", "result": None}
        for name, reports in {
            "starts": {"starts": [{**run, "seconds": 0}]},
            "reports": {"reports": [run]},
            "results": {"results": [ended]},
            "disown": {"runs": [run]},
        }.items():
            assert told(await call(name, reports), 200)["verdicts"] == ["missing"], name
    assert (await snapshot(api.world))[0] == before[0]
    done = {"task_id": ours, "attempt": 2, "status": "completed"}
    refused(await call("result", done), 409, "lease_lost")
    told(await call("result", {**done, "attempt": 1}), 200)
    for name in ("heartbeat", "pulse"):
        told(await call(name, {"tasks": [{"task_id": place.held, "attempt": 1}]}), 200)
    assert await api.world.state(place.held) is State.EXECUTING
    assert told(await call("holdings", {}), 200)["runs"] == []
    count = {"types": ["intruder"]}
    for queues, status in (([], 200), (["a"], 200), (["default"], 403)):
        body = {**count, "queues": queues}
        answer = await api.ask("POST", f"{WORKERS}/completions", body, **headers)
        assert answer.status == status
    told(await call("deregister", None), 200)


async def test_a_worker_that_was_given_another_token_serves_other_queues(
    server: Guarded,
) -> None:
    """What it registered for earlier does not count: the token does."""
    api, place, _ = server
    token_id, secret = await new_token(api.world, "worker", queues=["a"], name="crew")
    found = await api.world.run(api.world.ops.token(digest_of(secret)))
    assert found is not None
    mine = await scene(api.world, Identity("crew", token_id), Bounds("crew", queues=frozenset("b")))
    path = f"{WORKERS}/{mine.worker}/poll"
    refused(await api.ask("POST", path, {}, **bearer(secret)), 403, "out_of_bounds")
    assert await api.world.state(place.waiting) is State.QUEUED


# -- browsers --------------------------------------------------------------------------------------


async def test_a_session_has_the_bounds_of_its_token(server: Guarded) -> None:
    api, place, _ = server
    mine = await scene(api.world, whose=ACME)
    _, secret = await new_token(api.world, "submit", "read", name="acme", own=True)
    here = f"http://127.0.0.1:{api.port}"
    reply = await api.ask("POST", "/auth/session", {"token": secret}, origin=here)
    assert told(reply, 200) == {
        "required": True,
        "name": "acme",
        "scopes": ["read", "submit"],
        "bound_to": "the tasks of 'acme'",
    }
    cookie = reply.headers["set-cookie"].partition(";")[0]
    headers = {"cookie": cookie, "origin": here}
    answer = told(await api.ask("GET", "/api/v1/tasks", **headers), 200)
    assert {task["task_id"] for task in answer["tasks"]} == set(mine[:4])
    path = f"/api/v1/tasks/{place.waiting}"
    refused(await api.ask("GET", path, **headers), 404, "task_not_found")
    refused(await api.ask("GET", "/api/v1/workers", **headers), 403, "forbidden")
    refused(await knock(api, **headers), 403, "forbidden")
    session = told(await api.ask("GET", "/auth/session", **headers), 200)
    assert session["bound_to"] == "the tasks of 'acme'"


# -- a Python client, on every engine --------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_of_python_needs_nothing_else(
    kind: str, servers: Servers, tmp_path: Path
) -> None:
    async with guarded(servers, tmp_path, kind) as (api, place, _):
        world = api.world
        url = f"http://127.0.0.1:{api.port}"
        _, secret = await new_token(world, "submit", "read", name="acme", own=True)
        async with Fairlane(url, token=secret) as app:

            @app.task
            async def work(n: int) -> int:
                return n

            theirs = place.waiting
            one = await work.submit(1)
            many = await app.submit_many([work.prepare(n) for n in (2, 3)])
            task = await app.get(one.task_id)
            assert task is not None
            assert task.owner == "acme"
            assert await app.get(theirs) is None
            page = await app.list(owner="acme")
            assert {each.task_id for each in page.tasks} == {
                one.task_id,
                *(each.task_id for each in many),
            }
            worker = await world.worker()
            while claimed := await world.claim(worker):
                for each in claimed:
                    await world.settle(each)
            assert await one.result(timeout=30) is None
            late = await work.submit(4)
            assert (await app.cancel(late.task_id)).applied
            assert not (await app.cancel(theirs)).applied
            with pytest.raises(TaskIdTaken):
                await work.options(task_id=theirs).submit(5)
            with pytest.raises(UnknownDependency):
                await work.options(depends_on=[theirs]).submit(5)
            with pytest.raises(OutOfBounds):
                await app.list(owner="other")
