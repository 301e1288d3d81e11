"""For everybody: by what machines can judge, with a keyboard alone, and on a telephone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from fairlane import State
from tests.dashboard.axe import judged
from tests.dashboard.kit import DESKTOP, PHONE, Dashboard, Site, views
from tests.dashboard.scene import SCHEDULE, furnished, shipped

BEYOND = """() => {
  const scrolls = (one) =>
    one && (getComputedStyle(one).overflowX !== "visible" || scrolls(one.parentElement));
  const outside = (one) => one.getBoundingClientRect().right > innerWidth + 1;
  return [...document.querySelectorAll("#app *")]
    .filter((one) => outside(one) && !scrolls(one.parentElement))
    .map((one) => one.outerHTML.slice(0, 120));
}"""
"""What lies beyond the edge of the window, and not in something that scrolls by itself."""

WATCH = """() => {
  const controls = "a[href], button, input, select, textarea, summary, [tabindex]";
  window.there = [...document.querySelectorAll(controls)];
  window.reached = new Set();
  window.unmarked = [];
  document.addEventListener("focusin", ({ target }) => {
    reached.add(target);
    const { outlineStyle, outlineWidth } = getComputedStyle(target);
    const seen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
    if (!seen) unmarked.push(target.outerHTML.slice(0, 120));
  });
}"""
MISSED = """() => there
  .filter((one) => one.isConnected && !one.disabled && one.tabIndex >= 0)
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !reached.has(one))
  .map((one) => one.outerHTML.slice(0, 120))"""
"""Controls that were there from the beginning and were not reached. Others may appear meanwhile,
such as a warning about tasks that have waited for a minute."""

MOST_STEPS = 400
MORE = ["schedules/paused", "schedule?id=paused"]

OTHERS = [State.EXECUTING, State.DEAD_LETTER, State.RETRYING, State.COMPLETED]

THEMES: list[Literal["light", "dark"]] = ["light", "dark"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tasks(site: Site) -> AsyncIterator[dict[State, str]]:
    """A task in each state."""
    yield await furnished(site)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def workflow_id(site: Site) -> AsyncIterator[str]:
    """A workflow that runs."""
    yield await shipped(site)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["wide", "narrow"])
async def test_by_the_rules(
    size: tuple[int, int], dashboard: Dashboard, tasks: dict[State, str], workflow_id: str
) -> None:
    """In both themes."""
    # The judge is a script from elsewhere, which the page would not let in.
    page = await dashboard.another(size, bypass_csp=True)
    wrong: list[str] = []
    others = [f"tasks/{tasks[state]}" for state in OTHERS]
    shown = views(tasks[State.SCHEDULED], SCHEDULE, workflow_id)
    for view in [*shown, *others, *MORE, "nowhere"]:
        await dashboard.visit(page, view)
        wrong += await in_both_themes(page, view)
        if size is PHONE and await page.evaluate(
            "document.documentElement.scrollWidth > innerWidth"
        ):
            wrong += [f"{view}: wider than the window: {await page.evaluate(BEYOND)}"]
    await dashboard.visit(page, f"workflows/{workflow_id}?view=timeline")
    await page.locator("[data-box]").first.hover()
    await expect(page.get_by_role("group", name="About the task")).to_contain_text("Result")
    wrong += await in_both_themes(page, "card")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog")).to_be_visible()
    wrong += await in_both_themes(page, "palette")
    await page.keyboard.press("Escape")
    await dashboard.visit(page)
    await page.get_by_role("button", name="Pause", exact=False).first.click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    wrong += await in_both_themes(page, "question")
    await page.keyboard.press("Escape")
    assert not wrong, "\n".join(wrong)


async def in_both_themes(page: Page, where: str) -> list[str]:
    wrong: list[str] = []
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme)
        await expect(page.locator("html")).to_have_attribute("data-theme", theme)
        wrong += await judged(page, f"{where} ({theme})")
    return wrong


async def test_with_a_keyboard_alone(
    dashboard: Dashboard, tasks: dict[State, str], workflow_id: str
) -> None:
    """Tab leads to every control, and where one is can be seen."""
    wrong: list[str] = []
    for view in views(tasks[State.SCHEDULED], SCHEDULE, workflow_id):
        page = await dashboard.another()
        await dashboard.visit(page, view)
        await page.evaluate(WATCH)
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.className") == "skip-link", view
        for _ in range(MOST_STEPS):
            await page.keyboard.press("Tab")
            if await page.evaluate("document.activeElement.matches('body, .skip')"):
                break
        wrong += [f"{view}: not reached: {each}" for each in await page.evaluate(MISSED)]
        wrong += [f"{view}: focus not seen: {each}" for each in await page.evaluate("unmarked")]
        await page.close()
    assert not wrong, "\n".join(wrong)


async def test_straight_to_the_content(dashboard: Dashboard) -> None:
    page = await dashboard.open("workers")
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("Skip to the content")).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    assert page.url == dashboard.link("workers")
