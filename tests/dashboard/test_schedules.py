"""Schedules: what the list and the page of one tell, and what an operator does with them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from fairlane.core.ids import new_id
from fairlane.core.recurrence import cron, every
from fairlane.core.schedules import Outcome
from tests.conftest import Servers
from tests.dashboard.kit import Dashboard, Site, served
from tests.dashboard.questions import answer, ask, confirm

HOUR = 3_600
HOURS = 30
HOURLY = every(HOUR)
CLOCK_CHANGES = cron("30 2 29-31 3 *", "Europe/Berlin")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(
    kind: str, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    """A site without a worker: the store's clock is set, and tasks that were fired must wait."""
    async with served(kind, servers, tmp_path_factory.mktemp("site"), worker=False) as found:
        yield found


def row(page: Page, schedule_id: str) -> Locator:
    return page.get_by_role("table", name="Schedules").locator(f"tr[data-name='{schedule_id}']")


def panel(page: Page, title: str) -> Locator:
    return page.locator(".panel", has=page.get_by_role("heading", name=title, exact=True))


def fact(page: Page, title: str, name: str) -> Locator:
    return panel(page, title).locator(f"dt:text-is('{name}') + dd")


def ticks(where: Locator) -> Locator:
    return where.locator(".tick-strip .tick")


async def shown_outcomes(where: Locator) -> list[str]:
    """The outcomes of a strip's cells, the oldest first."""
    found: list[str] = await ticks(where).evaluate_all(
        "all => all.map((one) => one.dataset.outcome)"
    )
    return found


async def lived(site: Site, schedule_id: str) -> None:
    """An hourly schedule that began more than a day ago, with a tick of nearly every outcome."""
    world = site.world
    await world.set_clock(-HOURS * HOUR)
    await site.schedule(
        schedule_id, HOURLY, task={"type": "idle"}, missed="skip", note="Until June."
    )

    async def pass_by(hours: int) -> None:
        await world.set_clock(hours * HOUR)
        while (await world.run(world.ops.fire_due())).more:
            pass

    await world.set_clock(HOUR - (await now(site)) % HOUR + 1)
    await pass_by(0)  # fired, in the first minute of the hour
    await pass_by(1)  # and nobody runs the task
    await world.run(world.ops.cancel([str((await site.scheduled(schedule_id)).standing.last_task)]))
    await world.set_clock(120)
    await pass_by(5)  # missed: two minutes late
    await world.run(world.ops.pause_schedule(schedule_id, note="migration"))
    await pass_by(3)
    await world.run(world.ops.resume_schedule(schedule_id))
    await world.run(world.ops.run_schedule(schedule_id, new_id()))
    await world.set_clock(datetime.now(UTC).timestamp() - await now(site))
    await pass_by(0)  # missed


async def now(site: Site) -> float:
    """The store's time, in seconds."""
    return (await site.world.run(site.world.ops.facts())).now / 1_000_000


async def test_the_list_tells_when_each_fires_and_what_became_of_its_ticks(
    dashboard: Dashboard,
) -> None:
    site = dashboard.site
    await lived(site, "lived")
    await site.schedule("bank-holidays", cron("0 9 * * MON", "Asia/Tokyo"), owner="shop:app")
    await site.schedule("once", ends_at=datetime.now(UTC) + timedelta(days=400))
    page = await dashboard.open("schedules")
    first = row(page, "lived")
    await expect(first).to_contain_text("Every hour")
    await expect(first).to_contain_text("active")
    await expect(first.locator(".next-tick time")).to_have_text(re.compile(r"in \d|just now"))
    assert (await shown_outcomes(first))[:5] == ["fired", "overlap", "missed", "paused", "manual"]
    await expect(first.locator(".tick").nth(2)).to_have_attribute(
        "title", re.compile(r"5 ticks up to this one.*missed\. Not fired")
    )
    await expect(
        first.get_by_role("img", name=re.compile("Last ticks: .*1 overlap"))
    ).to_be_visible()
    code = row(page, "bank-holidays")
    await expect(code).to_contain_text("code")
    await expect(code).to_contain_text("09:00 on Monday, Asia/Tokyo")
    await expect(code.locator(".next-tick small")).to_contain_text("Mon, ")
    await expect(code.locator(".tick-strip")).to_have_count(0)
    # Rows are in the order of their names, whatever is due next, and others if one wants.
    names = page.get_by_role("table", name="Schedules").locator("tbody tr")
    assert await names.evaluate_all("all => all.map((one) => one.dataset.name)") == sorted(
        await names.evaluate_all("all => all.map((one) => one.dataset.name)")
    )
    await page.get_by_role("columnheader", name="Next tick").get_by_role("link").click()
    await expect(names.first).to_have_attribute("data-name", "lived")
    # What somebody else makes appears by itself.
    await site.schedule("by-somebody-else")
    await expect(row(page, "by-somebody-else")).to_be_visible()


