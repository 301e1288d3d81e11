"""The list of tasks: finding them, and changing one, some, or all that match."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.async_api import Locator, Page, expect

from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.dashboard.kit import Dashboard, Site
from tests.fixtures.stores import get_all


def row(page: Page, task_id: str) -> Locator:
    return page.locator(f"tr[data-id='{task_id}']")


def rows(page: Page) -> Locator:
    return page.locator("tbody tr")


async def answer(page: Page, question: str | re.Pattern[str], label: str) -> None:
    """Say yes to a question. The pointer does not stay where it was: over the list, perhaps."""
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text(question)
    await dialog.get_by_role("button", name=label).click()
    await page.mouse.move(0, 0)
    await expect(dialog).to_have_count(0)


async def many(site: Site, type: str, count: int, **options: Any) -> list[str]:
    """Tasks of a type that nobody serves, the oldest first."""
    return await site.world.submit_all([new_task(type, {"n": n}, **options) for n in range(count)])


async def states(site: Site, task_ids: list[str]) -> set[State | None]:
    found = await get_all(site.world.backend, task_ids)
    return {None if task is None else task.status for task in found}


async def test_pages_go_on_and_back_and_have_addresses(dashboard: Dashboard) -> None:
    site = dashboard.site
    ids = await many(site, "paged", 120)
    page = await dashboard.open("tasks", type="paged")
    shown = page.locator(".page-range")
    back = page.get_by_role("button", name="Previous").first
    forth = page.get_by_role("button", name="Next").first
    await expect(shown).to_have_text("1–50 of 120")
    await expect(rows(page)).to_have_count(50)
    await expect(back).to_be_disabled()
    await forth.click()
    await expect(shown).to_have_text("51–100 of 120")
    await forth.click()
    await expect(shown).to_have_text("101–120 of 120")
    await expect(row(page, ids[0])).to_be_visible()
    await expect(forth).to_be_disabled()
    # To a task and back, and to the page before: none is skipped.
    await row(page, ids[0]).get_by_role("link").click()
    await expect(page).to_have_url(re.compile(ids[0]))
    await page.go_back()
    await expect(shown).to_have_text("101–120 of 120")
    await back.click()
    await expect(shown).to_have_text("51–100 of 120")
    # The address alone leads to the same tasks.
    other = await dashboard.another()
    await other.goto(page.url)
    await expect(other.locator(".page-range")).to_have_text("51–100 of 120")
    await expect(row(other, ids[69])).to_be_visible()
    await back.click()
    await expect(shown).to_have_text("1–50 of 120")
    await page.get_by_label("Tasks a page").first.select_option("100")
    await expect(shown).to_have_text("1–100 of 120")
    await expect(page).to_have_url(re.compile("limit=100"))


async def test_filters_are_chips_in_the_address(dashboard: Dashboard) -> None:
    site = dashboard.site
    red = await site.submit("sorted", priority="high", tags={"team": "red: one"}, queue="sorting")
    blue = await site.submit("sorted", priority="low", tags={"team": "blue"}, queue="sorting")
    later = await site.submit("sorted", delay_seconds=3600)
    page = await dashboard.open("tasks")
    await page.get_by_label("Type", exact=True).select_option("sorted")
    await expect(rows(page)).to_have_count(3)
    await expect(page.get_by_label("scheduled 1")).not_to_be_checked()
    await page.get_by_label("scheduled 1").check(force=True)
    await expect(rows(page)).to_have_count(1)
    await expect(row(page, later)).to_contain_text("scheduled")
    await page.get_by_role("button", name="Remove status scheduled").click()
    await page.get_by_label("Queue", exact=True).select_option("sorting")
    await expect(rows(page)).to_have_count(2)
    await page.get_by_label("Priority", exact=True).select_option("high")
    await expect(rows(page)).to_have_count(1)
    await expect(row(page, red)).to_contain_text("team:red: one")
    await page.get_by_role("button", name="Remove priority high").click()
    await page.get_by_label("Tag").fill("team:blue")
    await page.get_by_label("Tag").press("Enter")
    await expect(rows(page)).to_have_count(1)
    await expect(row(page, blue)).to_be_visible()
    await page.get_by_role("button", name="More filters").click()
    await page.get_by_label("Worker").fill("nobody")
    await page.get_by_label("Worker").press("Enter")
    await expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    await page.get_by_role("button", name="Remove worker nobody").click()
    await expect(rows(page)).to_have_count(1)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    await page.get_by_label("Since").fill(tomorrow.strftime("%Y-%m-%dT%H:%M"))
    await expect(page.get_by_role("heading", name="No task matches")).to_be_visible()
    await expect(page).to_have_url(
        re.compile(r"type=sorted.*queue=sorting.*tag=team%3Ablue.*since=")
    )
    await page.get_by_role("link", name="Clear all filters").click()
    await expect(page.get_by_label("Active filters")).to_have_count(0)


async def test_a_filter_that_cannot_be_says_so(dashboard: Dashboard) -> None:
    dashboard.expects("422")
    page = await dashboard.open("tasks", status="lost")
    await expect(page.get_by_role("alert")).to_contain_text("lost")
    await page.get_by_role("button", name="Clear all filters").click()
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_task_is_changed_from_its_row(dashboard: Dashboard) -> None:
    site = dashboard.site
    task_id = await site.submit("unserved-rows")
    page = await dashboard.open("tasks", type="unserved-rows")
    line = row(page, task_id)
    await expect(line).to_contain_text("0/4")
    await line.get_by_role("button", name="Why?").click()
    await expect(line).to_contain_text("No worker serves it")
    await line.get_by_role("button", name="Cancel").click()
    await answer(page, "It will not run", "Cancel")
    await expect(line).to_contain_text("cancelled")
    assert await states(site, [task_id]) == {State.CANCELLED}
    await line.get_by_role("button", name="Replay").click()
    await expect(line).to_contain_text("queued")
    assert await states(site, [task_id]) == {State.QUEUED}
    # By keys: where the button was that is there no more, its row is.
    await line.get_by_role("button", name="Cancel").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Back")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(line).to_be_focused()
    await line.get_by_role("button", name="Delete").click()
    await answer(page, "cannot be restored", "Delete")
    await expect(line).to_have_count(0)
    assert await states(site, [task_id]) == {None}


async def test_what_failed_can_be_replayed_and_what_runs_shows_how_far_it_is(
    dashboard: Dashboard,
) -> None:
    site = dashboard.site
    tags = {"kept": "apart"}
    failed = await site.ran("flaky", {"failures": 1}, max_retries=0, tags=tags)
    held = await site.submit(
        "hold", {"file": site.file("row"), "percent": 40, "message": "half way"}, tags=tags
    )
    page = await dashboard.open("tasks", tag="kept:apart")
    await expect(row(page, held).get_by_role("img", name="40 %: half way")).to_be_visible()
    await expect(row(page, failed)).to_contain_text("1/1")
    await row(page, failed).get_by_role("button", name="Replay").click()
    await expect(row(page, failed)).to_contain_text("completed")
    site.release("row")
    await expect(row(page, held)).to_contain_text("completed")
    assert await states(site, [failed, held]) == {State.COMPLETED}


async def test_what_is_selected_is_changed_together(dashboard: Dashboard) -> None:
    site = dashboard.site
    ids = await many(site, "some", 6)
    newest = ids[::-1]
    page = await dashboard.open("tasks", type="some")
    picked = page.get_by_role("group", name="Selected tasks")
    # By keys: to the first, the second; select it; two on, and all in between.
    for key in ("j", "ArrowDown", "x", "j", "j", "Shift+X"):
        await page.keyboard.press(key)
    await expect(picked).to_contain_text("3 selected")
    await picked.get_by_role("button", name="Cancel").click()
    await answer(page, "Cancel 3 tasks?", "Cancel")
    await expect(page.get_by_role("status").last).to_contain_text("3 tasks cancelled")
    assert await states(site, newest[1:4]) == {State.CANCELLED}
    assert await states(site, [newest[0], *newest[4:]]) == {State.QUEUED}
    # By pointer: the same, from the first to the fifth, one of which cannot be deleted.
    await page.get_by_label(f"Select {newest[0]}").click()
    await page.get_by_label(f"Select {newest[3]}").click(modifiers=["Shift"])
    await expect(picked).to_contain_text("4 selected")
    await picked.get_by_role("button", name="Delete").click()
    await answer(page, re.compile("Delete 3 tasks.*The other 1 "), "Delete")
    await expect(rows(page)).to_have_count(3)
    assert await states(site, newest[1:4]) == {None}
    await page.get_by_label("Select the page").click()
    await expect(picked).to_contain_text("3 selected")
    await expect(picked.get_by_role("button", name="Replay")).to_be_disabled()
    await page.keyboard.press("Escape")
    await expect(picked).to_have_count(0)
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(newest[0]))


async def test_all_that_match_are_changed_whatever_page_they_are_on(dashboard: Dashboard) -> None:
    site = dashboard.site
    ids = await many(site, "lots", 300, tags={"batch": "7"})
    spared = await many(site, "lots", 1, tags={"batch": "8"})
    page = await dashboard.open("tasks", type="lots", tag="batch:7")
    picked = page.get_by_role("group", name="Selected tasks")
    await page.get_by_label("Select the page").click()
    await expect(picked).to_contain_text("50 selected")
    await picked.get_by_role("button", name="Select all 300 that match").click()
    await expect(picked).to_contain_text("All 300 selected")
    await picked.get_by_role("button", name="Cancel").click()
    await answer(page, "Cancel 300 tasks?", "Cancel")
    await expect(page.get_by_role("status").last).to_contain_text("300 tasks cancelled")
    assert await states(site, ids) == {State.CANCELLED}
    assert await states(site, spared) == {State.QUEUED}


async def test_what_comes_in_does_not_move_what_somebody_points_at(dashboard: Dashboard) -> None:
    site = dashboard.site
    ids = await many(site, "moving", 3)
    page = await dashboard.open("tasks", type="moving")
    first = rows(page).first
    await expect(first.get_by_role("checkbox")).to_have_accessible_name(f"Select {ids[-1]}")
    (late,) = await many(site, "moving", 1)
    await expect(first.get_by_role("checkbox")).to_have_accessible_name(f"Select {late}")
    await rows(page).nth(1).hover()
    (later,) = await many(site, "moving", 1)
    fresh = page.get_by_role("button", name="1 new task")
    await expect(fresh).to_be_visible()
    await expect(row(page, later)).to_have_count(0)
    # What is shown is told anew all the same, even if it would be on another page by now.
    site.ask("DELETE", f"api/v1/tasks/{ids[0]}")
    await expect(row(page, ids[0])).to_contain_text("cancelled")
    site.ask("POST", "api/v1/tasks/delete", {"task_ids": [ids[0]]})
    await expect(row(page, ids[0])).to_contain_text("deleted")
    await page.mouse.move(0, 0)
    await expect(row(page, ids[0])).to_have_count(0)
    await expect(row(page, later)).to_be_visible()
    # A selection holds it as well, until it is asked for what is new.
    await page.get_by_label(f"Select {late}").click()
    await page.mouse.move(0, 0)
    (last,) = await many(site, "moving", 1)
    await fresh.click()
    await expect(row(page, last)).to_be_visible()
    await expect(page.get_by_label(f"Select {late}")).to_be_checked()


async def test_a_store_without_tasks_says_how_to_begin(alone: Dashboard) -> None:
    site = alone.site
    page = await alone.open("tasks")
    await expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    await page.get_by_role("button", name="Pause everything").click()
    await answer(page, "Running tasks continue", "Pause everything")
    await expect(page.get_by_role("button", name="Resume everything")).to_be_visible()
    await page.get_by_label("All types together").fill("2.5")
    await page.get_by_role("button", name="Set", exact=True).click()
    task_id = await site.submit()
    await row(page, task_id).get_by_role("button", name="Why?").click()
    await expect(row(page, task_id)).to_contain_text("paused")
    assert site.ask("GET", "api/v1/control")["rate_limit"] == 2.5
    await page.get_by_role("button", name="Resume everything").click()
    await site.reaches(task_id, "completed")
    await expect(row(page, task_id)).to_contain_text("completed")
