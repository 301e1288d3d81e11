"""What a browser gets before it asks for anything: small, its own, kept for good, and strict."""

from __future__ import annotations

import asyncio
import gzip
import re
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Response, Route, expect
from starlette.applications import Starlette
from starlette.routing import Mount

from fairlane.dashboard.assets import FOLDER, KINDS
from fairlane.server import create_app, lifespan
from tests.conftest import Servers
from tests.dashboard.kit import PATIENCE_MS, Dashboard, Site, views
from tests.dashboard.scene import shipped
from tests.fixtures.serving import ROOT
from tests.fixtures.stores import opened
from tests.server.http.kit import Client, Reply, listening
from tests.server.kit import application

FIRST_VIEW_BYTES = 80_000
IN_TROUBLE = ["pages/overview/unserved.js"]
"""Loaded when tasks wait in vain only: see test_overview."""
FOR_GOOD = "public, max-age=31536000, immutable"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


async def fetched(site: Site, target: str, *headers: str) -> Reply:
    """The answer to exactly these bytes: no client of ours tidies the path."""
    client = Client(*await asyncio.open_connection("127.0.0.1", site.server.port))
    try:
        head = [f"GET {target} HTTP/1.1", f"host: 127.0.0.1:{site.server.port}", *headers, "", ""]
        return await client.ask("\r\n".join(head).encode())
    finally:
        await client.close()


async def base(site: Site) -> str:
    """The folder, by its digest, that the page names."""
    found = re.search(r'src="(assets/[0-9a-f]{16})/main.js"', (await shell(site)).body.decode())
    assert found is not None
    return f"/{found[1]}"


async def shell(site: Site) -> Reply:
    return await fetched(site, "/")


async def test_the_first_view_is_small_and_files_are_kept(dashboard: Dashboard) -> None:
    task_id = await dashboard.site.ran("greet")
    schedule_id = await dashboard.site.schedule("yearly")
    workflow_id = await shipped(dashboard.site)
    answers: list[Response] = []

    def heard(answer: Response) -> None:
        answers.append(answer)

    page = await dashboard.another()
    page.on("response", heard)
    await dashboard.visit(page)
    # The page and its files; how much it shows depends on what there is.
    code = [each for each in answers if "/api/" not in each.url]
    sizes = {each.url: (await each.request.sizes())["responseBodySize"] for each in code}
    assert sum(sizes.values()) < FIRST_VIEW_BYTES, sizes
    # Everything else comes with the page that needs it, and nothing lies there for nobody.
    for view in [*views(task_id, schedule_id, workflow_id), "nowhere"]:
        await dashboard.visit(page, view)
    for keys in ("Control+k", "?"):
        await page.keyboard.press(keys)
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
    folder = f"{dashboard.site.address}{await base(dashboard.site)}/"
    files = [each for each in answers if "/assets/" in each.url]
    for each in files:
        assert each.url.startswith(folder)
        assert each.status == 200
        assert await each.header_value("content-encoding") == "gzip"
        assert await each.header_value("cache-control") == FOR_GOOD
    names = [each.url.removeprefix(folder) for each in files if not each.url.endswith("icon.svg")]
    assert sorted([*names, "icon.svg", *IN_TROUBLE]) == sorted(parts())
    # The next time they are there already.
    again = await page.context.new_page()
    await dashboard.visit(again)
    sent = await again.evaluate(
        "performance.getEntriesByType('resource')"
        ".filter(({name}) => name.includes('/assets/')).map((each) => each.transferSize)"
    )
    assert len(sent) > 10
    assert set(sent) == {0}


async def test_a_page_that_comes_too_late_takes_nothing_away(dashboard: Dashboard) -> None:
    """Who goes to a task and back before its page is there sees what he went back to."""
    task_id = await dashboard.site.submit("slow-to-open")
    page = await dashboard.another()
    asked, released = asyncio.Event(), asyncio.Event()

    async def slowly(route: Route) -> None:
        asked.set()
        await released.wait()
        await route.continue_()

    await page.route("**/pages/task.js", slowly)
    await dashboard.visit(page, "tasks", type="slow-to-open")
    listed = page.locator(f"tr[data-id='{task_id}']")
    await listed.get_by_role("link").click()
    await asyncio.wait_for(asked.wait(), PATIENCE_MS / 1000)
    await page.go_back()
    await expect(listed).to_be_visible()
    released.set()
    await page.evaluate("(path) => import(path)", f"{await base(dashboard.site)}/pages/task.js")
    await expect(listed).to_be_visible()
    # And the page itself has come to no harm.
    await listed.get_by_role("link").click()
    await expect(page.get_by_role("heading", name="slow-to-open")).to_be_visible()


