"""RELIABILITY 4.d as a table: every row that a request can reach, and how it is answered.

Row 43 (the night on which the clock is set) is in `test_schedules`, 61 to 67 and 70 are about the
transport (see `http/`). Where that document and SPEC differ, SPEC stands: what is JSON but does not
fit is 422, not 400.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairlane.core import limits
from fairlane.core.filters import EVERYTHING
from fairlane.core.ids import new_id
from fairlane.server.config import ServerConfig
from fairlane.server.routes import OPERATIONS
from tests.conftest import Servers
from tests.fixtures.stores import World, opened
from tests.server.http.kit import Reply
from tests.server.kit import Api, refused, serving, told

ENGINES = ("sqlite-file", "postgres-newest", "redis")
TASKS = "/api/v1/tasks"
BATCH = f"{TASKS}/batch"
REGISTER = "/internal/workers/register"
JOURNAL = "/internal/store/events"


class Bad(NamedTuple):
    """A request, and the status it is refused with. `{worker}`, `{held}` (a task that worker runs)
    and `{done}` (one it has completed) stand for ids."""

    row: int
    status: int
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012 (nobody changes it)


def post(row: int, status: int, *bodies: Any, path: str = TASKS, **headers: str) -> Iterator[Bad]:
    for body in bodies:
        yield Bad(row, status, "POST", path, body, headers)


def field(row: int, name: str, *values: Any, status: int = 422) -> Iterator[Bad]:
    """A submission that would fit but for one field."""
    for value in values:
        encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
        yield from post(row, status, b'{"task_type":"a","%s":%s}' % (name.encode(), encoded))


def payload(row: int, status: int, *payloads: bytes) -> Iterator[Bad]:
    yield from field(row, "parameters", *payloads, status=status)


def get(row: int, status: int, *paths: str, **headers: str) -> Iterator[Bad]:
    for path in paths:
        yield Bad(row, status, "GET", path, None, headers)


def worker(row: int, status: int, call: str, *bodies: Any) -> Iterator[Bad]:
    yield from post(row, status, *bodies, path=f"/internal/workers/{{worker}}/{call}")


def rule(row: int, *rules: dict[str, Any]) -> Iterator[Bad]:
    """A schedule that would fit but for its rule."""
    for each in rules:
        body = {"schedule_id": "a", "task": {"task_type": "a"}, **each}
        yield from post(row, 422, body, path="/api/v1/schedules")


FITS = b'{"task_type":"a"}'
DEEP = b'{"a":'
HELD: dict[str, Any] = {"task_id": "{held}", "status": "completed"}
DONE: dict[str, Any] = {"task_id": "{done}", "status": "completed", "result": 1}

TABLE: list[Bad] = [
    # Syntax and encoding.
    *post(1, 400, b""),
    *post(2, 400, b"{"),
    *post(3, 400, b'{"task_type":"a",}', b'{"task_type":"a","parameters":{"a":[1,]}}'),
    *post(4, 400, FITS + FITS, FITS + b" x"),
    *post(5, 400, b"\xef\xbb\xbf" + FITS),
    *post(6, 400, FITS.decode().encode("utf-16"), FITS.decode().encode("utf-16-le")),
    *post(7, 400, b'{"task_type":"\xff"}'),
    *payload(7, 400, b'{"a":"\xff"}', b'{"\xff":1}'),
    *payload(8, 400, b'{"a":"\xc0\x80"}'),
    *payload(9, 400, b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}'),
    *field(9, "delay_seconds", b"NaN", status=400),
    *payload(10, 422, b'{"a":1e400}', b'{"a":-1e400}'),  # it is JSON; 400 in RELIABILITY
    *field(10, "delay_seconds", b"1e400"),
    *payload(11, 422, b'{"a":%s}' % (b"1" * 4_301)),  # the same
    *field(11, "max_retries", b"1" * 4_301),
    *payload(13, 422, DEEP * 101 + b"1" + b"}" * 101, DEEP * 5_000 + b"1" + b"}" * 5_000),
    *payload(13, 422, b"[" * 1_000_000 + b"]" * 1_000_000),
    *payload(13, 413, DEEP * 1_000_000 + b"1" + b"}" * 1_000_000),
    *payload(15, 422, b'{"a":"\\ud800"}', b'{"\\ud800":1}', b'{"a":"\\udc00x"}'),
    *post(15, 422, b'{"task_type":"\\ud800"}'),
    *field(17, "queue", "\0"),
    *field(17, "idempotency_key", "\0"),
    *field(17, "tags", {"\0": "a"}, {"a": "\0"}),
    *post(18, 422, b"[]", b'"a"', b"null", b"1"),
    *payload(18, 422, b"[]", b'"a"', b"null", b"1"),
    *payload(19, 413, b'{"%s":1}' % (b"k" * 1_000_000)),
    *payload(20, 413, b'{"a":[%s]}' % b",".join([b"{}"] * 1_000_000)),
    *payload(
        18, 422, b'{"$sealed":"k1.12345678.AAAA"}', b'{"$sealed":"k1.12345678.%b"}' % (b"A" * 40)
    ),
    # Types and ranges.
    *field(22, "priority", "5", 5.5, b"true", None, 2**31, -(2**31) - 1, "urgent", 11),
    *field(23, "delay_seconds", -1, 1e18, "10"),
    *field(24, "max_retries", -1, 2**31, 1.5),
    *post(24, 400, {"type": "a", "payload": {}, "options": {"maxAttempts": 0}}, path="/api/tasks"),
    *field(25, "timeout_seconds", 0, -1, 1e12),
    *post(26, 422, {"tasks": []}, {"tasks": [{"task_type": "a"}] * 1_001}, path=BATCH),
    *get(27, 422, *(f"{TASKS}?limit={each}" for each in ("0", "-1", 10**9, "x", "1.5", ""))),
    *get(28, 400, *(f"{TASKS}?cursor={each}" for each in ("", "forged", "t", "%00", "x" * 5_000))),
    *get(28, 400, "/api/v1/dlq?cursor=forged", "/api/v1/audit?cursor=forged"),
    *get(27, 422, *(f"{JOURNAL}?limit={each}" for each in ("0", "-1", 10**9, "x", ""))),
    *get(28, 400, *(f"{JOURNAL}?cursor={each}" for each in ("", "forged", "%00", "9" * 5_000))),
    *field(29, "unknown", 1),
    *post(29, 422, {"paused": True, "unknown": 1}, path="/api/v1/control"),
    *get(29, 422, f"{TASKS}?unknown=1"),
    *post(30, 422, b"{}", b'{"parameters":{}}'),
    *worker(30, 422, "result", {}, {"task_id": "{held}"}),
    *field(31, "tags", {str(n): "" for n in range(1_000)}, {"a": {"b": "c"}}, {"a": 1}, ["a"]),
    *post(32, 422, *({"heartbeat_interval_ms": n} for n in (0, -1, 10**12)), path=REGISTER),
    *worker(33, 422, "poll", *({"available_capacity": n} for n in (0, -1, 10**6, "1"))),
    *post(
        33,
        422,
        *({}, {"types": "a"}, {"types": [1]}, {"types": [""]}, {"types": ["a"] * 501}),
        *({"types": [], "queues": queues} for queues in ("a", [""], [1])),
        path="/internal/workers/completions",
    ),
    *worker(34, 422, "poll", {"wait_seconds": -1}, {"wait_seconds": "1"}),
    *get(34, 422, f"{TASKS}/{{held}}/result?wait=-1", f"{TASKS}/{{held}}/result?wait=nan"),
    # Times.
    *field(35, "run_at", "2090-01-01T00:00:00"),
    *field(36, "run_at", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "-1-01-01T00:00:00Z"),
    *field(37, "run_at", "2026-02-30T00:00:00Z", "2026-01-01T24:00:01Z", "2026-01-01T00:00:60Z"),
    *field(38, "run_at", "2026-01-01T00:00:00+25:00"),
    *get(38, 422, f"{TASKS}?since=2026-01-01", f"{TASKS}?since=0.5", f"{TASKS}?since=1700000000"),
    *rule(41, {"cron": "@daily", "tz": "Mars/Base"}, {"cron": "@daily", "tz": "../../etc/passwd"}),
    *rule(42, *({"cron": each} for each in ("60 * * * *", "* * * *", "*/0 * * * *", "x" * 10_240))),
    *rule(42, {"cron": "0 0 30 2 *"}, {"cron": "0 0 * * * *"}, {"every_seconds": 0}, {}),
    # Identity.
    *get(44, 404, *(f"{TASKS}/{each}" for each in ("", "..", "%00", "x" * 10_240, "%2e%2e"))),
    *get(44, 404, f"{TASKS}/{new_id().upper()}", f"{TASKS}/{{HELD}}", "/api/tasks/{HELD}"),
    *field(47, "idempotency_key", "", "x" * 256, "a\nb"),
    *post(47, 422, FITS, idempotency_key="x" * 256),
    # The worker protocol.
    *worker(49, 409, "result", {**DONE, "status": "failed"}),
    *worker(50, 409, "result", {**HELD, "attempt": 2}, {**HELD, "task_id": "{other}"}),
    *worker(50, 422, "result", {**HELD, "attempt": "1"}, {**HELD, "attempt": 0}),
    *worker(50, 404, "result", {**HELD, "task_id": "x"}, {**HELD, "task_id": new_id()}),
    *worker(51, 409, "start", {"task_id": "{done}"}),
    *worker(51, 409, "progress", {"task_id": "{done}", "progress_percent": 5}),
    *worker(53, 413, "result", {**HELD, "result": "x" * (limits.RESULT_BYTES - 1)}),
    *worker(54, 400, "result", b'{"task_id":"{held}","status":"completed","result":{'),
    *worker(54, 400, "result", b'{"task_id":"{held}","status":"completed","result":"\xff"}'),
    # Whoever is not known is told to register anew, whatever he calls himself: 422 in RELIABILITY.
    *post(56, 409, {}, path=f"/internal/workers/{'x' * 10_240}/poll"),
    *post(56, 409, {}, path="/internal/workers/a%00%0ab/heartbeat"),
    *post(56, 422, {"host": "a\nb"}, {"version": "x" * 10_240}, path=REGISTER),
    Bad(57, 409, "DELETE", f"{TASKS}/{{done}}"),
    # HTTP.
    Bad(58, 405, "PUT", TASKS, {}),
    Bad(58, 405, "PATCH", f"{TASKS}/{{held}}", {}),
    Bad(58, 405, "DELETE", "/healthz"),
    *get(58, 405, REGISTER),
    *get(
        59,
        404,
        "/assets/x/main.js",
        "/nowhere",
        "/api",
        "/api/v2/tasks",
        f"{TASKS}/{{held}}/nothing",
        "/API/v1",
    ),
    *post(60, 415, FITS, content_type="text/plain"),
    *post(60, 415, FITS, content_type=""),
    *post(60, 415, FITS, content_type="multipart/form-data; boundary=x"),
    *get(68, 404, "//evil", "/api/../admin", "/api/%2e%2e/", f"{TASKS};x", f"{TASKS}/", "/docs/"),
    *get(68, 421, "http://evil/api/v1/tasks"),
    *get(69, 421, TASKS, host="evil"),
    *post(69, 421, FITS, host="evil"),
    *get(72, 422, f"{TASKS}?{'&'.join(f'a{n}=1' for n in range(1_000))}"),
    *get(72, 422, f"{TASKS}?limit=1&limit=2", f"{TASKS}?limit[]=1", f"{TASKS}?limit"),
]


class Stage:
    """A server with a worker that holds a task and has completed another one."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.ids: dict[str, str] = {}

    async def set(self) -> None:
        self.ids["worker"] = (await self.api.post(REGISTER))["worker_id"]
        for name in ("done", "held", "other"):
            self.ids[name] = await self.api.submit()
            if name != "other":
                await self.call("poll", {})
            if name == "done":
                told(await self.call("result", DONE), 200)
        self.ids["HELD"] = self.ids["held"].upper()

    async def call(self, name: str, body: Any) -> Reply:
        return await self.ask("POST", f"/internal/workers/{{worker}}/{name}", body)

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """A request with the ids in their places."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        for name, value in self.ids.items():
            path = path.replace(f"{{{name}}}", value)
            body = body and body.replace(b"{%s}" % name.encode(), value.encode())
        return await self.api.ask(method, path, body, **headers)

    def anonymous(self, reply: Reply) -> tuple[int, str]:
        """An answer without what differs from run to run."""
        text = reply.body.decode()
        for name, value in self.ids.items():
            text = text.replace(value, name)
        return reply.status, text


@asynccontextmanager
async def staged(kind: str, servers: Servers, folder: Path) -> AsyncIterator[Stage]:
    async with opened(kind, servers, folder) as world, serving(world) as api:
        stage = Stage(api)
        await stage.set()
        yield stage


async def stored(world: World) -> tuple[object, object, object]:
    """All there is, as far as requests could have changed it."""
    tasks = await world.run(world.ops.page(EVERYTHING, limits.PAGE))
    seen = [(task.task_id, task.status, task.version) for task in tasks.tasks]
    workers = [(each.worker_id, each.status) for each in await world.run(world.ops.workers())]
    return seen, workers, await world.census()


async def test_the_table(servers: Servers, tmp_path: Path) -> None:
    """Refused as the table says, by every engine in the same words; nothing is stored, and the
    connection goes on."""
    answers: dict[str, list[tuple[int, str]]] = {}
    for kind in ENGINES:
        async with staged(kind, servers, tmp_path) as stage:
            before = await stored(stage.api.world)
            answers[kind] = []
            for bad in TABLE:
                reply = await stage.ask(bad.method, bad.path, bad.body, **bad.headers)
                what = f"row {bad.row}: {bad.method} {bad.path[:80]} {str(bad.body)[:80]}"
                assert reply.status == bad.status, f"{what}: {reply.status} {reply.body!r}"
                assert reply.code, what
                assert "connection" not in reply.headers, what
                assert ("allow" in reply.headers) is (reply.status == 405), what
                assert await stored(stage.api.world) == before, what
                answers[kind].append(stage.anonymous(reply))
            assert await stage.api.get("/healthz") == {"status": "ok"}
            assert len(stage.api.clients) == 1
    first, *others = answers.values()
    assert all(each == first for each in others)


EXACT = [
    (12, b'{"a":9007199254740993,"b":9223372036854775808,"c":18446744073709551616}'),
    (14, b'{"a":1,"a":2}'),
    (16, b'{"a":"\\u0000"}'),
    (20, b'{"a":[%s]}' % b",".join([b"{}"] * 80_000)),
    (21, b'{"a":0.30000000000000004,"b":-0.0,"c":5e-324}'),
]


@pytest.mark.parametrize("kind", ENGINES)
async def test_what_is_strange_but_right_comes_back_exactly(
    kind: str, servers: Servers, tmp_path: Path
) -> None:
    async with staged(kind, servers, tmp_path) as stage:
        api = stage.api
        for row, sent in EXACT:
            body = b'{"task_type":"a","parameters":%s}' % sent
            task_id = (await api.post(TASKS, body, 201))["task_id"]
            shown = (await api.ask("GET", f"{TASKS}/{task_id}")).body
            assert b'"parameters":%s,' % sent in shown, f"row {row}"
        # 26: the largest batch. 39, 40: times long past, and far off.
        tasks = [{"task_type": "a"}] * 1_000
        assert len((await api.post(BATCH, {"tasks": tasks}, 201))["tasks"]) == 1_000
        for time, status in [("1970-01-01T00:00:00Z", "queued"), ("9999-12-31T23:59:59Z", None)]:
            answer = await api.post(TASKS, {"task_type": "a", "run_at": time}, 201)
            assert answer["status"] == (status or "scheduled")
        # 47: keys of one byte, of 255, and of one character beyond ASCII.
        for key in ("k", "x" * 255, "\N{GRINNING FACE}"):
            first = await api.post(TASKS, {"task_type": "a", "idempotency_key": key}, 201)
            header = key.encode().decode("latin-1")
            again = await api.post(TASKS, FITS, 200, idempotency_key=header)
            assert again["task_id"] == first["task_id"]


@pytest.mark.parametrize("kind", ENGINES)
async def test_the_protocol_said_twice(kind: str, servers: Servers, tmp_path: Path) -> None:
    """Rows 34, 46, 48 to 53, 55 and 57: where the order counts."""
    async with staged(kind, servers, tmp_path) as stage:
        api = stage.api
        # 48, 49, 52: a report may be repeated, but not changed.
        report = {**HELD, "result": {"n": 1}}
        for _ in range(2):
            answer = told(await stage.call("result", report), 200)
            assert answer == {"acknowledged": True, "status": "completed"}
        refused(await stage.call("result", {**HELD, "result": {"n": 2}}), 409, "lease_lost")
        fail = {**HELD, "status": "failed", "error": {"message": "no"}}
        refused(await stage.call("result", fail), 409, "lease_lost")
        # 34: more patience than there is. 53: a result of the limit.
        (task,) = told(await stage.call("poll", {"wait_seconds": 10**6}), 200)["tasks"]
        assert task["task_id"] == stage.ids["other"]
        largest = {**HELD, "task_id": "{other}", "result": "x" * (limits.RESULT_BYTES - 2)}
        told(await stage.call("result", largest), 200)
        path = f"{TASKS}/{{other}}/result?wait=1000000"
        assert len(told(await stage.ask("GET", path), 200)["result"]) == limits.RESULT_BYTES - 2
        # 52: failed, then completed.
        failing = await api.submit(max_retries=0)
        told(await stage.call("poll", {}), 200)
        told(await stage.call("result", {**fail, "task_id": failing}), 200)
        refused(await stage.call("result", {**HELD, "task_id": failing}), 409, "lease_lost")
        # 51: a heartbeat after completion is a sign of life and no more.
        assert told(await stage.call("heartbeat", {"current_load": 0}), 200)["cancelled"] == []
        # 55: a queue that is paused has nothing.
        waiting = await api.submit(queue="slow")
        await api.post("/api/v1/queues/slow/pause")
        assert told(await stage.call("poll", {}), 200) == {"tasks": []}
        # 57: cancelled twice.
        told(await api.ask("DELETE", f"{TASKS}/{waiting}"), 200)
        refused(await api.ask("DELETE", f"{TASKS}/{waiting}"), 409, "conflict")
        # 46: the same key for another task. 28: a cursor of something else.
        await api.post(TASKS, {"task_type": "a"}, 201, idempotency_key="k")
        other = await api.ask("POST", TASKS, {"task_type": "b"}, idempotency_key="k")
        refused(other, 422, "idempotency_conflict")
        page = await api.get("/api/v1/audit", limit=1)
        assert page["next_cursor"] is not None
        reply = await api.ask("GET", f"{TASKS}?cursor={page['next_cursor']}")
        refused(reply, 400, "invalid_cursor")


@pytest.mark.parametrize("kind", ENGINES)
async def test_one_key_many_times_at_once(kind: str, servers: Servers, tmp_path: Path) -> None:
    """Row 45."""
    async with staged(kind, servers, tmp_path) as stage:
        api = stage.api
        clients = [await api.connect() for _ in range(50)]
        request = api.request("POST", TASKS, FITS, idempotency_key="k")
        for client in clients:
            await client.send(request)
        replies = [await client.answer() for client in clients]
        statuses = [reply.status for reply in replies]
        assert sorted(statuses) == [200] * 49 + [201]
        assert len({json.loads(reply.body)["task_id"] for reply in replies}) == 1


async def test_head_and_options_of_every_route(api: Api) -> None:
    """Row 71: HEAD is GET without its body, or not there; OPTIONS are told by `Allow`."""
    for path in dict.fromkeys(each.path for each in OPERATIONS):
        methods = {each.method for each in OPERATIONS if each.path == path}
        address = path.replace("{task_id}", new_id()).replace("{", "").replace("}", "")
        reply = await api.ask("HEAD", address)
        if "GET" in methods:
            methods.add("HEAD")
            assert reply.status in {200, 404, 422}, path
            assert reply.status == (await api.ask("GET", address)).status
        else:
            assert reply.status == 405, path
        assert reply.body == b""
        options = await api.ask("OPTIONS", address)
        refused(options, 405, "method_not_allowed")
        assert options.headers["allow"] == ", ".join(sorted(methods))


async def test_a_token_that_is_not_even_text(servers: Servers, tmp_path: Path) -> None:
    """Row 73."""
    config = ServerConfig(tokens_required=True, maintenance=False)
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world, config) as api:
        for token in ("Bearer \xff", "Bearer \xe2\x98\x83", "\xff", "Bearer", "Basic eDp5"):
            refused(await api.ask("GET", TASKS, authorization=token), 401, "unauthorized")
            refused(await api.ask("POST", TASKS, FITS, authorization=token), 401, "unauthorized")
        assert await api.get("/healthz") == {"status": "ok"}
