"""What the server tells of itself: `/openapi.json`, and `/docs` as a browser shows it."""

from __future__ import annotations

import json
import re

import pytest
from openapi_spec_validator import validate

from fairlane.core.definitions import Definition
from fairlane.server.docs_page import page
from fairlane.server.openapi import name_of
from fairlane.server.routes import OPERATIONS
from tests.fixtures.chromium import chromium
from tests.server.kit import Api
from tests.server.security.kit import Guarded, bearer, new_token

pytestmark = pytest.mark.timeout(110)


async def test_the_description_is_valid_and_complete(api: Api) -> None:
    document = await api.get("/openapi.json")
    validate(document)
    described = {
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    }
    about = {"get_openapi_json", "get_docs", "get_", "get_assets_version_path_path"}
    assert described | about == {name_of(operation) for operation in OPERATIONS}
    for operation in OPERATIONS:
        if operation.path in document["paths"] and operation.scopes:
            found = document["paths"][operation.path][operation.method.lower()]
            assert found["security"] == [{"token": sorted(operation.scopes)}]
            assert found.get("x-further-scopes", []) == sorted(operation.besides)


async def test_the_page_needs_nothing_but_itself(api: Api) -> None:
    reply = await api.ask("GET", "/docs")
    policy = reply.headers["content-security-policy"]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; frame-ancestors 'none'", policy
    )
    assert b"<script" not in reply.body
    assert b"style=" not in reply.body
    assert b"://" not in reply.body.replace(b"http://127.0.0.1:8000", b"")


def test_all_text_is_shown_as_text() -> None:
    evil = "<img src=x onerror=alert(1)>\"'"
    operation = {
        "tags": [evil],
        "summary": evil,
        "description": f"More {evil}",
        "parameters": [
            {"name": evil, "required": False, "schema": {"anyOf": [{"enum": [evil]}]}},
            {"name": evil, "required": True, "schema": {"type": evil, "items": {"format": evil}}},
            {"name": evil, "required": True, "schema": {"$ref": f"#/components/schemas/{evil}"}},
        ],
        "responses": {"200": {"content": {evil: {"schema": {"properties": {evil: {}}}}}}},
    }
    document = {
        "info": {"title": evil, "version": evil},
        "paths": {f"/{evil}": {"get": operation}},
        "components": {"schemas": {evil: {"properties": {evil: {"type": evil}}}}},
    }
    shown = b"".join(page(json.loads(json.dumps(document)))).decode()
    assert "<img" not in shown
    assert shown.count("&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;") > 10


async def test_who_may_read_sees_the_tasks_and_nobody_else(server: Guarded) -> None:
    api = server.api
    await api.world.run(api.world.ops.publish([Definition(type="greet", description="Say hello.")]))
    assert (await api.ask("GET", "/docs")).status == 401
    assert (await api.ask("GET", "/docs", **bearer(server.secrets["submit"]))).status == 403
    page = (await api.ask("GET", "/docs", **bearer(server.secrets["read"]))).body.decode()
    assert "Say hello." in page
    assert "Authorization: Bearer $FAIRLANE_TOKEN" in page
    assert server.secrets["read"] not in page
    # A bound token may not list definitions over the API either.
    _, secret = await new_token(api.world, "read", "submit", name="acme", own=True)
    page = (await api.ask("GET", "/docs", **bearer(secret))).body.decode()
    assert "Say hello." not in page
    assert "GET /api/v1/definitions/{type}" in page


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_in_a_browser(api: Api, scheme: str) -> None:
    complaints: list[str] = []
    async with chromium() as browser:
        context = await browser.new_context(
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": 380, "height": 800},
        )
        shown = await context.new_page()
        shown.on("console", lambda message: complaints.append(message.text))
        shown.on("pageerror", lambda error: complaints.append(str(error)))
        shown.on("requestfailed", lambda request: complaints.append(request.url))
        await shown.goto(f"http://127.0.0.1:{api.port}/docs")
        await shown.click("summary >> nth=1")
        assert await shown.is_visible("details[open] pre")
        # The style sheet counts, and nothing is wider than a telephone.
        back = await shown.evaluate("getComputedStyle(document.documentElement).colorScheme")
        assert back == "light dark"
        assert await shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
        dead = await shown.evaluate(
            "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1))"
            ".filter(id => !document.getElementById(decodeURIComponent(id)))"
        )
        assert dead == []
    assert complaints == []