def parts() -> list[str]:
    """All that the dashboard is made of, by its path."""
    paths = [path for path in FOLDER.rglob("*") if path.suffix in KINDS]
    return [name for path in paths if (name := path.relative_to(FOLDER).as_posix()) != "index.html"]


async def test_the_page_is_strict(site: Site) -> None:
    reply = await shell(site)
    headers = reply.headers
    assert headers["content-security-policy"] == POLICY
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    html = reply.body.decode()
    assert re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", html) == []  # none without a file
    assert re.findall(r"<script[^>]*>[^<]", html) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", html, re.IGNORECASE) == []
    assert re.findall(r"(?:src|href)=\"(?:\w+:|/)", html) == []  # nothing but what lies beside it
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", own()) == []
    )


def own() -> str:
    """All scripts that are not vendored."""
    return "".join(
        path.read_text() for path in FOLDER.rglob("*.js") if path.parent.name != "vendor"
    )


async def test_files_as_they_are_and_compressed(site: Site) -> None:
    folder = await base(site)
    for name in ("main.js", "style/base.css", "icon.svg", "vendor/preact.js"):
        plain = await fetched(site, f"{folder}/{name}")
        packed = await fetched(site, f"{folder}/{name}", "accept-encoding: br, gzip")
        assert plain.body == (FOLDER / name).read_bytes() == gzip.decompress(packed.body)
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert plain.headers["vary"] == packed.headers["vary"] == "accept-encoding"
        assert plain.headers["content-type"] == KINDS[Path(name).suffix].decode()
        assert plain.headers["cache-control"] == FOR_GOOD
        assert plain.headers["content-security-policy"] == POLICY


async def test_what_is_not_there(site: Site) -> None:
    folder = await base(site)
    unknown = (
        f"{folder}/nothing.js",
        f"{folder}/",
        f"{folder}/index.html",
        f"{folder}/vendor/README.md",
        f"{folder}/vendor/../main.js",
        f"{folder}/../../assets.py",
        f"{folder}/%2e%2e/assets.py",
        f"{folder}/..%2f..%2fassets.py",
        f"{folder}//etc/passwd",
        f"{folder}/main.js%00.css",
        "/assets/0123456789abcdef/main.js",  # of another version
        "/assets/main.js",
        "/main.js",
    )
    for target in unknown:
        reply = await fetched(site, target)
        assert (reply.status, reply.code) == (404, "not_found"), target
        assert reply.headers["cache-control"] == "no-store"


async def test_without_scripts(dashboard: Dashboard) -> None:
    page = await dashboard.another(java_script_enabled=False)
    await page.goto(dashboard.site.address)
    assert "fairlane top" in await page.inner_text("body")
    await page.locator("noscript a").click()
    assert page.url == f"{dashboard.site.address}/docs"


@asynccontextmanager
async def mounted(servers: Servers, folder: Path) -> AsyncIterator[int]:
    """The port of somebody else's application, which has the dashboard under a prefix."""
    async with opened("sqlite-memory", servers, folder) as world:
        inner = create_app(application(world))
        async with lifespan(inner):
            routes = [Mount("/tools/queue", app=inner)]
            async with listening(Starlette(routes=routes)) as port:
                yield port


async def test_under_a_prefix(browser: Browser, servers: Servers, tmp_path: Path) -> None:
    async with mounted(servers, tmp_path) as port:
        page = await (await browser.new_context()).new_page()
        complaints: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        prefix = f"http://127.0.0.1:{port}/tools/queue"
        await page.goto(prefix)  # without a slash at its end
        await expect(page.locator(".nav .connection")).to_have_text("Live")
        await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        await page.get_by_role("navigation").get_by_role("link", name="Workers").click()
        await expect(page.get_by_role("heading", name="Workers")).to_be_visible()
        assert page.url == f"{prefix}/#/workers"
        await page.context.close()
        assert complaints == []
        assert [url for url in asked if not url.startswith(prefix)] == []


def test_the_wheel_has_it_all(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        found = set(packed.namelist())
    here = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert {f"fairlane/dashboard/static/{name}" for name in here} <= found


def test_who_made_what_is_vendored() -> None:
    vendor = FOLDER / "vendor"
    rows = re.findall(r"^\| (\S+\.\w+) \| (\S+) \| (\d[\d.]*) \|$", _read(vendor), re.MULTILINE)
    files = {path.name for path in vendor.iterdir() if path.suffix in KINDS}
    assert {name for name, _, _ in rows} == files
    for _, package, _ in rows:
        licence = (vendor / f"LICENSE.{package.lstrip('@').replace('/', '-')}.txt").read_text()
        assert re.search(r"MIT|Permission is hereby granted|Apache License", licence), package


def _read(vendor: Path) -> str:
    return (vendor / "README.md").read_text()
