"""The form that creates and edits schedules."""

from __future__ import annotations

from datetime import UTC, datetime

from playwright.async_api import expect

from fairlane.core.recurrence import cron, every
from fairlane.core.schedules import Missed, Overlap
from tests.dashboard.kit import Dashboard


async def test_a_schedule_is_created_with_a_preview_while_one_types(dashboard: Dashboard) -> None:
    dashboard.expects("422", "409", "404")  # and a type that no worker has published
    site = dashboard.site
    page = await dashboard.open("schedules")
    await page.get_by_role("button", name="Create a schedule").click()
    preview = page.get_by_role("group", name="The next ticks")
    await page.get_by_label("Cron expression").fill("30 2 * * * *")
    await expect(preview).to_contain_text("seconds are not supported")
    await page.get_by_label("Cron expression").fill("30 2 * * MON")
    await page.get_by_label("Time zone").fill("Europe/Berlin")
    await expect(preview).to_contain_text("At 02:30 on Monday, Europe/Berlin")
    await expect(preview.get_by_role("listitem")).to_have_count(5)
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("please correct the marked fields")
    await expect(page.get_by_label("Id")).to_be_focused()
    await page.get_by_label("Id").fill("not a name")
    await page.get_by_label("Type").fill("settle")
    await page.get_by_label("All parameters").fill('{"customer": "acme"}')
    await page.get_by_label("Missed ticks").select_option("all")
    await page.get_by_label("At most").fill("7")
    await page.get_by_label("Note").fill("For Ada.")
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("schedule")
    await page.get_by_label("Id").fill("created")
    await page.get_by_role("button", name="Create", exact=True).click()
    # Nobody handles this type, which is said where it stands, with the way out.
    await expect(page.get_by_label("Type")).to_be_focused()
    said = page.locator(".field", has=page.get_by_label("Type"))
    await expect(said).to_contain_text("No worker handles this type.")
    assert await site.world.run(site.world.ops.schedules(["created"])) == [None]
    allow = page.get_by_label("Its workers come later")
    await page.get_by_label("Type").fill("settled")
    await expect(allow).to_have_count(0)
    await page.get_by_label("Type").fill("settle")
    await allow.check()
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page.get_by_role("heading", name="created")).to_be_visible()
    stored = await site.scheduled("created")
    assert stored.rule == cron("30 2 * * MON", "Europe/Berlin")
    assert (stored.template.type, stored.payload) == ("settle", b'{"customer":"acme"}')
    assert (stored.policy.missed, stored.policy.most) == (Missed.ALL, 7)
    assert (stored.policy.overlap, stored.note) == (Overlap.SKIP, "For Ada.")
    # Its name is taken now.
    await page.goto(dashboard.link("schedule"))
    await page.get_by_label("Rule").select_option("every")
    await page.get_by_label("Every", exact=True).fill("90")
    await page.get_by_label("Offset").fill("30")
    await expect(preview).to_contain_text("Every 90 minutes, 30 seconds later")
    await page.get_by_label("Id").fill("created")
    await page.get_by_label("Type").fill("echo")
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("There is a schedule created already")
    await page.get_by_label("Id").fill("created.too")
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page.get_by_role("heading", name="created.too")).to_be_visible()
    assert (await site.scheduled("created.too")).rule == every(5_400, 30)


async def test_an_edit_changes_what_was_changed_unless_somebody_was_faster(
    dashboard: Dashboard,
) -> None:
    dashboard.expects("409", "404")
    site, world = dashboard.site, dashboard.site.world
    starts_at = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
    task = {
        "type": "idle",
        "payload": {"a": 1},
        "timeout_seconds": 77,
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
    }
    await site.schedule("edited", task=task, starts_at=starts_at, note="old")
    before = await site.scheduled("edited")
    page = await dashboard.open("schedules/edited")
    await page.get_by_role("button", name="Edit").click()
    await expect(page.get_by_label("Timeout")).to_have_value("77")
    await page.get_by_label("Note").fill("new")
    await page.get_by_label("All parameters").fill('{"a":2}')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="edited")).to_be_visible()
    await expect(page.locator("dt:text-is('Note') + dd")).to_have_text("new")
    after = await site.scheduled("edited")
    assert (after.note, after.payload) == ("new", b'{"a":2}')
    assert (after.rule, after.policy, after.template) == (
        before.rule,
        before.policy,
        before.template,
    )

    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Note").fill("newest")
    await world.run(world.ops.pause_schedule("edited"))
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text(
        "Somebody else has changed this schedule"
    )
    await expect(page.get_by_label("Note")).to_have_value("newest")
    assert (await site.scheduled("edited")).note == "new"


async def test_code_is_changed_in_code(dashboard: Dashboard) -> None:
    site = dashboard.site
    await site.schedule("in-code", owner="shop:app")
    page = await dashboard.open("schedules/in-code")
    heading = page.locator(".page-heading")
    await expect(heading).to_contain_text("Declared in code of shop:app")
    await expect(heading.get_by_role("button", name="Pause")).to_be_visible()
    for name in ("Edit", "Delete"):
        await expect(heading.get_by_role("button", name=name)).to_have_count(0)
    await page.goto(dashboard.link("schedule", id="in-code"))
    await expect(page.get_by_role("main")).to_contain_text("This schedule is declared in code")
    await expect(page.get_by_role("button", name="Save")).to_have_count(0)
