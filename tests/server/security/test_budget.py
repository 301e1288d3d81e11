"""No legal request holds the event loop for more than 50 ms, or takes more than three times its
size in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.sync.client import connect

from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.filters import EVERYTHING
from fairlane.core.ids import new_id
from fairlane.core.model import Claimed, NewWorker, TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.sealing import Key
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.engines.compression.operations import compressing_operations
from fairlane.engines.sealing.operations import sealing_operations
from fairlane.server.auth import ANYONE
from fairlane.server.http.limits import ConnectionLimits
from fairlane.server.large_bodies import list_body
from fairlane.server.operations import BATCH_BYTES, Operation
from fairlane.server.routes import OPERATIONS
from fairlane.server.routes.tasks_submit import OPTIONS_BYTES
from fairlane.server.workers import new_worker_id
from fairlane.wire.worker_protocol import MOST_AT_ONCE
from tests.conftest import Servers
from tests.fixtures.stores import World, opened
from tests.server.kit import Api, serving
from tests.server.security.budget import (
    CONSTANT,
    HELD_SECONDS,
    MEBIBYTE,
    OBJECTS,
    SHAPES,
    allocating,
    asking,
    check,
    cost_of,
    cost_of_call,
    filled,
    joined,
    time_of_call,
    without_the_rest,
)
from tests.server.security.kit import Scene, name_of, scene

ROOM = BATCH_BYTES - 1024
WITH_BODY = {name_of(each): each for each in OPERATIONS if each.body is not None}
WITHOUT_BODY = {name_of(each): each for each in OPERATIONS if each.body is None}
ANY = set(range(200, 500))
"""A request that is refused must be cheap, too."""

NAMES = [f"name-{number:026}" for number in range(limits.WORKER_NAMES)]


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    with without_the_rest():
        yield


ENGINES = ["sqlite-memory", "postgres-newest", "redis"]


@pytest.fixture(params=ENGINES)
async def api(
    servers: Servers, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Api]:
    """A server on each engine: what drivers copy counts as well."""
    async with opened(request.param, servers, tmp_path) as world, serving(world) as found:
        yield found


def full_bodies(place: Scene) -> dict[str, Any]:
    """The largest bodies of operations that take many values, by path."""
    tags = {f"{number:0255}": "\u00e9" * 255 for number in range(limits.TAGS)}
    ids = [new_id() for _ in range(limits.SUBMIT_BATCH)]
    runs = [{"task_id": each, "attempt": 1} for each in ids[: limits.BATCH]]
    listed = [{"task_id": new_id(), "attempt": 2**31 - 1} for _ in range(MOST_AT_ONCE)]
    sweep = {"task_ids": ids[: limits.BATCH]}
    workers, tasks = "/internal/workers/{worker_id}", "/api/v1/tasks"
    long = "\u00e9" * limits.PROGRESS_CHARACTERS
    large = {"task_type": "t", "parameters": {"a": [[]] * 60_000}, "tags": tags}
    lists: dict[str, Any] = {"a": [[]] * 1_700}
    many = [
        {"schedule_id": each, "cron": "@daily", "task": {"task_type": "t", "parameters": lists}}
        for each in ids[: limits.SCHEDULE_PAGE]
    ]
    return {
        f"{tasks}": {"task_type": "t", "tags": tags, "required_capabilities": NAMES[:64]},
        f"{tasks}/lookup": {"task_ids": ids},
        **{f"{tasks}/{verb}": sweep for verb in ("cancel", "replay", "retry", "delete")},
        "/api/v1/dlq/replay": {"type": NAMES, "queue": NAMES, "tags": tags},
        "/api/v1/schedules": {"schedule_id": "large", "cron": "@daily", "task": large},
        "/api/v1/schedules/{schedule_id}": {"task": large},
        "/internal/store/schedules": {"schedules": many},
        "/internal/workers/schedules": {"schedules": many, "owner": "shop"},
        "/api/v1/workflows": {
            "tasks": [
                {"node": name, "task_type": "t", "after": NAMES[: place % 100]}
                for place, name in enumerate(NAMES[: limits.WORKFLOW_NODES])
            ]
        },
        "/internal/workers/register": {"capabilities": NAMES},
        "/internal/workers/completions": {"types": NAMES[: limits.BATCH], "queues": NAMES},
        "/internal/workers/definitions": {
            "definitions": [
                {"type": name, "tags": {"a": "b"}, "parameters": {"a": [[]] * 500}}
                for name in NAMES[: limits.BATCH]
            ]
        },
        f"{workers}/poll": {"capabilities": NAMES},
        f"{workers}/claim": {"request_id": "r", "types": NAMES},
        f"{workers}/heartbeat": {"tasks": listed, "health": {"a": [1e300] * 500}},
        f"{workers}/pulse": {"tasks": listed, "health": {"a": [[]] * 1_000}},
        f"{workers}/starts": {"starts": runs},
        f"{workers}/disown": {"runs": runs},
        f"{workers}/reports": {"reports": [{**run, "status_message": long} for run in runs]},
        f"{workers}/result": {
            "task_id": place.held,
            "attempt": 7,
            "status": "failed",
            "error": {"message": "\u00e9" * 400_000, "details": [[]] * 100_000},
        },
    }


BUILDING = {"/internal/workers/definitions"}
"""Paths of operations that build objects from what may be any JSON."""
TAKING_MANY = sorted(full_bodies(Scene("", "", "", "", "")))


async def test_every_operation_that_takes_many_values_is_tested_with_many() -> None:
    """See `check_lists`, too: what the other operations take cannot be many values."""
    plural = {each.path for each in OPERATIONS if "maxItems" in schema_of(each)}
    lists = {each.path for each in OPERATIONS if list_body(each.body) is not None}
    batches = {"/api/v1/tasks/batch", "/internal/workers/{worker_id}/results"}
    assert {each.path for each in OPERATIONS if each.most > 2 * MEBIBYTE} == batches
    assert plural | lists <= batches | set(TAKING_MANY)


def schema_of(operation: Operation) -> str:
    """The schema of a body as text."""
    if operation.body is None:
        return ""
    return json.dumps(msgspec.json.schema(operation.body))


@pytest.mark.parametrize("path", TAKING_MANY)
async def test_many_values(api: Api, path: str) -> None:
    place = await scene(api.world)
    (operation,) = [each for each in WITH_BODY.values() if each.path == path]
    body = json.dumps(full_bodies(place)[path], ensure_ascii=False).encode()
    assert len(body) <= operation.most
    cost = await cost_of(api, operation.method, place.path(operation), body, ANY)
    check(cost, len(body), path, OBJECTS if path in BUILDING else CONSTANT)


@pytest.mark.parametrize("name", WITH_BODY)
async def test_every_operation_with_the_largest_body(api: Api, name: str) -> None:
    place = await scene(api.world)
    operation = WITH_BODY[name]
    plain = json.dumps(place.body(operation)).encode()
    room = operation.most - len(plain) - 100
    deep = SHAPES["depth"]
    bodies = {
        "white space": plain[:-1] + b" " * room + plain[-1:],
        "an unknown field": b'{"unknown":' + filled("depth", room) + b"," + plain[1:],
        "not JSON": b'{"a":[' + b",".join([deep] * (room // (len(deep) + 1))),
        "not UTF-8": b'{"a":"' + "\U0001f600".encode() * (room // 4) + b'\xff"}',
    }
    for what, body in bodies.items():
        method, path = operation.method, place.path(operation)
        cost = await cost_of(api, method, path, body, ANY)
        check(cost, len(body), f"{name}, {what}")


@pytest.mark.parametrize("name", sorted(set(WITHOUT_BODY) - {"GET /api/v1/events"}))
async def test_every_operation_without_a_body(api: Api, name: str) -> None:
    place = await scene(api.world)
    operation = WITHOUT_BODY[name]
    path = place.path(operation)
    query = "&".join(f"tag={'n' * 100}{number}:{'v' * 200}" for number in range(90))
    for address in (path, f"{path}{'&' if '?' in path else '?'}{query}"):
        cost = await cost_of(api, operation.method, address, None, ANY)
        check(cost, len(address), name)


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_submission_with_keys(api: Api, shape: str) -> None:
    payload = filled(shape, limits.PAYLOAD_BYTES - 100)
    body = b'{"task_type":"t","idempotency_key":"k","unique":true,"parameters":%s}' % payload
    cost = await cost_of(api, "POST", "/api/v1/tasks", body, {200, 201})
    check(cost, len(body), f"a payload of {shape}", OBJECTS)


@pytest.mark.parametrize(
    ("shape", "size"), [("lists", 16_000), ("depth", limits.PAYLOAD_BYTES), ("wide", 16_000)]
)
async def test_batches_of_submissions(api: Api, shape: str, size: int) -> None:
    payload = filled(shape, size - 100)
    count = min(limits.SUBMIT_BATCH, ROOM // (size + 60))
    body = joined("tasks", [b'{"task_type":"t","parameters":%s}' % payload] * count)
    cost = await cost_of(api, "POST", "/api/v1/tasks/batch", body, {201})
    check(cost, len(body), f"{count} payloads of {size} bytes, {shape}")


@pytest.mark.parametrize("field", ["idempotency_key", "unique"])
async def test_batches_with_keys(api: Api, field: str) -> None:
    """Keys are checked in the same transaction, by further statements."""
    tasks = [
        b'{"task_type":"t","%s":%s,"parameters":{"n":%d,"a":"%s"}}'
        % (field.encode(), b"true" if field == "unique" else b'"%d"' % n, n, b"x" * 15_000)
        for n in range(limits.SUBMIT_BATCH)
    ]
    body = joined("tasks", tasks)
    cost = await cost_of(api, "POST", "/api/v1/tasks/batch", body, {201})
    check(cost, len(body), f"tasks with {field}")


@pytest.mark.parametrize("character", ["a", "\U0001f600"])
async def test_batches_with_tags(api: Api, character: str) -> None:
    """A text with one such character takes four bytes for each."""
    texts = [(f"{character}{n:03}" + "k" * 120, f"{character}" + "v" * 120) for n in range(60)]
    task = {"task_type": "t", "tags": dict(texts)}
    count = OPTIONS_BYTES // len(json.dumps(task, ensure_ascii=False).encode()) - 1
    tasks = [{**task, "tags": {**dict(texts), "n": str(n)}} for n in range(count)]
    encoded = [json.dumps(each, ensure_ascii=False).encode() for each in tasks]
    body = joined("tasks", encoded)
    assert len(body) > 0.95 * OPTIONS_BYTES
    cost = await cost_of(api, "POST", "/api/v1/tasks/batch", body, {201})
    check(cost, len(body), f"{count} tasks with tags", OBJECTS)
    short = json.dumps({"task_type": "t", "tags": {f"k{n}": "v" for n in range(limits.TAGS)}})
    body = joined("tasks", [short.encode()] * limits.SUBMIT_BATCH)
    cost = await cost_of(api, "POST", "/api/v1/tasks/batch", body, {201})
    check(cost, len(body), "tasks with short tags", OBJECTS)


@pytest.mark.parametrize("kind", ENGINES)
async def test_batches_that_are_sealed(servers: Servers, tmp_path: Path, kind: str) -> None:
    """Sealed payloads are a third larger."""
    async with opened(kind, servers, tmp_path) as store:
        ops = sealing_operations(store.ops, (Key("k1", b"1" * 32),))
        world = World(Backend(ops, store.backend.driver), store.url, {})
        async with serving(world) as api:
            task = b'{"task_type":"t","parameters":%s}' % filled("texts", 15_000)
            body = joined("tasks", [task] * limits.SUBMIT_BATCH)
            cost = await cost_of(api, "POST", "/api/v1/tasks/batch", body, {201})
            check(cost, len(body), "sealed payloads")
            await run_results(api, b"completed", b'"result":' + filled("lists", 32_000))


async def test_batches_of_errors(api: Api) -> None:
    message, traceback = "\U0001f600" + "m" * 9_000, "\U0001f600" + "t" * 22_000
    error = {"message": message, "traceback": traceback}
    text = json.dumps(error, ensure_ascii=False).encode()
    await run_results(api, b"failed", b'"error":' + text)


async def test_batches_of_results_of_held_tasks(api: Api) -> None:
    await run_results(api, b"completed", b'"result":' + filled("wide", 32_000))


async def run_results(api: Api, status: bytes, ended: bytes) -> None:
    """Report a batch of results of tasks that the worker holds, which are stored."""
    world, count = api.world, 480
    worker = new_worker_id(ANYONE)
    await world.run(world.ops.register(NewWorker(worker)))
    await world.submit_all([new_task("held") for _ in range(2 * count)])
    path = f"/internal/workers/{worker}/results"

    def body_of(claimed: Sequence[Claimed]) -> bytes:
        head = b'{"task_id":"%s","attempt":%d,"status":"%s",'
        heads = [head % (each.task_id.encode(), each.attempt, status) for each in claimed]
        return joined("results", [each + ended + b"}" for each in heads])

    types = frozenset({"held"})
    body = body_of(await world.claim(worker, count, types=types))
    timed = await time_of_call(asking(api, "POST", path, body, {200}))
    body = body_of(await world.claim(worker, count, types=types))
    with allocating(timed):
        await asyncio.to_thread(asking(api, "POST", path, body, {200}))
    check(timed, len(body), f"{count} results that are stored")
    assert len(body) > 0.85 * ROOM
    assert (await world.census()).get(State.EXECUTING) is None


@pytest.mark.parametrize(
    ("shape", "size"), [("lists", 32_000), ("depth", limits.RESULT_BYTES), ("wide", 32_000)]
)
async def test_batches_of_results(api: Api, shape: str, size: int) -> None:
    place = await scene(api.world)
    result = filled(shape, size)
    head = b'{"task_id":"%s","attempt":1,"status":"completed","result":'
    count = min(limits.BATCH, ROOM // (size + 150))
    items = [head % new_id().encode() + result + b"}" for _ in range(count)]
    body = joined("results", items)
    path = f"/internal/workers/{place.worker}/results"
    cost = await cost_of(api, "POST", path, body, {200})
    check(cost, len(body), f"{count} results of {size} bytes, {shape}")


async def test_pages_of_large_tasks(api: Api) -> None:
    world = api.world
    worker = await world.worker()
    for _ in range(10):
        large = {"data": "x" * 250_000}
        await world.submit_all([new_task("t", large, max_retries=0) for _ in range(12)])
        for claimed in await world.claim(worker, 12):
            await world.settle(claimed, Failed(TaskError("broken", traceback="t" * 40_000)))
    ids = (await world.run(world.ops.find(EVERYTHING, 1_000))).task_ids
    assert len(ids) == 120
    for method, path, body in (
        ("GET", "/api/v1/tasks?limit=1000", None),
        ("GET", "/api/v1/dlq?limit=1000", None),
        ("GET", "/api/v1/tasks/summaries?limit=1000", None),
        ("GET", "/api/v1/dlq/analysis", None),
        ("POST", "/api/v1/tasks/lookup", json.dumps({"task_ids": ids}).encode()),
    ):
        cost = await cost_of(api, method, path, body, {200})
        # What is read, the response, and its copies on the way out.
        check(cost, 2 * limits.PAGE_BYTES, path)


@pytest.mark.parametrize("kind", ["postgres-newest", "redis"])
async def test_large_batches_on_other_engines(servers: Servers, tmp_path: Path, kind: str) -> None:
    """What an engine does with a batch holds the loop no longer, either. (On SQLite, as in all
    other tests here, that is done in a thread.)"""
    async with opened(kind, servers, tmp_path) as world, serving(world) as api:
        payload = filled("wide", 15_000)
        tasks = [b'{"task_type":"t","queue":"q","parameters":%s}' % payload] * 1_000
        path = "/api/v1/tasks/batch"
        cost = await time_of_call(asking(api, "POST", path, joined("tasks", tasks), {201}))
        assert cost.held < HELD_SECONDS
        worker = new_worker_id(ANYONE)
        await world.run(world.ops.register(NewWorker(worker)))
        claimed = await world.claim(worker, 480)
        head = b'{"task_id":"%s","attempt":%d,"status":"completed","result":'
        result = filled("lists", 32_000) + b"}"
        results = [head % (each.task_id.encode(), each.attempt) + result for each in claimed]
        path = f"/internal/workers/{worker}/results"
        cost = await time_of_call(asking(api, "POST", path, joined("results", results), {200}))
        assert cost.held < HELD_SECONDS
        path = "/api/v1/tasks?limit=1000"
        cost = await time_of_call(asking(api, "GET", path, None, {200}))
        assert cost.held < HELD_SECONDS
        assert (await world.census())[State.COMPLETED] == len(claimed)


@pytest.mark.parametrize("kind", ["postgres-newest", "redis"])
@pytest.mark.parametrize("keys", [(), (Key("k1", b"1" * 32),)], ids=["plain", "sealed"])
async def test_pages_of_compressed_results(
    servers: Servers, tmp_path: Path, kind: str, keys: tuple[Key, ...]
) -> None:
    """They are expanded and checked by the engine: a thousandth of their size is stored."""
    async with opened(kind, servers, tmp_path) as store:
        ops = sealing_operations(store.ops, keys) if keys else store.ops
        backend = Backend(compressing_operations(ops, 1_000), store.backend.driver)
        world = World(backend, store.url, {})
        worker = await world.worker()
        result = Completed(filled("lists", limits.RESULT_BYTES))
        await world.submit_all([new_task("t") for _ in range(20)])
        for claimed in await world.claim(worker, 20):
            await world.settle(claimed, result)
        async with serving(world) as api:
            cost = await cost_of(api, "GET", "/api/v1/tasks?limit=100", None, {200})
            assert cost.held < HELD_SECONDS


MESSAGE_ROOM = ConnectionLimits().message_bytes - 100
MESSAGES = {
    "ids": json.dumps({"task_ids": [new_id() for _ in range(MESSAGE_ROOM // 40)]}),
    "names": json.dumps({"queues": [f"{n:x}" for n in range(MESSAGE_ROOM // 9)]}),
    "an unknown field": '{"a":' + filled("depth", MESSAGE_ROOM).decode() + "}",
    "not JSON": "[" * MESSAGE_ROOM,
    "wide": '"' + "\U0001f600" * (MESSAGE_ROOM // 4) + '"',
}


@pytest.mark.parametrize("what", MESSAGES)
async def test_messages_of_a_websocket(api: Api, what: str) -> None:
    message = MESSAGES[what]

    def converse() -> None:
        with connect(f"ws://127.0.0.1:{api.port}/ws", proxy=None) as socket:
            assert json.loads(socket.recv(timeout=60))["type"] == "ready"
            socket.send(message)
            assert json.loads(socket.recv(timeout=60))["type"] in {"ready", "error"}

    cost = await cost_of_call(converse)
    check(cost, len(message.encode()), f"a message: {what}")
