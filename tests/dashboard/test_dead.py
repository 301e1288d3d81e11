"""The page of dead letters: what went wrong, and another chance for them."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.dashboard.kit import Dashboard, Site
from tests.dashboard.questions import answer, ask, confirm
from tests.fixtures.stores import settlement


def group(page: Page, text: str) -> Locator:
    return page.get_by_role("table", name="Failures").locator("tbody tr", has_text=text)


def letters(page: Page) -> Locator:
    return page.get_by_role("table", name="Dead letters").locator("tbody tr")


def letter(page: Page, task_id: str) -> Locator:
    return letters(page).filter(has=page.get_by_label(f"Select {task_id}"))


def whole(page: Page) -> Locator:
    """What there is to be done with all that match, or all that are selected."""
    return page.locator(".panel", has=page.get_by_role("table", name="Dead letters")).locator(
        "header"
    )


async def dead(site: Site, type: str, *messages: str) -> list[str]:
    """New dead letters of a type that nobody serves."""
    world = site.world
    tasks = [new_task(type, None, max_retries=0, queue=f"{type}.queue") for _ in messages]
    ids = await world.submit_all(tasks)
    worker = await world.worker(capacity=len(ids), types=frozenset({type}))
    claimed = await world.claim(worker, len(ids), types=frozenset({type}))
    said = dict(zip(ids, messages, strict=True))
    failures = [settlement(task, Failed(TaskError.of(said[task.task_id], "E"))) for task in claimed]
    await world.run(world.ops.settle(failures))
    return ids


async def test_from_the_first_to_the_last(alone: Dashboard) -> None:
    site = alone.site
    page = await alone.open("dead")
    await expect(page.get_by_text("No dead letters")).to_be_visible()
    flaky = [await site.submit("flaky", max_retries=0) for _ in range(2)]
    await expect(group(page, "flaky")).to_contain_text("ConnectionError")
    await expect(letters(page)).to_have_count(2)
    await expect(page.get_by_role("img", name="Runs that failed a minute")).to_be_visible()
    one, two, three, four = await dead(
        site, "shop.sell", "no user 1", "no user 22", "disk 'a' is full", "no user 333"
    )
    alike = group(page, "no user <n>")
    await expect(alike.locator(".number")).to_have_text("3")
    await expect(alike).to_contain_text("100 %")
    await expect(page.locator(".bar-list li", has_text="shop.sell")).to_contain_text("4")

    dialog = await ask(group(page, "flaky"), "Replay")
    await expect(dialog).to_contain_text("Replay 2 dead letters of flaky?")
    await dialog.get_by_label("Reset their retry counts").uncheck()
    await dialog.get_by_label("Priority").select_option("low")
    await answer(dialog, "Replay")
    for task_id in flaky:
        task = await site.reaches(task_id, "completed")
        assert (task.priority, task.attempt) == (2, 2)
    await expect(page.get_by_text("2 dead letters replayed.")).to_be_visible()
    await expect(group(page, "flaky")).to_have_count(0)
    await expect(letters(page)).to_have_count(4)

    await alike.get_by_role("link", name="shop.sell").click()
    await expect(letters(page)).to_have_count(3)
    await page.reload()  # the group is in the address
    await expect(letters(page)).to_have_count(3)
    await confirm(whole(page), "Replay", "Replay 3 dead letters?")
    for task_id in (one, two, four):
        task = await site.reaches(task_id, "queued")
        assert task.retry_count == 0
    assert (await site.task(three)).status is State.DEAD_LETTER
    await expect(page.get_by_text("No dead letter matches")).to_be_visible()
    await page.get_by_role("link", name="Show all", exact=True).first.click()
    await expect(letters(page)).to_have_count(1)
    await confirm(whole(page), "Delete", "Delete 1 dead letter?")
    await expect(page.get_by_role("heading", name="No dead letters")).to_be_visible()
    assert await site.world.census() == {State.COMPLETED: 2, State.QUEUED: 3}


async def test_some_of_a_list(dashboard: Dashboard) -> None:
    site = dashboard.site
    await dead(site, "left.alone", "boom")
    ids = await dead(site, "some.type", *(f"{number}: no such thing" for number in range(4)))
    page = await dashboard.open("dead", type="some.type")
    await expect(letters(page)).to_have_count(4)
    shown = letter(page, ids[0])
    await expect(shown).to_contain_text("0: no such thing")
    await expect(shown).to_contain_text("some.type.queue")
    await shown.get_by_label("Select").check()
    await letter(page, ids[2]).get_by_label("Select").click(modifiers=["Shift"])
    await expect(whole(page)).to_contain_text("3 selected")
    await letter(page, ids[1]).get_by_label("Select").uncheck()
    await confirm(whole(page), "Delete", "Delete 2 dead letters? They cannot be restored.")
    await expect(letters(page)).to_have_count(2)
    left = await site.world.run(site.world.ops.get(ids))
    assert [task is None for task in left] == [True, False, True, False]

    dialog = await ask(letter(page, ids[1]), "Replay")
    await expect(dialog).to_contain_text("Replay 1 dead letter (some.type)?")
    await answer(dialog, "Back")
    assert await site.world.state(ids[1]) is State.DEAD_LETTER
    await confirm(letter(page, ids[1]), "Replay", "Replay 1 dead letter")
    await site.reaches(ids[1], "queued")
    await expect(letters(page)).to_have_count(1)
    await confirm(letter(page, ids[3]), "Delete", "Delete 1 dead letter")
    await expect(page.get_by_text("No dead letter matches")).to_be_visible()


async def test_filters(dashboard: Dashboard) -> None:
    site = dashboard.site
    await dead(site, "first.type", "boom")
    (other,) = await dead(site, "other.type", "boom")
    tagged = await site.ran("fail", max_retries=0, tags={"team": "blue:1"}, queue="tagged")
    page = await dashboard.open("dead")
    await page.get_by_label("Type").select_option("other.type")
    await expect(letters(page)).to_have_count(1)
    await expect(letter(page, other)).to_be_visible()
    await page.get_by_label("Type").select_option("")
    await page.get_by_label("Queue").select_option("tagged")
    await expect(letters(page)).to_have_count(1)
    await expect(letter(page, tagged)).to_be_visible()
    await page.get_by_label("Queue").select_option("")
    await page.get_by_label("Submitted").select_option("last hour")
    await expect(letter(page, other)).to_be_visible()
    await page.get_by_label("Tag").fill("team:blue:1")
    (late,) = await dead(site, "late.type", "boom")
    await expect(letter(page, late)).to_be_visible()  # the page is drawn anew under whoever types
    await page.get_by_label("Tag").press("Enter")
    await expect(letters(page)).to_have_count(1)
    await expect(letter(page, tagged)).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Tag")).to_have_value("team:blue:1")
    await confirm(whole(page), "Delete", "Delete 1 dead letter?")
    await expect(page.get_by_text("No dead letter matches")).to_be_visible()
    assert await site.world.run(site.world.ops.get([tagged])) == [None]
    await page.get_by_role("link", name="Show all", exact=True).first.click()
    await expect(letter(page, other)).to_be_visible()


async def test_pages_of_it(dashboard: Dashboard) -> None:
    site = dashboard.site
    ids = await dead(site, "long.type", *["too long"] * 52)
    await dead(site, "long.type", "another failure")
    failure = next(
        each["failure"]
        for each in site.ask("GET", "api/v1/dlq/analysis")["groups"]
        if each["shape"] == "too long"
    )
    page = await dashboard.open("dead", type="long.type", failure=failure)
    await expect(letters(page)).to_have_count(50)
    await page.get_by_role("link", name="Older").click()
    await expect(letters(page)).to_have_count(2)
    await expect(letter(page, min(ids))).to_be_visible()
    await page.get_by_role("link", name="To the newest").click()
    await expect(letters(page)).to_have_count(50)
    await page.get_by_label("Select the page").check()
    await confirm(whole(page), "Delete", "Delete 50 dead letters?")
    await expect(letters(page)).to_have_count(2)
    await confirm(whole(page), "Delete", "Delete 2 dead letters?")
    await expect(page.get_by_text("No dead letter matches")).to_be_visible()
    assert await site.world.run(site.world.ops.get(ids)) == [None] * 52