async def test_one_schedule_in_full(dashboard: Dashboard) -> None:
    site = dashboard.site
    await site.schedule(
        "clock-changes",
        CLOCK_CHANGES,
        task={
            "type": "idle",
            "payload": {"customer": "Ada"},
            "queue": "reports",
            "priority": "high",
            "max_retries": 7,
            "tags": {"team": "finance"},
        },
        overlap="queue",
        missed="all",
        most=48,
        within=timedelta(days=2),
        jitter=30,
        count=12,
        pause_after_failures=5,
        note="Finance reads it.",
    )
    page = await dashboard.open("schedules/clock-changes")
    await expect(page.get_by_role("heading", name="clock-changes")).to_be_visible()
    await expect(page).to_have_title("clock-changes · Fairlane")
    upcoming = panel(page, "Next ticks").get_by_role("listitem")
    await expect(upcoming).to_have_count(5)
    await expect(upcoming.first).to_contain_text(re.compile(r"Mar (28|29), \d{4}, 02:30 AM"))
    await expect(panel(page, "Next ticks")).to_contain_text("+02:00")
    await expect(panel(page, "Next ticks")).to_contain_text("the clock is set forward")
    for name, text in {
        "Rule": "30 2 29-31 3 *",
        "Time zone": "Europe/Berlin",
        "If the last task runs": "Wait for its end",
        "Missed ticks": "Fire each of them, at most 48",
        "At the latest": "2 d after the tick",
        "Jitter": "up to 30 s",
        "Ticks left": "12 of 12",
        "After failures": "Pauses after 5 failed tasks in a row",
        "Note": "Finance reads it.",
    }.items():
        await expect(fact(page, "About", name)).to_have_text(text)
    for name, text in {"Type": "idle", "Queue": "reports", "Priority": "high"}.items():
        await expect(fact(page, "Task", name)).to_have_text(text)
    await expect(fact(page, "Task", "Retries")).to_contain_text("up to 7")
    await expect(fact(page, "Task", "Tags")).to_contain_text("finance")
    await expect(page.get_by_role("group", name="Parameters")).to_contain_text('customer: "Ada"')
    await expect(panel(page, "Last ticks")).to_contain_text("0 fired, 0 skipped, 0 missed")


