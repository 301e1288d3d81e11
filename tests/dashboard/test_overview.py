"""The overview: how the whole stands, and what can be done about all of it."""

from __future__ import annotations

import re

import msgspec
from playwright.async_api import Route, expect

from fairlane.core.unserved import UnservedLane
from tests.dashboard.kit import Dashboard
from tests.fixtures.stores import get_all


async def test_a_store_that_has_seen_nothing_says_how_to_begin(alone: Dashboard) -> None:
    page = await alone.open()
    await expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    here = f"{alone.site.address}/"
    for shown in (f"--store {here}", f'app = Fairlane("{here}")', f"worker --server {here}"):
        await expect(page.get_by_text(shown)).to_be_visible()
    program = await page.locator("pre", has_text="import Fairlane").inner_text()
    assert program.startswith("# shop.py\n")
    *_, condition, submission = program.splitlines()
    assert condition == 'if __name__ == "__main__":', "a worker that imports it submits nothing"
    assert submission.startswith("    greet.submit_sync(")
    await alone.site.ran("greet")
    await expect(page.get_by_role("heading", name="No tasks yet")).to_have_count(0)


async def test_what_there_is_at_a_glance(dashboard: Dashboard) -> None:
    site = dashboard.site
    await site.ran("greet")
    failed = await site.ran("fail", {"message": "Out of tea"}, max_retries=0)
    await site.submit("idle", priority="low")
    page = await dashboard.open()
    for state, least in {"queued": 1, "completed": 1, "dead letter": 1}.items():
        card = page.locator(".card", has_text=re.compile(state, re.IGNORECASE))
        assert int(await card.locator("b").inner_text()) >= least
    depth = page.get_by_role("img", name="Tasks that are queued, by priority, over time")
    await expect(depth.locator("canvas")).to_be_visible()
    await expect(page.locator("figcaption").first).to_contain_text(re.compile(r"low\s+[1-9]"))
    await page.get_by_role("button", name="24 h").click()
    await expect(page.get_by_role("button", name="24 h")).to_have_attribute("aria-pressed", "true")
    bars = page.locator(".bar-list")
    await expect(bars.get_by_role("link", name="greet")).to_have_attribute(
        "href", "#/tasks?type=greet"
    )
    failure = page.locator(".item-list li", has_text="Out of tea").first
    await expect(failure.get_by_role("link")).to_have_attribute("href", f"#/tasks/{failed}")
    await expect(page.locator(".facts")).to_contain_text("1 active worker")


async def test_tasks_that_no_worker_serves_are_flagged(dashboard: Dashboard) -> None:
    page = await dashboard.open()
    flag = page.get_by_role("region", name="Tasks that no worker takes")
    await expect(page.locator(".cards")).to_be_visible()

    async def age(route: Route) -> None:
        """Let half an hour pass, which a running server does not notice."""
        answer = await route.fetch()
        lane = UnservedLane("hall", "greet", ("voice",), 62, 1860.0)
        held = UnservedLane("default", "hang", (), 1, 100.0, held_back=True)
        json = {**await answer.json(), "unserved": msgspec.to_builtins([lane, held])}
        await route.fulfill(response=answer, json=json)

    await page.route("**/api/v1/queue/stats", age)
    await page.reload()
    await expect(flag).to_contain_text(
        "No worker serves queue hall, type greet, capability voice: 62 tasks wait, the oldest for"
    )
    await expect(flag).to_contain_text(
        "Every worker that serves queue default, type hang holds the type back, because its "
        "handlers hang: 1 task waits"
    )
    await expect(flag.get_by_role("link").first).to_have_attribute(
        "href", re.compile(r"#/tasks\?.*queue=hall.*")
    )


async def test_a_task_submitted_elsewhere_counts_at_once(dashboard: Dashboard) -> None:
    page = await dashboard.open()
    card = page.locator(".card", has_text="Scheduled").locator("b")
    before = int(await card.inner_text())
    await dashboard.site.submit("greet", delay_seconds=3600)
    await expect(card).to_have_text(str(before + 1))


async def test_everything_is_paused_and_limited(alone: Dashboard) -> None:
    site = alone.site
    page = await alone.open()
    await page.get_by_role("button", name="Pause everything").click()
    question = page.get_by_role("dialog")
    await expect(question).to_contain_text("Pause everything?")
    await question.get_by_role("button", name="Pause everything").click()
    await expect(page.get_by_role("button", name="Resume everything")).to_be_visible()
    held = await site.submit("greet")
    assert site.ask("GET", "api/v1/control")["paused"] is True
    await page.get_by_role("spinbutton").fill("2.5")
    await page.get_by_role("button", name="Set", exact=True).click()
    await expect(page.get_by_role("button", name="Set", exact=True)).to_have_count(0)
    assert site.ask("GET", "api/v1/control")["rate_limit"] == 2.5
    assert await site.world.state(held) == "queued"
    await page.get_by_role("button", name="Resume everything").click()
    await site.reaches(held, "completed")
    await page.get_by_role("spinbutton").fill("")
    await page.get_by_role("spinbutton").press("Enter")
    await expect(page.get_by_role("button", name="Set", exact=True)).to_have_count(0)
    assert site.ask("GET", "api/v1/control")["rate_limit"] == 0


async def test_completed_tasks_are_cleaned_up(alone: Dashboard) -> None:
    site = alone.site
    done = [await site.ran("greet") for _ in range(3)]
    failed = await site.ran("fail", max_retries=0)
    page = await alone.open()
    question = page.get_by_role("dialog")
    for age, count in {"an hour": "0 completed tasks", "a moment": "3 completed tasks"}.items():
        await page.get_by_label("Delete completed tasks").select_option(age)
        await page.get_by_role("button", name="Clean up").click()
        await expect(question).to_contain_text(f"Delete {count}?")
        await question.get_by_role("button", name="Back").click()
        assert [await site.world.state(each) for each in done] == ["completed"] * 3
    await page.get_by_role("button", name="Clean up").click()
    await question.get_by_role("button", name="Clean up").click()
    await expect(page.get_by_text("3 tasks deleted.")).to_be_visible()
    assert await get_all(site.world.backend, done) == [None] * 3
    assert await site.world.state(failed) == "dead_letter"
