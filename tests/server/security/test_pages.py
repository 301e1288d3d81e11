"""What gives a page away that has no business here: its host name, its origin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from fairlane.server.auth import host_of
from fairlane.server.config import ServerConfig
from fairlane.server.routes import OPERATIONS
from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.server.kit import CALM, Api, refused, serving
from tests.server.security.kit import Scene, bearer, guarded, needing_a_scope, scene, snapshot

TASK = {"task_type": "work", "parameters": {}}
WRITES = [each for each in OPERATIONS if each.method != "GET"]


class Open:
    """A server without tokens."""

    def __init__(self, api: Api, found: Scene) -> None:
        self.api = api
        self.scene = found

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.api.port}"


@pytest.fixture
async def server(servers: Servers, tmp_path: Path) -> AsyncIterator[Open]:
    async with opened("sqlite-memory", servers, tmp_path) as world:
        found = await scene(world)
        async with serving(world) as api:
            yield Open(api, found)


FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "https://127.0.0.1"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "http://localhost:{port}"},
    {"origin": "http://127.0.0.1:{port}.evil.example"},
    {"origin": "http://evil.example/127.0.0.1:{port}"},
    {"origin": "http://evil@127.0.0.1:{port}"},
    {"origin": "127.0.0.1:{port}"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "file://"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=lambda each: " ".join(each.values()))
async def test_pages_from_elsewhere_write_nothing(server: Open, headers: dict[str, str]) -> None:
    api = server.api
    sent = {name: value.replace("{port}", str(api.port)) for name, value in headers.items()}
    before = await snapshot(api.world)
    for operation in WRITES:
        path, body = server.scene.path(operation), server.scene.body(operation)
        refused(await api.ask(operation.method, path, body, **sent), 403, "forbidden")
    for method in ("PUT", "TRACE"):
        assert (await api.ask(method, "/api/v1/tasks", **sent)).status == 403
    assert await snapshot(api.world) == before


async def test_pages_from_elsewhere_read_nothing(server: Open) -> None:
    # What they can have anyway is an answer that their browser keeps from them.
    for operation in needing_a_scope(OPERATIONS):
        if operation.method == "GET":
            path = server.scene.path(operation)
            for headers in (
                {"origin": "http://evil.example"},
                {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
                {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
            ):
                reply = await server.api.ask("GET", path, **headers)
                refused(reply, 403, "forbidden")
                assert "access-control-allow-origin" not in reply.headers


OURS = [
    {},
    {"origin": "http://{host}"},
    {"origin": "https://{host}"},
    {"origin": "http://{host}", "sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "none"},
]


@pytest.mark.parametrize("headers", OURS, ids=lambda each: " ".join(each.values()))
async def test_our_pages_and_programs_do(server: Open, headers: dict[str, str]) -> None:
    sent = {name: value.replace("{host}", server.host) for name, value in headers.items()}
    assert (await server.api.ask("POST", "/api/v1/tasks", TASK, **sent)).status == 201
    assert (await server.api.ask("GET", "/api/v1/queues", **sent)).status == 200


async def test_a_link_from_elsewhere_leads_here(server: Open) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    reply = await server.api.ask("GET", "/docs", **link)
    assert reply.status == 200
    assert reply.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]


# -- host names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil.example",
        "localhost:{port}:{port}",
        "user@localhost",
        "",
        "*",
        "0.0.0.0:{port}",
        "[::]:{port}",
        "2130706433",
        "127.1",
        "\xe9vil",
    ],
)
async def test_names_that_are_not_ours(server: Open, host: str) -> None:
    # As by DNS rebinding: the page's own name leads here, so that its origin is no help.
    host = host.replace("{port}", str(server.api.port))
    before = await snapshot(server.api.world)
    for headers in ({}, {"origin": f"http://{host}"}, {"sec-fetch-site": "same-origin"}):
        for operation in OPERATIONS:
            reply = await server.api.ask(
                operation.method,
                server.scene.path(operation),
                server.scene.body(operation),
                host=host,
                **headers,
            )
            if operation.scopes or operation.method != "GET":
                assert reply.status in ({421} if host else {403, 421}), operation.path
        assert (await server.api.ask("GET", "/healthz", host=host, **headers)).status == 200
        assert (await server.api.ask("GET", "/nothing", host=host)).status == 421
    assert await snapshot(server.api.world) == before


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:{port}"]
)
async def test_names_of_this_machine(server: Open, host: str) -> None:
    host = host.replace("{port}", str(server.api.port))
    origin = f"http://{host}"
    assert (await server.api.ask("GET", "/api/v1/queues", host=host)).status == 200
    reply = await server.api.ask("POST", "/api/v1/tasks", TASK, host=host, origin=origin)
    assert reply.status == 201


@pytest.mark.parametrize(
    ("host", "name"),
    [
        (b"A.example", "a.example"),
        (b"a.example:80", "a.example"),
        (b"[::1]:80", "[::1]"),
        (b"[::1]", "[::1]"),
        (b"a:", "a:"),
        (b"a:b", "a:b"),
        (b"a:\xb2", "a:\xb2"),
    ],
)
def test_the_name_in_a_host_header(host: bytes, name: str) -> None:
    assert host_of({b"host": host}) == name


NAMED = msgspec.structs.replace(
    CALM,
    hosts=frozenset({"Queue.Example"}),
    origins=frozenset({"https://Admin.Example/"}),
)


async def test_names_that_were_allowed(servers: Servers, tmp_path: Path) -> None:
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world, NAMED) as api:
        for host, status in {
            "queue.example": 200,
            "QUEUE.example:8000": 200,
            "localhost": 421,
            "sub.queue.example": 421,
        }.items():
            assert (await api.ask("GET", "/api/v1/queues", host=host)).status == status
        for origin, status in {
            "https://admin.example": 201,
            "http://queue.example": 201,
            "http://admin.example": 403,
            "https://admin.example:444": 403,
            "*": 403,
        }.items():
            reply = await api.ask(
                "POST", "/api/v1/tasks", TASK, host="queue.example", origin=origin
            )
            assert reply.status == status, origin


async def test_any_name_if_that_is_said(servers: Servers, tmp_path: Path) -> None:
    config = ServerConfig(maintenance=False, hosts=frozenset({"*"}))
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world, config) as api:
        assert (await api.ask("GET", "/api/v1/queues", host="any.example")).status == 200


async def test_with_tokens(servers: Servers, tmp_path: Path) -> None:
    async with guarded(servers, tmp_path) as (api, _, secrets):
        admin = bearer(secrets["admin"])
        # Who has a token may call the server what they like,
        reply = await api.ask("GET", "/api/v1/queues", host="queue.example", **admin)
        assert reply.status == 200
        # but pages from elsewhere stay out, even with one.
        for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
            reply = await api.ask("POST", "/api/v1/tasks", TASK, **headers, **admin)
            refused(reply, 403, "forbidden")
            refused(await api.ask("GET", "/api/v1/tasks", **headers, **admin), 403, "forbidden")
    async with guarded(servers, tmp_path, config=NAMED) as (api, _, secrets):
        reply = await api.ask("GET", "/api/v1/queues", **bearer(secrets["admin"]))
        refused(reply, 421, "wrong_host")


async def test_no_answer_lets_others_in(server: Open) -> None:
    for method in ("GET", "OPTIONS"):
        for path in ("/healthz", "/docs", "/openapi.json", "/api/v1/queues", "/nothing"):
            reply = await server.api.ask(
                method,
                path,
                access_control_request_method="POST",
                access_control_request_headers="content-type",
            )
            assert not [name for name in reply.headers if name.startswith("access-control")]
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["cross-origin-resource-policy"] == "same-origin"
            assert reply.headers["cache-control"] == "no-store"
            assert "server" not in reply.headers