async def test_a_run_by_hand_leads_to_its_task_and_back(dashboard: Dashboard) -> None:
    site = dashboard.site
    await site.schedule("by-hand", task={"type": "idle"})
    await site.submit("idle")
    page = await dashboard.open("schedules")
    await confirm(row(page, "by-hand"), "Run now", "Run by-hand now?")
    await expect(page.get_by_role("status").last).to_contain_text("was submitted")
    await expect(ticks(row(page, "by-hand"))).to_have_count(1)
    (run,) = (await site.scheduled("by-hand")).standing.runs
    assert (run.outcome, (await site.task(str(run.task_id))).type) == (Outcome.MANUAL, "idle")
    await row(page, "by-hand").get_by_role("link", name="by-hand").click()
    await panel(page, "Runs").get_by_role("link").click()
    await expect(page).to_have_url(re.compile(f"#/tasks/{run.task_id}$"))
    await expect(page.locator("dt:text-is('Scheduled for') + dd")).to_contain_text("ago")
    await page.locator("dd").get_by_role("link", name="by-hand").click()
    await page.get_by_role("link", name="All its tasks").click()
    await expect(page).to_have_url(dashboard.link("tasks", schedule_id="by-hand"))
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.get_by_role("button", name="Remove schedule by-hand").click()
    await expect(page.locator("tbody tr")).not_to_have_count(1)
    await page.get_by_role("button", name="More filters").click()
    await page.get_by_label("Schedule", exact=True).fill("by-hand")
    await page.get_by_label("Schedule", exact=True).press("Enter")
    await expect(page.locator("tbody tr")).to_have_count(1)


async def test_all_tasks_of_a_schedule_are_changed_and_no_others(dashboard: Dashboard) -> None:
    site, world = dashboard.site, dashboard.site.world
    await site.schedule("mistake", task={"type": "idle"})
    task_ids = [await world.run(world.ops.run_schedule("mistake", new_id())) for _ in range(51)]
    other = await site.submit("idle")
    page = await dashboard.open("tasks", schedule_id="mistake")
    await expect(page.locator("tbody tr")).to_have_count(50)
    await page.get_by_label("Select the page").click()
    await page.get_by_role("button", name="Select all 51 that match").click()
    await confirm(page.get_by_role("group", name="Selected tasks"), "Cancel", "Cancel 51 tasks?")
    await expect(page.get_by_role("status").last).to_contain_text("51 tasks cancelled.")
    for task_id in task_ids:
        await site.reaches(task_id, "cancelled")
    assert await world.state(other) == "queued"


async def test_pause_with_a_note_and_resume(dashboard: Dashboard) -> None:
    site = dashboard.site
    await site.schedule("halted")
    page = await dashboard.open("schedules")
    dialog = await ask(row(page, "halted"), "Pause")
    await answer(dialog, "Back")
    assert (await site.scheduled("halted")).standing.pause is None
    dialog = await ask(row(page, "halted"), "Pause")
    await dialog.get_by_label("Note").fill(" The disk is full. ")
    await answer(dialog, "Pause")
    await expect(row(page, "halted")).to_contain_text("paused")
    await expect(row(page, "halted")).to_contain_text("when it is resumed")
    pause = (await site.scheduled("halted")).standing.pause
    assert pause is not None
    assert (pause.note, pause.until) == ("The disk is full.", None)

    await row(page, "halted").get_by_role("link", name="halted").click()
    await expect(page.locator(".banner.paused")).to_contain_text("The disk is full.")
    await expect(panel(page, "Next ticks")).to_contain_text("None: the schedule is paused.")
    dialog = await ask(page.get_by_role("main"), "Resume")
    await dialog.get_by_label("Ticks that it missed").select_option("once")
    await answer(dialog, "Resume")
    await expect(page.locator(".banner.paused")).to_have_count(0)
    assert (await site.scheduled("halted")).standing.pause is None
    newest, *_ = (await site.world.run(site.world.ops.audit(1))).entries
    assert (newest.action, json.loads(newest.detail)) == ("schedule.resume", {"missed": "once"})

    dialog = await ask(page.get_by_role("main"), "Pause")
    await dialog.get_by_label("Until").fill("2001-01-01T00:00")
    await answer(dialog, "Pause")
    dashboard.expects("422")
    await expect(page.get_by_role("alert")).to_contain_text("until lies in the past")
    dialog = await ask(page.get_by_role("main"), "Pause")
    await dialog.get_by_label("Until").fill("2199-01-01T00:00")
    await answer(dialog, "Pause")
    await expect(page.locator(".banner.paused")).to_contain_text("It resumes in")
    await expect(panel(page, "Next ticks").get_by_role("listitem")).to_have_count(5)


