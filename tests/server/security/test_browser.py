"""A page from another origin reads nothing and changes nothing: in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page

from fairlane.server.requests import Receive, Scope
from fairlane.server.responses import Response, Send
from tests.conftest import Servers
from tests.fixtures.chromium import chromium
from tests.fixtures.stores import opened
from tests.server.http.kit import listening
from tests.server.kit import Api, serving
from tests.server.security.kit import new_token, scene, snapshot

ATTACK = (Path(__file__).parent / "attack.js").read_text()
HOSTS = ("127.0.0.1", "localhost", "evil.test")
"""Same site on another port, another name of this machine, and any name."""

pytestmark = pytest.mark.timeout(110)


@asynccontextmanager
async def lair() -> AsyncIterator[int]:
    """The port of a server that has an empty page at every address."""

    async def page(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            body = b"<!doctype html><title>evil</title><body>"
            await Response(body, kind=b"text/html", guards=()).send(send)

    async with listening(page) as port:
        yield port


async def signed_in(context: BrowserContext, url: str, secret: str) -> None:
    """Sign in as the dashboard does: from here on the browser has the cookie."""
    answer = await context.request.post(
        f"{url}/auth/session", data={"token": secret}, headers={"origin": url}
    )
    assert answer.status == 200
    (cookie,) = await context.cookies(url)
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (
        "fairlane_session",
        True,
        "Strict",
    )


async def attack(page: Page, origin: str, target: str) -> Any:
    await page.goto(origin)
    return await page.evaluate(ATTACK, target)


@pytest.mark.parametrize("tokens", [False, True], ids=["open", "signed in"])
async def test_pages_from_elsewhere(tokens: bool, servers: Servers, tmp_path: Path) -> None:
    async with (
        opened("sqlite-memory", servers, tmp_path) as world,
        lair() as port,
        chromium() as browser,
    ):
        await scene(world)
        secret = (await new_token(world, "admin", "worker"))[1] if tokens else ""
        async with serving(world) as api:
            context = await browser.new_context()
            url = f"http://127.0.0.1:{api.port}"
            if tokens:
                await signed_in(context, url, secret)
            before = await snapshot(world)
            for host in HOSTS:
                page = await context.new_page()
                assert await attack(page, f"http://{host}:{port}/", url) == {}, host
                assert await snapshot(world) == before, host
            await top_level(context, port, url)
            assert await snapshot(world) == before
            await context.close()
            await control(browser, api, secret)


async def top_level(context: BrowserContext, port: int, url: str) -> None:
    """Forms that take the whole window along."""
    for path in ("/api/v1/queues/default/pause", "/api/v1/tasks", "/auth/session"):
        page = await context.new_page()
        await page.goto(f"http://localhost:{port}/")
        form = f'<form method="POST" action="{url}{path}" enctype="text/plain"></form>'
        await page.set_content(form)
        async with page.expect_navigation() as navigation:
            await page.evaluate("document.forms[0].submit()")
        answer = await navigation.value
        assert answer is not None
        assert answer.status == 403
        await page.close()


async def control(browser: Any, api: Api, secret: str) -> None:
    """The same from our own origin gets in: the attack is one."""
    context = await browser.new_context(bypass_csp=True)
    url = f"http://127.0.0.1:{api.port}"
    if secret:
        await signed_in(context, url, secret)
    before = await snapshot(api.world)
    seen = await attack(await context.new_page(), f"{url}/docs", url)
    assert any(name.startswith("GET") and told.startswith("200") for name, told in seen.items())
    assert any(name.startswith("POST") and told.startswith("201") for name, told in seen.items())
    assert seen["WebSocket /ws"] == "open"
    assert await snapshot(api.world) != before
    await context.close()


LISTEN = """url => new Promise(done => {
  window.heard = [];
  const socket = new WebSocket(url);
  socket.onmessage = message => {
    const event = JSON.parse(message.data);
    window.heard.push(event.data?.task_id);
    if (event.type === "ready") done("ready");
  };
  socket.onclose = closed => done(closed.code);
})"""
REFUSED = 1006
"""All that a page is told of a handshake that failed."""


@pytest.mark.parametrize("tokens", [False, True], ids=["open", "signed in"])
async def test_live_events_are_for_our_own_pages(tokens: bool, api: Api) -> None:
    url = f"http://127.0.0.1:{api.port}"
    async with lair() as port, chromium() as browser:
        context = await browser.new_context(bypass_csp=True)  # that page connects to nobody itself
        if tokens:
            await signed_in(context, url, (await new_token(api.world, "read"))[1])
        ours, theirs = await context.new_page(), await context.new_page()
        await ours.goto(f"{url}/docs")
        assert await ours.evaluate(LISTEN, f"ws://127.0.0.1:{api.port}/ws") == "ready"
        task_id = await api.world.submit()
        await ours.wait_for_function("id => window.heard.includes(id)", arg=task_id)
        for host in HOSTS:
            await theirs.goto(f"http://{host}:{port}/")
            assert await theirs.evaluate(LISTEN, f"ws://127.0.0.1:{api.port}/ws") == REFUSED
            assert await theirs.evaluate("window.heard") == []
        assert api.services.hub.listening == 1


async def test_a_page_that_got_hold_of_a_name_for_this_address(api: Api) -> None:
    # DNS rebinding: to the browser it is all one origin.
    async with chromium() as browser:
        page = await (await browser.new_context(bypass_csp=True)).new_page()
        url = f"http://rebound.test:{api.port}"
        before = await snapshot(api.world)
        answer = await page.goto(f"{url}/docs")
        assert answer is not None
        assert answer.status == 421
        seen = await page.evaluate(ATTACK, url)
        told = {name: text for name, text in seen.items() if not text.startswith("421 ")}
        frames = {name: text for name, text in told.items() if "wrong_host" not in text}
        assert frames == {}
        assert await snapshot(api.world) == before
