"""What operators change is told in the audit log, once, and with who it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Op
from fairlane.server.operations import ADMIN, Operation
from fairlane.server.routes import OPERATIONS
from tests.server.kit import Api, refused, told
from tests.server.security.kit import (
    BOTH,
    SCHEDULE,
    Guarded,
    audit_log,
    bearer,
    name_of,
)

CHANGES = [each for each in OPERATIONS if each.action is not None]


def test_every_change_by_an_admin_is_told() -> None:
    silent = [
        name_of(each)
        for each in OPERATIONS
        if each.scopes == ADMIN and each.method != "GET" and each.action is None
    ]
    assert silent == []
    assert len(CHANGES) > 10


@pytest.mark.parametrize("operation", CHANGES, ids=name_of)
async def test_a_change(operation: Operation, server: Guarded) -> None:
    api, scene, secrets = server
    path, body = scene.path(operation), scene.body(operation)
    actor = BOTH if operation.besides else "admin"
    reply = await api.ask(operation.method, path, body, **bearer(secrets[actor]))
    assert reply.status == operation.status
    (entry,) = (await api.world.run(api.world.ops.audit(100))).entries
    values = {
        "{task_id}": path.partition("?")[0].removesuffix("/retry").removesuffix("/replay"),
        "{worker_id}": scene.worker,
        "{queue}": "default",
        "{type}": "work",
        "{schedule_id}": SCHEDULE,
        "{workflow_id}": scene.workflow(operation),
    }
    found = [value for name, value in values.items() if name in operation.path]
    subject = found[0].removesuffix("/cancel").rpartition("/")[2] if found else ""
    if operation.path.endswith("/schedules"):
        subject = "intruder"  # which the body names
    assert (entry.actor, entry.action, entry.subject, entry.address) == (
        actor,
        operation.action,
        subject,
        "127.0.0.1",
    )
    detail = json.loads(entry.detail)
    assert {name: detail[name] for name in body or {}} == (body or {})


@pytest.mark.parametrize("operation", CHANGES, ids=name_of)
async def test_what_failed_is_not_told(operation: Operation, server: Guarded) -> None:
    api, scene, secrets = server
    path = scene.path(operation).partition("?")[0]
    admin = bearer(secrets["admin"])
    tries: list[tuple[str, Any, dict[str, str]]] = [
        (path, {"unknown": [1]}, bearer(secrets["read"])),
        (path, b"{", {}),
    ]
    if operation.body is not None:
        tries += [(path, b"{", admin), (path, {"unknown": [1]}, admin)]
    if operation.query is not None:
        tries.append((f"{path}?unknown=1", None, admin))
    if "{task_id}" in operation.path:
        unknown = path.replace(scene.waiting, scene.waiting[::-1]).replace(scene.dead, "x")
        tries.append((unknown.replace(scene.done, scene.done[::-1]), None, admin))
    for target, body, headers in tries:
        reply = await api.ask(operation.method, target, body, **headers)
        assert reply.status >= 400, (target, body)
    assert await audit_log(api.world) == []


async def test_the_log_over_http(server: Guarded) -> None:
    api, _, secrets = server
    admin = bearer(secrets["admin"])
    for queue in ("a", "b", "c"):
        assert (await api.ask("POST", f"/api/v1/queues/{queue}/pause", **admin)).status == 200
    first = told(await api.ask("GET", "/api/v1/audit?limit=2", **admin), 200)
    assert [each["subject"] for each in first["entries"]] == ["c", "b"]
    entry = first["entries"][0]
    assert entry | {"entry_id": "", "timestamp": ""} == {
        "entry_id": "",
        "timestamp": "",
        "actor": "admin",
        "action": "flow.pause",
        "subject": "c",
        "detail": {},
        "address": "127.0.0.1",
    }
    assert entry["timestamp"].endswith("Z")
    path = f"/api/v1/audit?limit=2&cursor={first['next_cursor']}"
    second = told(await api.ask("GET", path, **admin), 200)
    assert [each["subject"] for each in second["entries"]] == ["a"]
    assert second["next_cursor"] is None
    for query in ("limit=0", "limit=1001", "limit=x", "unknown=1"):
        refused(await api.ask("GET", f"/api/v1/audit?{query}", **admin), 422, "invalid_request")
    reply = await api.ask("GET", "/api/v1/audit?cursor=x", **admin)
    refused(reply, 400, "invalid_cursor")


async def test_without_tokens_it_was_anyone(api: Api) -> None:
    assert (await api.ask("POST", "/api/v1/queues/a/pause")).status == 200
    assert await audit_log(api.world) == [("anyone", "flow.pause", "a", "127.0.0.1")]


async def test_what_was_done_is_answered_even_if_it_cannot_be_told(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def record(*_: object) -> Op[None]:
        raise StoreUnavailable

    monkeypatch.setattr(api.world.ops, "record", record)
    assert (await api.ask("POST", "/api/v1/queues/a/pause")).status == 200
    assert "Not written to the audit log: anyone flow.pause" in caplog.text


async def test_a_submitter_cannot_push_out_what_others_did(
    server: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUDIT_ACTOR_ENTRIES", 3)
    api, _, secrets = server
    body = {"paused": True}
    reply = await api.ask("PATCH", "/api/v1/types/work", body, **bearer(secrets["admin"]))
    assert reply.status == 200
    for _ in range(10):
        one = {"task_type": "work", "parameters": {}}
        reply = await api.ask("POST", "/api/v1/tasks", one, **bearer(secrets["submit"]))
        path = f"/api/v1/tasks/{json.loads(reply.body)['task_id']}"
        assert (await api.ask("DELETE", path, **bearer(secrets["submit"]))).status == 200
    entries = (await api.world.run(api.world.ops.audit(100))).entries
    assert [each.actor for each in entries] == ["submit"] * 3 + ["admin"]
