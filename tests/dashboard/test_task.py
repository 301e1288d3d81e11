"""The page of a task: what it tells of one in every state, and what it does with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.async_api import Locator, Page, expect

from fairlane.core.ids import new_id
from fairlane.core.retry import RetryPolicy
from tests.dashboard.kit import Dashboard

CLIPBOARD = ["clipboard-read", "clipboard-write"]
DESCEND = """async (tree) => {
  while (!tree.textContent.includes("the bottom")) {
    [...tree.querySelectorAll("details:not([open]) > summary")]
      .findLast(({ textContent }) => textContent.startsWith("level"))?.click();
    await new Promise(requestAnimationFrame);
  }
}"""
"""Opens what is within what was opened, one after the other."""


def panel(page: Page, title: str) -> Locator:
    return page.locator(".panel", has=page.get_by_role("heading", name=title, exact=True))


def fact(page: Page, name: str) -> Locator:
    return panel(page, "About").locator(f"dt:text-is('{name}') + dd")


def station(page: Page, state: str) -> Locator:
    return page.locator(f".state-path [data-state={state}]")


async def press(page: Page, name: str) -> Locator:
    """The question that a button asks."""
    await page.get_by_role("main").get_by_role("button", name=name, exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    return dialog


async def confirm(page: Page, name: str) -> None:
    await (await press(page, name)).get_by_role("button", name=name, exact=True).click()


async def copied(page: Page) -> Any:
    return await page.evaluate("navigator.clipboard.readText()")


async def test_a_task_that_waits_says_why_and_can_be_cancelled_and_deleted(
    dashboard: Dashboard,
) -> None:
    site = dashboard.site
    task_id = await site.submit(
        "idle",
        {"order": 7, "lines": [{"sku": "a"}, None, True]},
        priority="low",
        tags={"team": "billing"},
        required_capabilities=["gpu"],
        idempotency_key=f"key of {new_id()}",
        expires_at=datetime.now(UTC) + timedelta(hours=2),
        max_retries=5,
        retry_policy=RetryPolicy(10, 2, 60, 0),
        timeout_seconds=90,
    )
    stored = await site.task(task_id)
    page = await dashboard.open(f"tasks/{task_id}")
    await expect(page).to_have_title(f"idle …{task_id[-8:]} · Fairlane")
    await expect(page.get_by_role("heading", level=1)).to_have_text("idle queued")
    await expect(panel(page, "Why is this task waiting?")).to_contain_text("capability gpu")
    await expect(fact(page, "Id")).to_have_text(task_id)
    await expect(fact(page, "Attempts")).to_have_text("0, 0 of at most 6 failures")
    await expect(fact(page, "Priority")).to_contain_text("low")
    await expect(fact(page, "Capabilities")).to_have_text("gpu")
    await expect(fact(page, "Idempotency key")).to_have_text(str(stored.idempotency_key))
    await expect(fact(page, "Trace id")).to_contain_text(stored.trace_id)
    await expect(fact(page, "Expires")).to_contain_text("in 1.9 h")
    await expect(fact(page, "Timeout")).to_have_text("1.5 min")
    await expect(fact(page, "Retries")).to_have_text(
        "up to 5, after 10 s, 20 s, 40 s … at most 1 min"
    )
    await expect(panel(page, "Parameters")).to_contain_text('sku: "a"')
    await expect(panel(page, "Runs")).to_contain_text("None yet.")
    tag = page.get_by_role("link", name="team: billing")
    await expect(tag).to_have_attribute("href", "#/tasks?tag=team%3Abilling")

    dialog = await press(page, "Cancel task")
    await expect(dialog).to_contain_text("It will not run.")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert (await site.task(task_id)).status == "queued"
    await confirm(page, "Cancel task")
    await site.reaches(task_id, "cancelled")
    await expect(station(page, "cancelled")).to_have_attribute("aria-current", "step")
    await expect(panel(page, "Why is this task waiting?")).to_have_count(0)

    await confirm(page, "Delete")
    await expect(page.get_by_role("heading", name="Tasks", level=1)).to_be_visible()
    assert await site.world.run(site.world.ops.get([task_id])) == [None]


async def test_a_dead_letter_is_read_and_replayed_on_other_terms(dashboard: Dashboard) -> None:
    site = dashboard.site
    task_id = await site.ran("flaky", {"failures": 2}, max_retries=0)
    page = await dashboard.another(permissions=CLIPBOARD)
    await dashboard.visit(page, f"tasks/{task_id}")
    error = panel(page, "Error")
    await expect(error).to_contain_text("Not on attempt 1.")
    await expect(error).to_contain_text("max retries exceeded")
    await expect(error).to_contain_text("in flaky")  # the traceback
    await error.get_by_role("button", name="Copy the error").click()
    assert (await copied(page)).startswith("Not on attempt 1.\n\nTraceback")
    await page.get_by_role("button", name="Copy the id").click()
    await expect(page.get_by_role("status").filter(has_text="Copied the id.")).to_be_visible()
    assert await copied(page) == task_id

    dialog = await press(page, "Replay")
    await dialog.get_by_label("Reset its retry count").uncheck()
    await dialog.get_by_label("Priority").select_option("high")
    await dialog.get_by_role("button", name="Replay").click()
    await expect(error).to_contain_text("Not on attempt 2.")
    task = await site.reaches(task_id, "dead_letter")
    assert (task.attempt, task.retry_count, task.priority) == (2, 2, 8)
    await confirm(page, "Replay")
    task = await site.reaches(task_id, "completed")
    assert (task.attempt, task.retry_count, task.priority) == (3, 0, 8)

    await expect(station(page, "completed")).to_have_attribute("aria-current", "step")
    await expect(station(page, "executing")).to_contain_text("3 times")
    await expect(station(page, "scheduled")).to_contain_text("not reached")
    await expect(panel(page, "Result").locator(".json")).to_have_text("3")
    await expect(error).to_have_count(0)
    runs = panel(page, "Runs").locator(".runs > li")
    await expect(runs).to_contain_text(["#3completed", "Not on attempt 2.", "Not on attempt 1."])
    await runs.nth(2).locator("summary").click()
    await expect(runs.nth(2).locator("pre")).to_contain_text("ConnectionError")
    await page.get_by_text("9 steps").click()
    await expect(page.get_by_role("row")).to_have_count(10)
    worker = runs.nth(0).get_by_role("link")
    await expect(worker).to_have_attribute("href", f"#/workers?id={task.attempts[0].worker_id}")


async def test_a_running_task_is_followed_and_cancelled(dashboard: Dashboard) -> None:
    site = dashboard.site
    told = {"percent": 40, "message": "Row 4 of 10"}
    running = await site.submit("hold", {"file": site.file("followed"), **told})
    child = await site.submit("greet", depends_on=[running])
    early = await site.submit("greet", depends_on=[running])
    doomed = await site.submit("hold", {"file": site.file("never")})
    await site.reaches(running, "executing")
    page = await dashboard.open(f"tasks/{running}")
    await expect(panel(page, "Progress")).to_contain_text("40 %")
    await expect(panel(page, "Progress")).to_contain_text("Row 4 of 10")
    await expect(panel(page, "Runs")).to_contain_text("#1executing")

    # One that waits for it, and one that no longer does.
    await dashboard.open(f"tasks/{child}")
    parents = panel(page, "Depends on")
    await expect(parents).to_contain_text("holdexecuting")
    await expect(panel(page, "Why is this task waiting?")).to_contain_text(running)
    await dashboard.open(f"tasks/{early}")
    await confirm(page, "Run now")
    await site.reaches(early, "completed")
    await expect(station(page, "completed")).to_have_attribute("aria-current", "step")

    await dashboard.open(f"tasks/{child}")
    site.release("followed")
    await expect(parents).to_contain_text("holdcompleted")
    await expect(panel(page, "Result")).to_contain_text('hello: "you"')
    await parents.get_by_role("link").click()
    await expect(panel(page, "Result")).to_contain_text("released")

    await site.reaches(doomed, "executing")
    await dashboard.open(f"tasks/{doomed}")
    dialog = await press(page, "Cancel task")
    await expect(dialog).to_contain_text("Its worker is asked to stop")
    await dialog.get_by_role("button", name="Cancel task").click()
    await site.reaches(doomed, "cancelled")
    await expect(page.get_by_role("heading", level=1)).to_have_text("hold cancelled")


async def test_a_large_document_is_read_bit_by_bit(dashboard: Dashboard) -> None:
    deep: Any = "the bottom"
    for level in range(64):
        deep = {f"level {level}": deep}
    value = {
        "many": list(range(10_000)),
        "deep": deep,
        "long": "x" * 20_000,
        "large": 12345678901234567890,
        "__proto__": "a name like any other",
        "<b>": "<i>",
        "none": None,
    }
    task_id = await dashboard.site.ran("echo", {"value": value})
    page = await dashboard.another(permissions=CLIPBOARD)
    await dashboard.visit(page, f"tasks/{task_id}")
    result = panel(page, "Result")
    tree = result.locator(".json")
    await expect(tree).to_contain_text("large: 12345678901234567890")
    await expect(tree).to_contain_text('__proto__: "a name like any other"')
    await expect(tree).to_contain_text('<b>: "<i>"')
    assert await tree.locator("*").count() < 100  # of ten thousand and more
    await result.get_by_text("many").click()
    await expect(tree.get_by_text("99", exact=True)).to_have_count(2)  # its name and its value
    await result.get_by_role("button", name="Show more: 9,900 left").click()
    await expect(tree.get_by_text("599", exact=True)).to_have_count(2)
    await result.get_by_text("many").click()
    await expect(tree.get_by_text("99", exact=True)).to_have_count(0)
    await tree.evaluate(DESCEND)
    await expect(tree).to_contain_text('level 0: "the bottom"')
    await result.get_by_role("button", name="Show all 20,000 characters").click()
    await expect(tree).to_contain_text("x" * 20_000)
    await result.get_by_role("button", name="Raw").click()
    assert json.loads("".join(await result.locator("pre div").all_text_contents())) == value
    await result.get_by_role("button", name="Copy the result").click()
    await expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert json.loads(await copied(page)) == value


async def test_a_task_that_is_gone_is_told_of_kindly(dashboard: Dashboard) -> None:
    dashboard.expects("404")
    site = dashboard.site
    page = await dashboard.open(f"tasks/{new_id()}")
    await expect(page.get_by_role("heading", name="There is no such task")).to_be_visible()
    task_id = await site.ran("greet")
    await dashboard.open(f"tasks/{task_id}")
    await site.world.run(site.world.ops.delete([task_id]))
    await expect(page.get_by_role("heading", name="This greet is gone")).to_be_visible()
    await page.get_by_role("link", name="To all tasks").click()
    await expect(page.get_by_role("heading", name="Tasks", level=1)).to_be_visible()


async def test_what_is_told_in_words(dashboard: Dashboard) -> None:
    page = await dashboard.open("workers")

    async def told(module: str, call: str, *given: Any) -> Any:
        return await page.evaluate(
            """async ([module, call, given]) => {
              const main = document.querySelector("script[type=module]").src;
              return (await import(new URL(module, main).href))[call](...given);
            }""",
            [module, call, given],
        )

    async def policy(most: int, base: float, factor: float, cap: float, jitter: float) -> Any:
        terms = {"base_seconds": base, "factor": factor, "cap_seconds": cap, "jitter": jitter}
        task = {"max_retries": most, "retry_policy": terms}
        return await told("pages/task/facts.js", "policy", task)

    assert await policy(0, 1, 2, 300, 0.1) == "none"
    assert await policy(1, 1, 2, 300, 0.1) == "up to 1, after 1 s, give or take 10 %"
    assert await policy(4, 30, 1, 300, 0) == "up to 4, after 30 s each"
    assert await policy(2, 10, 3, 20, 0) == "up to 2, after 10 s, 20 s"
    assert await policy(9, 1, 2, 300, 0) == "up to 9, after 1 s, 2 s, 4 s … at most 5 min"
    health = {"cpu_share": 0.234, "memory_bytes": "?", "toString": {"a": 1}, "busy_for": None}
    assert await told("pages/workers/health.js", "healthOf", health) == [
        ["CPU", "23 %"],
        ["memory bytes", "?"],
        ["toString", '{"a":1}'],
        ["busy for", "null"],
    ]
