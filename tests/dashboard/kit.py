"""The dashboard as a person meets it: a real server and worker, and a real browser before them.

    async def test_a_task_is_cancelled(dashboard: Dashboard) -> None:
        task_id = await dashboard.site.submit("idle", tags={"who": "me"})  # nobody serves it
        page = await dashboard.open("tasks", status="queued")  # at "#/tasks?status=queued"
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("status")).to_contain_text("Cancelled")
        await dashboard.site.reaches(task_id, "cancelled")  # in the engine itself

`expect` is Playwright's own (`from playwright.async_api import expect`): it waits. Fixtures:

- `dashboard`: a page of this test's own, on the server, worker and store of its module, `site`. It
  meets what other tests have left: choose types, queues and tags of your own and filter by them.
  With `-n` the tests of a module may run in several processes, with a site each.
- `alone`: the same on a site of the test's own, for what changes everything (a global pause,
  tokens, an empty store, a server that is killed). It costs some two seconds.

`site.world` is the engine (tests/fixtures/stores.py); `apps.py` is what the worker runs. A `hold`
that was given `file=site.file(name)` ends with `site.release(name)`. What a page says on its
console, an error that nobody caught and any request to elsewhere fail the test at its end, unless
it said `dashboard.expects("401")`: a part of the complaint.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, expect
from playwright.async_api import Request as PageRequest

from fairlane.core.model import Task, WorkerStatus
from fairlane.core.recurrence import Recurrence, cron
from fairlane.core.schedules import Schedule, new_schedule
from fairlane.core.submission import new_task
from fairlane.dashboard.assets import FOLDER
from fairlane.runtime.graph import Graph
from tests.conftest import Servers
from tests.e2e.chaos.arena import FULL, until
from tests.fixtures.serving import CommandProcess, ServerProcess
from tests.fixtures.stores import World, opened
from tests.server.security.kit import new_token

STORES = ("sqlite-file", "postgres-newest", "redis") if FULL else ("sqlite-file",)
YEARLY = cron("0 3 1 1 *", "Europe/Berlin")
"""A rule that does not fire while a test runs."""
PATIENCE_MS = 15_000
"""How long a page may take for what has to come."""
DESKTOP = (1280, 900)
PHONE = (360, 740)
CONCURRENCY = 8


def views(task_id: str, schedule_id: str, workflow_id: str) -> list[str]:
    """The pages there are, as the dashboard lists them; those of one task, one schedule and one
    workflow show these."""
    listed = (FOLDER / "pages" / "index.js").read_text()
    names = re.findall(r'\{\s*name: "(\w*)"', listed)
    assert len(names) > 4
    flows = [f"workflows/{workflow_id}?view={view}" for view in ("graph", "timeline", "list")]
    return [*names, f"tasks/{task_id}", f"schedules/{schedule_id}", *flows]


class Site:
    """A server, a worker, and the store that they share."""

    def __init__(self, world: World, server: ServerProcess, folder: Path) -> None:
        self.world = world
        self.server = server
        self._folder = folder

    @property
    def address(self) -> str:
        return self.server.address

    async def submit(self, type: str = "greet", payload: Any = None, **options: Any) -> str:
        """The id of a new task, submitted straight to the engine."""
        return await self.world.submit(type, payload, **options)

    async def task(self, task_id: str) -> Task:
        return await self.world.task(task_id)

    async def reaches(self, task_id: str, *states: str) -> Task:
        """The task, once it is in one of these states."""

        async def there() -> bool:
            return await self.world.state(task_id) in states

        await until(there, f"the task is {' or '.join(states)}", PATIENCE_MS / 1000)
        return await self.task(task_id)

    async def ran(self, type: str = "greet", payload: Any = None, **options: Any) -> str:
        """The id of a new task that the worker has run to its end."""
        task_id = await self.submit(type, payload, **options)
        await self.reaches(task_id, "completed", "failed", "dead_letter")
        return task_id

    async def schedule(
        self,
        schedule_id: str,
        rule: Recurrence = YEARLY,
        *,
        owner: str | None = None,
        **options: Any,
    ) -> str:
        """The id of a new schedule, put straight into the engine. `task`: what `new_task` takes.
        With an owner it is declared in code."""
        task = new_task(**{"type": "greet", **options.pop("task", {})})
        new = new_schedule(schedule_id, rule, task, **options)
        await self.world.run(self.world.ops.put_schedules([new], owner=owner))
        return schedule_id

    async def workflow(self, graph: Graph) -> str:
        """The id of a new workflow, put straight into the engine. Its tasks are those of `apps`."""
        tasks = [call.task for call in graph.plan().calls]
        await self.world.run(self.world.ops.submit_workflow(tasks))
        return graph.workflow_id

    async def scheduled(self, schedule_id: str) -> Schedule:
        (found,) = await self.world.run(self.world.ops.schedules([schedule_id]))
        assert found is not None
        return found

    async def token(self, *scopes: str, **options: Any) -> tuple[str, str]:
        """The id and the secret of a new token. From then on nobody comes in without one, once the
        server has noticed: within seconds, or at once if it is started anew."""
        return await new_token(self.world, *scopes, **options)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """What the API answers."""
        sent = {"content-type": "application/json", **headers}
        content = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.address}/{path}", content, sent, method=method)
        with urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def file(self, name: str) -> str:
        """A file that a `hold` may wait for."""
        return str(self._folder / name)

    def release(self, name: str) -> None:
        (self._folder / name).touch()


@asynccontextmanager
async def served(
    kind: str, servers: Servers, folder: Path, *, worker: bool = True
) -> AsyncIterator[Site]:
    """A site on an empty store of this kind."""
    async with AsyncExitStack() as stack:
        servers = stack.enter_context(_undisturbed(kind, servers))
        world = await stack.enter_async_context(opened(kind, servers, folder))
        if worker:
            stack.enter_context(_worker(world.url, folder))
        server = stack.enter_context(ServerProcess(world.url, folder, migrate=False))
        site = Site(world, server, folder)
        if worker:
            await until(lambda: _is_served(world), "a worker is there", PATIENCE_MS / 1000)
        yield site
        assert "Traceback" not in server.said, server.said


@contextmanager
def _undisturbed(kind: str, servers: Servers) -> Iterator[Servers]:
    """Servers that nobody flushes meanwhile: several sites may be open, a Redis is one store."""
    if kind != "redis":
        yield servers
        return
    with ExitStack() as stack:
        yield Servers(stack)


def _worker(store: str, folder: Path) -> CommandProcess:
    flags = ("--concurrency", str(CONCURRENCY), "--grace", "0", "--name", "tests")
    app = ("--app", "tests.dashboard.apps:app", "--store", store)
    return CommandProcess(store, folder, "worker", *app, *flags)


async def _is_served(world: World) -> bool:
    workers = await world.run(world.ops.workers())
    return any(worker.status is WorkerStatus.ACTIVE for worker in workers)


class Dashboard:
    """A person's browser on a site: pages, and what they complained about."""

    def __init__(self, site: Site, browser: Browser) -> None:
        self.site = site
        self.complaints: list[str] = []
        self._browser = browser
        self._expected: list[str] = []
        self._contexts: list[BrowserContext] = []
        self._page: Page | None = None

    @property
    def page(self) -> Page:
        """The page that was opened first."""
        assert self._page is not None, "no page is open"
        return self._page

    async def open(self, view: str = "", **query: Any) -> Page:
        """Go to a view on the first page, until what it shows is there and live."""
        if self._page is None:
            self._page = await self.another()
        return await self.visit(self._page, view, **query)

    async def visit(self, page: Page, view: str = "", **query: Any) -> Page:
        """Go to a view on any page."""
        await page.goto(self.link(view, **query))
        await expect(page.locator(".nav .connection")).to_have_text("Live")
        await self.settled(page)
        return page

    async def settled(self, page: Page) -> None:
        """Until nothing on the page is still on its way for the first time."""
        await expect(page.locator("main h1").first).to_be_visible()
        await expect(page.locator("[aria-busy=true]")).to_have_count(0)

    def link(self, view: str = "", **query: Any) -> str:
        """The address of a view; lists in the query are repeated."""
        tail = f"?{urlencode(query, doseq=True)}" if query else ""
        return f"{self.site.address}/#/{view}{tail}"

    async def another(self, size: tuple[int, int] = DESKTOP, **options: Any) -> Page:
        """A page of a browser that knows nothing of the others; options are those of a context."""
        width, height = size
        context = await self._browser.new_context(
            viewport={"width": width, "height": height}, **options
        )
        context.set_default_timeout(PATIENCE_MS)
        self._contexts.append(context)
        context.on("console", self._said)
        context.on("weberror", lambda error: self.complaints.append(f"uncaught: {error.error}"))
        context.on("request", self._asked)
        page = await context.new_page()
        page.on("websocket", lambda socket: self._reached(socket.url))
        page.on("crash", lambda _: self.complaints.append("the page crashed"))
        return page

    def expects(self, *complaints: str) -> None:
        """Let complaints pass that contain one of these texts."""
        self._expected += complaints

    async def close(self) -> None:
        """Close all pages; nothing may have been wrong with them."""
        for context in self._contexts:
            await context.close()
        wrong = [each for each in self.complaints if not any(ok in each for ok in self._expected)]
        assert not wrong, wrong

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            where = message.location.get("url", "")
            self.complaints.append(f"{message.type}: {message.text} ({where})")

    def _asked(self, request: PageRequest) -> None:
        self._reached(request.url)

    def _reached(self, url: str) -> None:
        if urlsplit(url).netloc != urlsplit(self.site.address).netloc:
            self.complaints.append(f"elsewhere: {url}")


expect.set_options(timeout=PATIENCE_MS)
