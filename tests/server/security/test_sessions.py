"""How a browser signs in, stays in, and gets out."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from fairlane.core.tokens import digest_of
from fairlane.server.routes.session import SESSION_SECONDS
from tests.conftest import Servers
from tests.fixtures.stores import KINDS
from tests.server.http.kit import Reply
from tests.server.kit import Api, refused, told
from tests.server.security.kit import (
    EXPIRED,
    REVOKED,
    WRONG,
    Guarded,
    audit_log,
    bearer,
    guarded,
    new_token,
    snapshot,
    until,
)

TASK = {"task_type": "work", "parameters": {}}


class Browser:
    """Sends what a browser sends that has a page of this server open."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.cookie: str | None = None

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        sent = {} if self.cookie is None else {"cookie": f"theme=dark; {self.cookie}"}
        if method != "GET":
            sent["origin"] = f"http://127.0.0.1:{self.api.port}"
        reply = await self.api.ask(method, path, body, **{**sent, **headers})
        set_cookie = reply.headers.get("set-cookie")
        if set_cookie is not None:
            self.cookie = set_cookie.partition(";")[0]
        return reply

    async def sign_in(self, secret: str, **headers: str) -> Reply:
        return await self.ask("POST", "/auth/session", {"token": secret}, **headers)

    async def status(self, path: str = "/api/v1/queues") -> int:
        return (await self.ask("GET", path)).status

    @property
    def secret(self) -> str:
        assert self.cookie is not None
        return self.cookie.partition("=")[2]


async def shut_out(browser: Browser) -> None:
    """Wait until the server has noticed."""

    async def out() -> bool:
        return await browser.status() == 401

    await until(out)


async def test_signing_in_and_out(server: Guarded) -> None:
    browser = Browser(server.api)
    assert await browser.status() == 401
    assert told(await browser.ask("GET", "/auth/session"), 200) == {
        "required": True,
        "name": None,
        "scopes": [],
        "bound_to": None,
    }
    answer = told(await browser.sign_in(server.secrets["admin"]), 200)
    assert answer == {"required": True, "name": "admin", "scopes": ["admin"], "bound_to": None}
    assert told(await browser.ask("GET", "/auth/session"), 200) == answer
    assert await browser.status() == 200
    assert (await browser.ask("POST", "/api/v1/tasks", TASK)).status == 201
    secret = browser.secret
    signed_out = await browser.ask("DELETE", "/auth/session")
    assert signed_out.status == 204
    assert "content-length" not in signed_out.headers
    assert browser.cookie == "fairlane_session="
    assert "Max-Age=0;" in signed_out.headers["set-cookie"]
    browser.cookie = f"fairlane_session={secret}"
    assert await browser.status() == 401
    again = await browser.ask("DELETE", "/auth/session")
    assert again.status == 204
    log = [entry[:2] for entry in await audit_log(server.api.world)]
    assert log == [("admin", "session.create"), ("admin", "session.end")]


async def test_the_cookie(server: Guarded) -> None:
    browser = Browser(server.api)
    plain = (await browser.sign_in(server.secrets["read"])).headers["set-cookie"]
    parts = plain.split("; ")
    assert parts[1:] == ["Path=/", f"Max-Age={SESSION_SECONDS}", "HttpOnly", "SameSite=Strict"]
    # The session has a secret of its own, and not a weak one.
    assert browser.secret != server.secrets["read"]
    assert len(browser.secret) >= 32
    # Behind a proxy that has taken the TLS off, the page's own origin tells of it.
    host = "queue.example"
    safe = await browser.sign_in(server.secrets["read"], host=host, origin=f"https://{host}")
    assert safe.headers["set-cookie"].endswith("; SameSite=Strict; Secure")


async def test_a_session_has_no_more_scopes_than_its_token(server: Guarded) -> None:
    browser = Browser(server.api)
    await browser.sign_in(server.secrets["read"])
    assert await browser.status() == 200
    refused(await browser.ask("POST", "/api/v1/tasks", TASK), 403, "forbidden")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"authorization": "Basic eDp5"}, 403),
        ({"origin": "http://127.0.0.1:{port}"}, 201),
    ],
)
async def test_a_page_that_is_signed_in_says_where_it_is_from(
    server: Guarded, headers: dict[str, str], status: int
) -> None:
    api = server.api
    browser = Browser(api)
    await browser.sign_in(server.secrets["admin"])
    before = await snapshot(api.world)
    sent = {name: value.replace("{port}", str(api.port)) for name, value in headers.items()}
    assert browser.cookie is not None
    reply = await api.ask("POST", "/api/v1/tasks", TASK, cookie=browser.cookie, **sent)
    assert reply.status == status
    if status == 403:
        reply = await api.ask("DELETE", "/auth/session", cookie=browser.cookie, **sent)
        assert reply.status == 403
        assert await snapshot(api.world) == before
    else:
        assert await snapshot(api.world) != before


