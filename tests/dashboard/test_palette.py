"""Search and commands, by the keyboard alone."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from tests.dashboard.kit import Dashboard


def found(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Found").get_by_role("option")


async def sought(page: Page, text: str) -> Locator:
    """The first of what is found for a text."""
    await page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search")
    await expect(field).to_be_focused()
    await field.fill(text)
    return found(page).first


async def lands(page: Page, text: str, label: str, address: str) -> None:
    await expect(await sought(page, text)).to_have_text(re.compile(label))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page).to_have_url(re.compile(re.escape(address) + "$"))


async def test_it_finds_pages_tasks_types_queues_tags_and_states(dashboard: Dashboard) -> None:
    site = dashboard.site
    task_id = await site.submit("unheard", queue="attic", tags={"customer": "a b:7"})
    page = await dashboard.open()
    await lands(page, "worke", "Workers", "#/workers")
    await lands(page, f" {task_id} ", "unheard", f"#/tasks/{task_id}")
    await lands(page, f"…{task_id[-8:]}", "unheard", f"#/tasks/{task_id}")
    await lands(page, "unhe", "unheard.*type", "#/tasks?type=unheard")
    await lands(page, "queue att", "attic.*queue", "#/tasks?queue=attic")
    await lands(page, "custom", "customer:a b:7.*tag", "#/tasks?tag=customer%3Aa+b%3A7")
    await lands(page, "tag:who:me", "who:me.*tag", "#/tasks?tag=who%3Ame")
    await lands(page, "dead l", "Dead letters.*page", "#/dead")
    await lands(page, "canc", "cancelled.*status", "#/tasks?status=cancelled")
    # Of a task that nobody has seen lately, and may be no more, the page itself tells.
    unknown = "01a1e05a-1100-7d3f-94d2-d3a40573e738"
    await expect(await sought(page, unknown)).to_have_text(re.compile(unknown))
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_the_keyboard_is_enough(dashboard: Dashboard) -> None:
    page = await dashboard.open("workers")
    opener = page.get_by_role("button", name="Search")
    await opener.focus()
    await page.keyboard.press("/")
    field = page.get_by_role("combobox", name="Search")
    options = found(page)
    await expect(field).to_be_focused()
    await expect(options.first).to_have_attribute("aria-selected", "true")
    chosen = await options.nth(1).get_attribute("id")
    await page.keyboard.press("ArrowDown")
    await expect(field).to_have_attribute("aria-activedescendant", str(chosen))
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("ArrowUp")
    await expect(options.last).to_have_attribute("aria-selected", "true")
    await field.fill("nothing is called this")
    await expect(page.get_by_role("dialog")).to_contain_text("No match")
    await page.keyboard.press("Escape")
    await expect(opener).to_be_focused()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Next task")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    # What is typed into a field goes there.
    await page.goto(dashboard.link("tasks"))
    await page.get_by_label("Tag").press("?")
    await expect(page.get_by_label("Tag")).to_have_value("?")


async def test_commands(alone: Dashboard) -> None:
    site = alone.site
    page = await alone.open()
    await sought(page, "pause")
    await page.keyboard.press("Enter")
    question = page.get_by_role("dialog")
    await question.get_by_role("button", name="Pause everything").click()
    await expect(page.get_by_role("status").last).to_contain_text("Everything is paused.")
    assert site.ask("GET", "api/v1/control")["paused"] is True
    await sought(page, "resume")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").last).to_contain_text("Everything is resumed.")
    assert site.ask("GET", "api/v1/control")["paused"] is False
    await sought(page, "colours")
    await page.keyboard.press("Enter")
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
