"""Definitions of types over HTTP: published by workers, used by submissions."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from fairlane.core.definitions import DefinitionPage, Published
from fairlane.server import templates
from fairlane.server.templates import Templates
from tests.server.kit import Api, refused, told

DEFINITIONS = "/api/v1/definitions"
TASKS = "/api/v1/tasks"
GREET: dict[str, Any] = {
    "type": "greet",
    "queue": "hello",
    "priority": "high",
    "max_retries": 5,
    "timeout_seconds": 30.0,
    "tags": {"team": "shop"},
    "parameters": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    },
    "description": "Greet somebody.",
    "source": "shop.greet, line 8",
}


async def publish(served: Api, *definitions: dict[str, Any]) -> None:
    body = {"definitions": list(definitions)}
    answer = told(await served.ask("POST", "/internal/workers/definitions", body), 200)
    assert answer["published"] == len(definitions)
    assert set(answer["changed"]) <= {each["type"] for each in definitions}
    assert answer.keys() == {"published", "changed"}


async def submitted(served: Api, **request: Any) -> dict[str, Any]:
    body = {"task_type": "greet", "parameters": {"name": "Ada"}, **request}
    task_id = told(await served.ask("POST", TASKS, body), 201)["task_id"]
    task: dict[str, Any] = await served.get(f"{TASKS}/{task_id}")
    return task


async def test_a_submission_gets_the_defaults_of_its_type(served: Api) -> None:
    await publish(served, GREET)
    task = await submitted(served)
    names = ("queue", "priority", "max_retries", "timeout_seconds", "tags")
    assert {name: task[name] for name in names} == {name: GREET[name] for name in names}
    batch = {"tasks": [{"type": "greet", "payload": {"name": "Ada"}}]}
    (item,) = told(await served.ask("POST", f"{TASKS}/batch", batch), 201)["tasks"]
    task = await served.get(f"{TASKS}/{item['task_id']}")
    assert (task["queue"], task["max_retries"]) == ("hello", 5)


async def test_what_is_said_wins(served: Api) -> None:
    await publish(served, GREET)
    task = await submitted(served, queue="q", priority=3, timeout_seconds=None, tags={})
    assert (task["queue"], task["priority"], task["max_retries"]) == ("q", 3, 5)
    assert (task["timeout_seconds"], task["tags"]) == (None, {})
    task = await submitted(served, priority="low", use_definition=False)
    assert (task["queue"], task["priority"], task["max_retries"]) == ("default", "low", 2)


async def test_arguments_that_do_not_fit_are_refused_by_name(served: Api) -> None:
    await publish(served, GREET)
    for parameters, name, said in (
        ({}, "name", "greet: `name` is missing."),
        ({"name": 5}, "name", "greet: `name` must be text, not a whole number."),
        ({"name": "a", "nam": 1}, "nam", "greet: There is no `nam`: there is `name`."),
    ):
        body = {"task_type": "greet", "parameters": parameters}
        answer = await served.ask("POST", TASKS, body)
        assert refused(answer, 422, "invalid_arguments") == {"parameter": name}
        assert json.loads(answer.body)["error"]["message"] == said
        batch = {"tasks": [{**body, "parameters": {"name": "a"}}, body]}
        details = refused(await served.ask("POST", f"{TASKS}/batch", batch), 422, "invalid_batch")
        (wrong,) = details["errors"]
        assert (wrong["index"], wrong["message"]) == (1, said)
        told(await served.ask("POST", TASKS, {**body, "use_definition": False}), 201)
    assert len((await served.get(TASKS))["tasks"]) == 3


async def test_what_is_published_can_be_read(served: Api) -> None:
    assert await served.get(DEFINITIONS) == {"definitions": [], "next_cursor": None}
    refused(await served.ask("GET", f"{DEFINITIONS}/greet"), 404, "type_not_found")
    refused(await served.ask("GET", "/api/v1/types/greet"), 404, "type_not_found")
    await publish(served, GREET)
    (found,) = (await served.get(DEFINITIONS))["definitions"]
    assert found == {**GREET, "version": 1, "published_at": found["published_at"]}
    assert await served.get(f"{DEFINITIONS}/greet") == found
    type = await served.get("/api/v1/types/greet")
    assert (type["type"], type["definition"]) == ("greet", found)
    assert type["by_status"]["queued"] == 0
    (listed,) = (await served.get("/api/v1/types"))["types"]
    assert listed["type"] == "greet"


async def test_many_are_read_in_pages(served: Api) -> None:
    types = [f"type:{number}" for number in range(5)]
    await publish(served, *({"type": type} for type in types))
    found: list[str] = []
    sizes = []
    cursor: str | None = ""
    while cursor is not None:
        more = f"&cursor={cursor}" if cursor else ""
        page = await served.get(f"{DEFINITIONS}?limit=2{more}")
        sizes.append(len(page["definitions"]))
        found += [each["type"] for each in page["definitions"]]
        cursor = page["next_cursor"]
    assert sizes == [2, 2, 1]
    assert sorted(found) == types
    for wrong in ("0", "101"):
        refused(await served.ask("GET", f"{DEFINITIONS}?limit={wrong}"), 422, "invalid_request")
    for wrong in ("x", "1:no name", "²:t"):
        path = f"{DEFINITIONS}?cursor={quote(wrong)}"
        refused(await served.ask("GET", path), 400, "invalid_cursor")


async def test_a_type_without_a_definition(served: Api) -> None:
    await served.submit()
    (listed,) = (await served.get("/api/v1/types"))["types"]
    type = await served.get(f"/api/v1/types/{listed['type']}")
    assert type == {**listed, "definition": None}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"type": "no name"}, "invalid_definition"),
        ({"type": "t", "queue": "no name"}, "invalid_queue"),
        ({"type": "t", "priority": 11}, "invalid_priority"),
        ({"type": "t", "max_retries": -1}, "invalid_max_retries"),
        ({"type": "t", "unknown": 1}, "invalid_request"),
        ({"queue": "q"}, "invalid_request"),
    ],
)
async def test_a_definition_that_cannot_be(served: Api, wrong: dict[str, Any], code: str) -> None:
    body = {"definitions": [GREET, wrong]}
    refused(await served.ask("POST", "/internal/workers/definitions", body), 422, code)
    assert (await served.get(DEFINITIONS))["definitions"] == []


async def test_a_submission_reads_the_definition_of_its_type_and_no_other(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be many, and large ones: who publishes them must not slow down submissions."""
    monkeypatch.setattr(templates, "KEPT", 2)
    await publish(served, GREET, *({"type": f"other-{number}"} for number in range(60)))
    read: list[str] = []

    async def find(type: str) -> Published | None:
        read.append(type)
        return await served.world.run(served.world.ops.definition(type))

    async def list_page(cursor: str | None, limit: int) -> DefinitionPage:
        read.append(f"page of {limit}")
        return await served.world.run(served.world.ops.definition_page(cursor, limit))

    clock = Clock()
    served.services.templates = Templates(find, list_page, clock)
    for _ in range(2):
        assert (await submitted(served))["queue"] == "hello"
        assert (await submitted(served, task_type="unknown"))["queue"] == "default"
    batch = {"tasks": [{"task_type": type} for type in ("a", "greet", "a", "unknown")]}
    batch["tasks"][1]["parameters"] = {"name": "Ada"}  # type: ignore[assignment]
    told(await served.ask("POST", f"{TASKS}/batch", batch), 201)
    assert read == ["greet", "unknown", "a", "greet", "unknown"]  # two are kept
    read.clear()
    await publish(served, {**GREET, "queue": "another"})
    assert (await submitted(served))["queue"] == "hello"
    clock.now += 2.1
    assert (await submitted(served))["queue"] == "another"
    assert (await submitted(served, use_definition=False))["queue"] == "default"
    body = {"task_type": "no name", "parameters": {}}
    refused(await served.ask("POST", TASKS, body), 422, "invalid_type")
    assert read == ["greet"]
    types = (await served.get("/api/v1/types"))["types"]
    assert len(types) == 60 + len({"greet", "unknown", "a"})
    assert read == ["greet", "page of 25", "page of 25", "page of 25"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_inputs_are_arguments_too(served: Api) -> None:
    await publish(served, GREET)
    parent = await served.submit()
    task = await submitted(served, parameters={}, inputs={"name": {"parents": [parent]}})
    assert task["inputs"]["name"]["parents"] == [parent]
    body = {"task_type": "greet", "parameters": {"name": "Ada"}}
    wrong = {**body, "inputs": {"nick": {"parents": [parent]}}}
    reply = await served.ask("POST", TASKS, wrong)
    refused(reply, 422, "invalid_arguments")
    assert b"There is no `nick`: there is `name`" in reply.body
