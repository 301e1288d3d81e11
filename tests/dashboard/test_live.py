"""What happens elsewhere shows by itself; a server that was killed comes back under the page."""

from __future__ import annotations

from playwright.async_api import expect

from tests.dashboard.kit import Dashboard


async def test_what_happens_elsewhere(dashboard: Dashboard) -> None:
    site = dashboard.site
    await site.ran("greet")  # so that neither page is empty
    listed = await dashboard.open("tasks", tag="seen:live")
    overview = await dashboard.another()
    await dashboard.visit(overview)
    cards = overview.locator("main .card[data-state=executing] b")
    await expect(cards).to_have_text("0")
    payload = {"file": site.file("live"), "percent": 40.0}
    task_id = await site.submit("hold", payload, tags={"seen": "live"})
    rows = listed.locator("main").get_by_role("row").filter(has_text="hold")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("executing")
    await expect(cards).to_have_text("1")
    site.release("live")
    await site.reaches(task_id, "completed")
    await expect(rows).to_contain_text("completed")
    await expect(cards).to_have_text("0")
    await site.ran("fail", {"message": "Heard of it at once."}, max_retries=0)
    await expect(overview.locator("main")).to_contain_text("Heard of it at once.")


async def test_the_server_is_killed_and_comes_back(dashboard: Dashboard) -> None:
    dashboard.expects("ERR_CONNECTION", "WebSocket", "dynamically imported module")
    site = dashboard.site
    mine = {"test": "killed"}
    before = await site.ran("greet", {"name": "before"}, tags=mine)
    page = await dashboard.open("tasks", tag="test:killed")
    rows = page.locator("main").get_by_role("row").filter(has_text="greet")
    await expect(rows).to_have_count(1)
    elsewhere = await dashboard.another()
    await dashboard.visit(elsewhere)
    site.server.kill()
    for shown in (page, elsewhere):
        await expect(shown.get_by_text("The server is not reachable")).to_be_visible()
        await expect(shown.locator(".nav .connection")).to_have_text("Server away")
    await expect(rows).to_have_count(1)  # what was known stays
    # A page that has not been fetched yet cannot be; it says so.
    await elsewhere.get_by_role("navigation").get_by_role("link", name="Workers").click()
    await expect(elsewhere.get_by_role("alert")).to_contain_text("could not be loaded")
    meanwhile = await site.ran("greet", {"name": "meanwhile"}, tags=mine)
    site.server.start()
    # It tries again after a while, which grows with every time.
    await expect(page.locator(".nav .connection")).to_have_text("Live", timeout=60_000)
    await expect(page.get_by_text("The server is not reachable")).to_have_count(0)
    await expect(rows).to_have_count(2)
    for task_id in (before, meanwhile):
        await expect(page.locator(f"main a[href*='{task_id}']").first).to_be_visible()
    await elsewhere.get_by_role("button", name="Try again").click()
    await expect(elsewhere.get_by_role("heading", name="Workers")).to_be_visible()
    # And what happens from now on is heard of.
    await site.ran("greet", {"name": "after"}, tags=mine)
    await expect(rows).to_have_count(3)
