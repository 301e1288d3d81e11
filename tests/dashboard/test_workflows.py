"""The list of workflows: newest first, filtered, live, a page at a time."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

from fairlane.core.ids import numbered
from tests.dashboard.apps import app, echo, greet, hold, refuse
from tests.dashboard.kit import Dashboard, Site
from tests.dashboard.questions import confirm


def rows(page: Page) -> Locator:
    return page.get_by_role("table", name="Workflows").locator("tbody tr")


async def greeted(site: Site, name: str, tasks: int = 1) -> str:
    """The id of a workflow that is completed."""
    with app.graph(name) as g:
        for number in range(tasks):
            g.add(greet, f"Ada {number}")
    workflow_id = await site.workflow(g)
    for number in range(tasks):
        await site.reaches(numbered(workflow_id, 1 + number), "completed")
    return workflow_id


async def test_nothing_yet(alone: Dashboard) -> None:
    page = await alone.open("workflows")
    await expect(page.get_by_role("heading", name="No workflows yet")).to_be_visible()
    workflow_id = await greeted(alone.site, "first")
    await expect(rows(page)).to_have_count(1)
    await expect(rows(page)).to_contain_text("first")
    await page.get_by_role("checkbox", name="failed").check(force=True)
    await expect(page.get_by_role("heading", name="No such workflows")).to_be_visible()
    await page.get_by_role("checkbox", name="failed").uncheck(force=True)
    await rows(page).get_by_role("link", name="first").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("first completed")
    assert page.url == alone.link(f"workflows/{workflow_id}")


async def test_it_is_live(dashboard: Dashboard) -> None:
    site = dashboard.site
    with app.graph("watched") as g:
        first = g.add(hold, site.file("watched"))
        g.add(echo, first)
    page = await dashboard.open("workflows", name="watched")
    await expect(rows(page)).to_have_count(0)
    workflow_id = await site.workflow(g)
    await expect(rows(page)).to_have_count(1)
    await expect(rows(page)).to_contain_text("2 tasks")
    await expect(rows(page).locator(".state")).to_have_text("running")
    await expect(rows(page).locator(".state-counts a")).to_have_text(["1 scheduled", "1 executing"])
    site.release("watched")
    await expect(rows(page).locator(".state")).to_have_text("completed")
    await expect(rows(page).locator(".state-counts a")).to_have_text(["2 completed"])
    await rows(page).get_by_role("link", name="2 completed").click()
    await expect(page.get_by_role("table", name="Tasks").locator("tbody tr")).to_have_count(2)
    assert page.url == dashboard.link(f"workflows/{workflow_id}?view=list&state=completed")


async def test_newest_first_and_filtered(dashboard: Dashboard) -> None:
    site = dashboard.site
    old = await greeted(site, "sorted")
    with app.graph("sorted") as g:
        g.add(refuse.options(node="only"))
    failed = await site.workflow(g)
    await site.reaches(numbered(failed, 1), "failed")
    new = await greeted(site, "sorted")
    await greeted(site, "another")
    page = await dashboard.open("workflows")
    name = page.get_by_role("searchbox", name="Name")
    await name.fill("sorted")
    await name.press("Enter")
    assert page.url == dashboard.link("workflows", name="sorted")
    await expect(rows(page)).to_have_count(3)
    ids = [await each.get_attribute("data-id") for each in await rows(page).all()]
    assert ids == [new, failed, old]
    await page.get_by_role("checkbox", name="failed").check(force=True)
    await expect(rows(page)).to_have_count(1)
    await expect(rows(page)).to_have_attribute("data-id", failed)
    assert page.url == dashboard.link("workflows", state="failed", name="sorted")
    await page.get_by_role("checkbox", name="completed").check(force=True)
    await expect(rows(page)).to_have_count(3)
    # The address alone says it all.
    other = await dashboard.another()
    await other.goto(page.url)
    await expect(rows(other)).to_have_count(3)
    await expect(other.get_by_role("searchbox", name="Name")).to_have_value("sorted")
    await expect(other.get_by_role("checkbox", name="failed")).to_be_checked()


async def test_a_page_at_a_time(dashboard: Dashboard) -> None:
    site = dashboard.site
    for _ in range(51):
        with app.graph("paged") as g:
            g.add(greet, "Ada")
        await site.workflow(g)
    page = await dashboard.open("workflows", name="paged")
    await expect(rows(page)).to_have_count(50)
    await page.get_by_role("link", name="More").click()
    await expect(rows(page)).to_have_count(1)
    await page.get_by_role("link", name="To the newest").click()
    await expect(rows(page)).to_have_count(50)


async def test_one_is_cancelled(dashboard: Dashboard) -> None:
    site = dashboard.site
    with app.graph("unwanted") as g:
        g.add(echo, g.add(hold, site.file("unwanted")))
    workflow_id = await site.workflow(g)
    page = await dashboard.open("workflows", name="unwanted")
    await confirm(rows(page), "Cancel", "Cancel this workflow?")
    await expect(rows(page).locator(".state")).to_have_text("cancelled")
    await expect(rows(page).get_by_role("button")).to_have_count(0)
    await site.reaches(numbered(workflow_id, 2), "cancelled")