async def test_a_token_counts_more_than_a_cookie(server: Guarded) -> None:
    browser = Browser(server.api)
    await browser.sign_in(server.secrets["admin"])
    assert browser.cookie is not None
    read = bearer(server.secrets["read"])
    reply = await server.api.ask("POST", "/api/v1/tasks", TASK, cookie=browser.cookie, **read)
    refused(reply, 403, "forbidden")
    # A program that keeps cookies is no page: it shows its token.
    submit = bearer(server.secrets["submit"])
    reply = await server.api.ask("POST", "/api/v1/tasks", TASK, cookie=browser.cookie, **submit)
    assert reply.status == 201


@pytest.mark.parametrize("secret", [WRONG, "", "é" * 100, "\ud800", EXPIRED, REVOKED, "session"])
async def test_who_does_not_get_in(server: Guarded, secret: str) -> None:
    browser = Browser(server.api)
    await browser.sign_in(server.secrets["read"])
    session, browser.cookie = browser.secret, None
    before = await snapshot(server.api.world)
    given = session if secret == "session" else server.secrets.get(secret, secret)
    reply = await browser.sign_in(given)
    assert reply.status == (422 if secret == "\ud800" else 401)  # which is half a character
    assert browser.cookie is None
    assert await snapshot(server.api.world) == before


@pytest.mark.parametrize(
    "body", [{}, {"token": None}, {"token": ["x"]}, {"token": "x", "scopes": ["admin"]}, [], "x"]
)
async def test_what_is_no_sign_in(server: Guarded, body: Any) -> None:
    reply = await Browser(server.api).ask("POST", "/auth/session", body)
    refused(reply, 422, "invalid_request")
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_ends_with_its_token(kind: str, servers: Servers, tmp_path: Path) -> None:
    async with guarded(servers, tmp_path, kind) as (api, _, _):
        token_id, secret = await new_token(api.world, "read")
        browser = Browser(api)
        assert (await browser.sign_in(secret)).status == 200
        assert await browser.status() == 200
        await api.world.run(api.world.ops.drop_token(token_id))
        await shut_out(browser)


async def test_a_session_has_an_end(server: Guarded) -> None:
    browser = Browser(server.api)
    await browser.sign_in(server.secrets["read"])
    found = await server.api.world.run(server.api.world.ops.token(digest_of(browser.secret)))
    assert found is not None
    assert found.lifetime == SESSION_SECONDS
    assert await browser.status() == 200
    await server.api.world.advance(SESSION_SECONDS + 1)
    await shut_out(browser)


async def test_a_token_that_was_revoked_a_moment_ago(server: Guarded) -> None:
    world = server.api.world
    token_id, secret = await new_token(world, "read")
    reply = await server.api.ask("GET", "/api/v1/queues", **bearer(secret))
    assert reply.status == 200  # and is remembered
    await world.run(world.ops.drop_token(token_id))
    refused(await Browser(server.api).sign_in(secret), 401, "unauthorized")


async def test_guessing_is_limited(server: Guarded) -> None:
    browser = Browser(server.api)
    replies = [await browser.sign_in(WRONG) for _ in range(11)]
    assert [reply.status for reply in replies] == [401] * 10 + [429]
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 120
    # The right one is counted apart, so that nobody can shut out others behind the same proxy.
    replies = [await browser.sign_in(server.secrets["admin"]) for _ in range(11)]
    assert [reply.status for reply in replies] == [200] * 10 + [429]
    assert (await browser.sign_in(server.secrets["read"])).status == 200
    reply = await server.api.ask("GET", "/api/v1/queues", **bearer(server.secrets["read"]))
    assert reply.status == 200


async def test_pages_from_elsewhere_use_up_nobodys_tries(server: Guarded) -> None:
    browser = Browser(server.api)
    for _ in range(11):
        assert (await browser.sign_in(WRONG, origin="http://evil.example")).status == 403
    assert (await browser.sign_in(server.secrets["read"])).status == 200


async def test_secrets_are_told_to_nobody(
    server: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    api, _, secrets = server
    browser = Browser(api)
    replies = [await browser.sign_in(secrets["admin"])]
    session = browser.secret
    replies += [
        await browser.ask("GET", "/auth/session"),
        await browser.ask("POST", f"/api/v1/tasks/{secrets['admin']}/retry", {}),
        await browser.ask("GET", f"/{secrets['admin']}"),
        await browser.ask("GET", f"/api/v1/audit?{secrets['admin']}=1"),
        await browser.ask("POST", "/api/v1/control", {secrets["admin"]: True}),
        await browser.ask("POST", "/auth/session", {"token": {secrets["admin"]: 1}}),
        await browser.ask("GET", "/api/v1/audit"),
        await api.ask("GET", "/api/v1/queues", **bearer(secrets["admin"] + "x")),
        await browser.ask("DELETE", "/auth/session"),
    ]
    for secret in (secrets["admin"], session):
        assert secret not in caplog.text
        assert all(secret.encode() not in reply.body for reply in replies)
        assert secret not in repr(await snapshot(api.world))


async def test_without_tokens_nobody_signs_in(api: Api) -> None:
    browser = Browser(api)
    answer = told(await browser.ask("GET", "/auth/session"), 200)
    assert answer["required"] is False
    assert set(answer["scopes"]) == {"admin", "read", "submit", "worker"}
    refused(await browser.sign_in(WRONG), 401, "unauthorized")
