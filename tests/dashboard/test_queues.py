"""The page of queues and types: what is in them, and what is set for them."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

from fairlane.core.breaker import Breaker
from fairlane.core.lanes import UNRULED, Controls, Rules
from fairlane.core.model import TaskError, WorkerStatus
from fairlane.core.outcomes import Failed
from fairlane.core.submission import new_task
from tests.dashboard.kit import Dashboard, Site
from tests.dashboard.questions import answer, ask, confirm


def row(page: Page, table: str, name: str) -> Locator:
    return page.get_by_role("table", name=table).locator(f"tr[data-name='{name}']")


async def controls(site: Site) -> Controls:
    return await site.world.run(site.world.ops.controls())


async def rules(site: Site, type: str) -> Rules:
    return (await controls(site)).types.get(type, UNRULED)


async def shown(page: Page, table: str) -> list[str]:
    """The names in the order of the rows."""
    found = page.get_by_role("table", name=table).locator("tbody tr")
    names: list[str] = await found.evaluate_all("rows => rows.map((row) => row.dataset.name)")
    return names


async def test_a_queue_is_paused_and_resumed(dashboard: Dashboard) -> None:
    site = dashboard.site
    for _ in range(3):
        await site.submit("parked.task", queue="parked")
    page = await dashboard.open("queues", find="PARKED")
    queue = row(page, "Queues", "parked")
    await expect(queue.get_by_role("link", name="3 queued")).to_be_visible()
    await expect(page.get_by_role("table", name="Queues").locator("tbody tr")).to_have_count(1)
    await expect(row(page, "Types", "parked.task")).to_contain_text("no worker")

    dialog = await ask(queue, "Pause")
    await expect(dialog).to_contain_text("3 tasks queued there")
    await answer(dialog, "Back")
    assert (await controls(site)).paused_queues == frozenset()
    await confirm(queue, "Pause", "Pause the queue parked?")
    await expect(queue).to_contain_text("paused")
    await expect(page.locator(".active-limits")).to_contain_text("1 queue paused: parked.")
    assert (await controls(site)).paused_queues == {"parked"}
    await site.submit("parked.task", queue="parked")  # seen without being asked for
    await expect(queue.get_by_role("link", name="4 queued")).to_be_visible()
    await queue.get_by_role("button", name="Resume").click()
    await expect(queue.get_by_role("button", name="Pause")).to_be_visible()
    assert (await controls(site)).paused_queues == frozenset()

    await queue.get_by_role("link", name="4 queued").click()
    await expect(page).to_have_url(dashboard.link("tasks", queue="parked", status="queued"))


async def test_a_type_is_limited_paused_and_broken_off(dashboard: Dashboard) -> None:
    site, world = dashboard.site, dashboard.site.world
    await site.submit("capped.type", max_retries=0)
    page = await dashboard.open("queues", find="capped")
    type = row(page, "Types", "capped.type")
    for label, value in (("capped.type, at once", "2"), ("capped.type, tasks/s", "1.5")):
        await type.get_by_label(label).fill(value)
        await type.get_by_role("button", name="Set", exact=True).click()
        await expect(type.get_by_role("button", name="Set", exact=True)).to_have_count(0)
    limited = await rules(site, "capped.type")
    assert (limited.concurrency, limited.rate) == (2, 1.5)
    await expect(page.locator(".active-limits")).to_contain_text("1 type in tasks at once")
    await expect(type).to_contain_text("0 / 2")
    await type.get_by_label("capped.type, at once").fill("-1")
    await type.get_by_role("button", name="Set", exact=True).click()
    await expect(type.get_by_role("alert")).to_contain_text("concurrency")
    await type.get_by_label("capped.type, at once").fill("")
    await type.get_by_role("button", name="Set", exact=True).click()
    await expect(type).not_to_contain_text("/ 2")
    assert (await rules(site, "capped.type")).concurrency == 0

    dashboard.expects("422")  # the one below zero
    await type.get_by_role("button", name="Circuit breaker of capped.type").click()
    form = page.get_by_role("group", name="Circuit breaker of capped.type")
    await form.get_by_label("Failures").fill("1")
    await form.get_by_label("Within, seconds").fill("30")
    await form.get_by_label("Cool-down, seconds").fill("45")
    await form.get_by_role("button", name="Set", exact=True).click()
    await expect(type).to_contain_text("closed")
    assert (await rules(site, "capped.type")).breaker == Breaker(1, 30, 45)
    worker = await world.worker(types=frozenset({"capped.type"}))
    task = await world.claim_one(worker, types=frozenset({"capped.type"}))
    await world.settle(task, Failed(TaskError.of("no luck")))
    await expect(type).to_contain_text("open for 4")
    await expect(page.locator(".active-limits")).to_contain_text("1 circuit open after failures")
    await type.get_by_role("button", name="Circuit breaker of capped.type").click()
    await form.get_by_role("button", name="Remove").click()
    await expect(type).to_contain_text("set up")
    assert (await rules(site, "capped.type")).breaker is None

    await confirm(type, "Pause", "0 queued tasks will wait")
    await expect(type).to_contain_text("paused")
    assert (await rules(site, "capped.type")).paused
    await type.get_by_role("button", name="Resume").click()
    await expect(type.get_by_role("button", name="Pause")).to_be_visible()
    assert not (await rules(site, "capped.type")).paused


async def test_what_runs_is_held_against_the_limit(dashboard: Dashboard) -> None:
    site, world = dashboard.site, dashboard.site.world
    await world.run(world.ops.limit("hold", concurrency=1))
    page = await dashboard.open("queues", find="hold")
    for _ in range(2):
        await site.submit("hold", {"file": site.file("held")})
    type = row(page, "Types", "hold")
    await expect(type.get_by_role("img", name="1 of 1 at once")).to_be_visible()
    await expect(type.get_by_role("link", name="1 executing")).to_be_visible()
    site.release("held")
    await expect(type.get_by_role("link", name="2 completed")).to_be_visible()
    await expect(type.get_by_role("img", name="0 of 1 at once")).to_be_visible()


async def test_many_types_are_sorted_and_found(dashboard: Dashboard) -> None:
    site = dashboard.site
    names = [f"many.{number:03}" for number in range(200)]
    await site.world.submit_all([new_task(name, None) for name in [*names, "many.117"]])
    page = await dashboard.open("queues", find="many")
    table = page.get_by_role("table", name="Types")
    await expect(table.locator("tbody tr")).to_have_count(200)
    assert await shown(page, "Types") == names
    await table.get_by_role("columnheader", name="Type").get_by_role("link").click()
    await expect(table.locator("[aria-sort=descending]")).to_contain_text("Type")
    assert await shown(page, "Types") == names[::-1]
    await table.get_by_role("link", name="Tasks", exact=True).click()
    await expect(table.locator("[aria-sort=descending]")).to_contain_text("Tasks")
    assert (await shown(page, "Types"))[0] == "many.117"
    await page.get_by_label("Find").fill("MANY.19")
    await expect(table.locator("tbody tr")).to_have_count(10)
    await page.reload()  # all of that is in the address
    await expect(table.locator("[aria-sort=descending]")).to_contain_text("Tasks")
    await expect(table.locator("tbody tr")).to_have_count(10)
    await page.get_by_label("Find").fill("nothing like it")
    await expect(page.get_by_text("No type's name contains this.")).to_be_visible()


async def test_everything_at_once(alone: Dashboard) -> None:
    site, world = alone.site, alone.site.world
    page = await alone.open("queues")
    # The types that the site's worker has published.
    await expect(page.get_by_text("greet", exact=True).first).to_be_visible()
    force = page.locator(".active-limits")
    await expect(force).to_contain_text("Nothing is paused or limited")
    heading = page.locator(".page-heading")
    await heading.get_by_label("All types together, tasks/s").fill("50")
    await heading.get_by_role("button", name="Set", exact=True).click()
    await expect(force).to_contain_text("All types together start at most 50 tasks a second.")
    await confirm(heading, "Pause everything", "Pause everything?")
    await expect(force).to_contain_text("Everything is paused")
    everything = (await controls(site)).everything
    assert (everything.paused, everything.rate) == (True, 50)

    await site.submit("echo", queue="one")
    await site.submit("echo", queue="two")
    queues = page.get_by_role("table", name="Queues")
    await expect(row(page, "Queues", "one")).to_contain_text("50 %")
    await expect(queues).not_to_contain_text("no worker")
    (there,) = await world.run(world.ops.workers())
    await world.run(world.ops.mark(there.worker_id, WorkerStatus.DRAINING))
    await expect(row(page, "Queues", "one")).to_contain_text("no worker")
    await world.worker(queues=frozenset({"one"}))
    await expect(row(page, "Queues", "one")).not_to_contain_text("no worker")
    await expect(row(page, "Queues", "two")).to_contain_text("no worker")

    await world.run(world.ops.pause(paused=False))  # by somebody else
    await expect(force).not_to_contain_text("Everything is paused")
