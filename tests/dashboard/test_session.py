"""Who may look and who may change: signing in and out, and tokens that end under an open page."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from fairlane.core.ownership import stamped
from fairlane.core.submission import new_task
from tests.dashboard.axe import judged
from tests.dashboard.kit import PHONE, Dashboard, Site, views
from tests.dashboard.scene import shipped
from tests.e2e.chaos.arena import until

REASON = re.compile(r"This takes a token with the scope (admin|submit)\.")
VIEW = "tasks?status=completed&type=greet"


async def locked(site: Site) -> None:
    """Until the server has noticed that there are tokens."""

    async def noticed() -> bool:
        required: bool = site.ask("GET", "auth/session")["required"]
        return required

    await until(noticed, "tokens are asked for")


async def sign_in(page: Page, secret: str) -> None:
    await page.get_by_label("Token").fill(secret)
    await page.get_by_role("button", name="Sign in").click()


async def at(page: Page, view: str) -> None:
    """Until one is in, at this view."""
    await expect(page.locator(".nav .connection")).to_have_text("Live")
    await expect(page.get_by_role("heading", name="Tasks", exact=True)).to_be_visible()
    assert page.url.endswith(f"/#/{view}")


async def test_in_and_out(dashboard: Dashboard) -> None:
    dashboard.expects("401")
    _, secret = await dashboard.site.token("admin", name="Ada")
    await locked(dashboard.site)
    page = await dashboard.another()
    await page.goto(dashboard.link(VIEW))
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await sign_in(page, "fl_wrong")
    await expect(page.get_by_role("alert")).to_contain_text("token")
    await sign_in(page, secret)
    await at(page, VIEW)
    # No script can get at what it signed in with.
    kept = "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])"
    assert "fl_" not in await page.evaluate(kept)
    await expect(page.get_by_role("button", name="Sign out")).to_have_attribute(
        "title", "Signed in as Ada"
    )
    await page.reload()
    await at(page, VIEW)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await expect(page.get_by_role("navigation")).to_have_count(0)
    assert await page.evaluate("fetch('api/v1/tasks').then(({status}) => status)") == 401
    world = dashboard.site.world
    kinds = [(each.name, each.kind) for each in await world.run(world.ops.tokens())]
    assert ("Ada", "session") not in kinds


async def test_signing_in_is_for_everybody(dashboard: Dashboard) -> None:
    await dashboard.site.token("read", name="anybody")
    await locked(dashboard.site)
    page = await dashboard.another(PHONE, bypass_csp=True)
    await page.goto(dashboard.link())
    await expect(page.get_by_label("Token")).to_be_focused()
    assert await judged(page, "sign in") == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_bound_token_sees_its_own_tasks_and_is_told_what_it_may_not_see(
    dashboard: Dashboard,
) -> None:
    dashboard.expects("401", "404")
    site = dashboard.site
    _, secret = await site.token("submit", "read", name="acme", own=True)
    theirs = await site.submit()
    (mine,) = await site.world.submit_all([stamped(new_task("greet", {"name": "me"}), "acme")])
    await locked(site)
    page = await dashboard.another()
    await page.goto(dashboard.link("workers"))
    await sign_in(page, secret)
    await expect(page.get_by_role("heading", name="Not for this token")).to_be_visible()
    await expect(page.get_by_text("Your token is bound to the tasks of 'acme'.")).to_be_visible()
    await expect(page.locator(".nav .connection")).to_have_text("Every 5 s")
    await expect(page.locator(".nav ul a")).to_have_text(["Tasks", "Workflows"])
    await expect(page.locator(".banner")).to_have_count(0)
    await page.get_by_role("link", name="See your tasks").click()
    await expect(page.locator(f"a[href$='{mine}']").first).to_be_visible()
    await expect(page.locator(f"a[href$='{theirs}']")).to_have_count(0)
    (later,) = await site.world.submit_all([stamped(new_task("greet", {"name": "us"}), "acme")])
    await expect(page.locator(f"a[href$='{later}']").first).to_be_visible(timeout=20_000)
    await site.reaches(mine, "completed")
    await page.goto(dashboard.link(f"tasks/{mine}"))
    await expect(page.locator("dt:has-text('Owner') + dd")).to_have_text("acme")
    await expect(page.get_by_role("button", name="Delete")).to_be_enabled()
    await page.goto(dashboard.link(f"tasks/{theirs}"))
    await expect(page.get_by_text("There is no such task")).to_be_visible()


async def test_a_token_that_ends_under_an_open_page(dashboard: Dashboard) -> None:
    dashboard.expects("401", "no valid credentials")
    site = dashboard.site
    token_id, revoked = await site.token("admin", name="revoked")
    _, lasting = await site.token("admin", name="lasting")
    await locked(site)
    page = await dashboard.another()
    await page.goto(dashboard.link(VIEW))
    await sign_in(page, revoked)
    await at(page, VIEW)
    await site.world.run(site.world.ops.drop_token(token_id))
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    _, short = await site.token("read", name="short", lifetime=4.0)
    await sign_in(page, short)
    await at(page, VIEW)
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await sign_in(page, lasting)
    await at(page, VIEW)
    # And it is alive again.
    await site.submit("greet", tags={"after": "all"})
    await expect(page.get_by_role("row").filter(has_text="greet")).not_to_have_count(0)


async def test_who_may_only_look(dashboard: Dashboard) -> None:
    """Whatever would be refused cannot be pressed, and says why."""
    site = dashboard.site
    task_id = await site.submit("idle", queue="slow", delay_seconds=3600)
    await site.ran("fail", max_retries=0)
    schedule_id = await site.schedule("yearly")
    workflow_id = await shipped(site)
    _, secret = await site.token("read", name="reader")
    await locked(site)
    page = await dashboard.another()
    await page.goto(dashboard.link())
    await sign_in(page, secret)
    for view in views(task_id, schedule_id, workflow_id):
        await dashboard.visit(page, view)
        actions = page.locator("main .action-button button")
        await expect(actions.first, view or "overview").to_be_visible()
        for button in await actions.all():
            await expect(button, view).to_be_disabled()
            await expect(button, view).to_have_attribute("title", REASON)