async def test_a_backfill_is_counted_first(dashboard: Dashboard) -> None:
    dashboard.expects("422")
    site = dashboard.site
    await site.schedule("filled", HOURLY, task={"type": "idle"})
    page = await dashboard.open("schedules/filled")
    form = panel(page, "Backfill")
    button = form.get_by_role("button", name="Backfill")
    await expect(button).to_be_disabled()
    await form.get_by_label("Since").fill("2026-01-05T06:30")
    await form.get_by_label("Before").fill("2026-01-05T06:40")
    await button.click()
    await expect(form.get_by_role("alert")).to_contain_text("no tick in this time")
    await form.get_by_label("Before").fill("2030-01-05T06:30")
    await button.click()
    await expect(form.get_by_role("alert")).to_contain_text("backfill it in parts")
    await form.get_by_label("Before").fill("2026-01-05T09:30")
    await form.get_by_label("If the last task runs").select_option("allow")
    await confirm(form, "Backfill", "Submit 3 tasks, for the ticks from")
    await expect(page.get_by_role("status").last).to_contain_text("3 tasks submitted.")
    await expect(panel(page, "Runs")).to_contain_text("3 ticks")
    (run,) = (await site.scheduled("filled")).standing.runs
    assert (run.outcome, run.count) == (Outcome.MANUAL, 3)


async def test_a_schedule_is_deleted(dashboard: Dashboard) -> None:
    dashboard.expects("404", "409")
    site, world = dashboard.site, dashboard.site.world
    await site.schedule("dropped")
    page = await dashboard.open("schedules/dropped")
    dialog = await ask(page.get_by_role("main"), "Delete")
    await world.run(world.ops.pause_schedule("dropped", note="Do not delete it."))
    await answer(dialog, "Delete")
    await expect(page.get_by_role("alert")).to_contain_text("Somebody else has changed")
    await expect(page.locator(".banner.paused")).to_contain_text("Do not delete it.")
    dialog = await ask(page.get_by_role("main"), "Delete")
    await expect(dialog).to_contain_text("Delete dropped?")
    await answer(dialog, "Delete")
    await expect(page).to_have_url(dashboard.link("schedules"))
    await expect(row(page, "dropped")).to_have_count(0)
    assert await world.run(world.ops.schedules(["dropped"])) == [None]
    for view in ("schedules/dropped", "schedule?id=dropped"):
        await page.goto(dashboard.link(view))
        await expect(page.get_by_role("heading", name="There is no such schedule")).to_be_visible()


async def test_the_palette_finds_schedules_and_creates_them(dashboard: Dashboard) -> None:
    await dashboard.site.schedule("findable")
    page = await dashboard.open()
    for text, address in (
        ("findab", "schedules/findable"),
        ("create a s", "schedule"),
        ("schedules", "schedules"),
    ):
        await page.keyboard.press("Control+k")
        await page.get_by_role("combobox", name="Search").fill(text)
        await expect(
            page.get_by_role("listbox", name="Found").get_by_role("option").first
        ).to_contain_text(re.compile(text, re.IGNORECASE))
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(dashboard.link(address))


async def test_none_and_many(alone: Dashboard) -> None:
    site = alone.site
    page = await alone.open("schedules")
    await expect(page.get_by_role("main")).to_contain_text("No schedules yet")
    await expect(page.get_by_role("main")).to_contain_text("fairlane schedule put nightly")
    for number in range(60):
        await site.schedule(f"many.{number:02}", every(100 * 86_400 + number))
    await expect(page.locator("tbody tr")).to_have_count(50)
    await page.get_by_role("link", name="More").click()
    await expect(page.locator("tbody tr")).to_have_count(10)
    await page.get_by_role("link", name="To the first ones").click()
    await expect(page.locator("tbody tr")).to_have_count(50)
