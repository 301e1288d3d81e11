"""The page of a workflow: the graph, the timeline and the list of its tasks."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from playwright.async_api import Locator, Page, Request, expect

from fairlane.core.ids import new_id, numbered
from fairlane.runtime.graph import Graph
from fairlane.runtime.mermaid import mermaid
from tests.dashboard.apps import app, echo, fail, flaky, greet, hold, refuse
from tests.dashboard.kit import PHONE, Dashboard
from tests.dashboard.questions import answer, ask, confirm

CLIPBOARD = ["clipboard-read", "clipboard-write"]
PLACES = """() => [...document.querySelectorAll(".graph-box")].map((one) => ({
  id: one.dataset.box,
  left: one.offsetLeft,
  top: one.offsetTop,
  right: one.offsetLeft + one.offsetWidth,
  bottom: one.offsetTop + one.offsetHeight,
}))"""
DRAWN_IN = """async (address) => {
  const started = performance.now();
  const long = [];
  const observer = new PerformanceObserver((list) => long.push(...list.getEntries()));
  observer.observe({ type: "longtask" });
  location.hash = address;
  while (!document.querySelector(".graph-box")) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  const passed = performance.now() - started;
  await new Promise((done) => setTimeout(done, 100));
  return [passed, ...long.map(({ duration }) => duration)].map(Math.round);
}"""
"""How long it takes to show a graph, with the request, and the long tasks on the way."""


def box(page: Page, name: str) -> Locator:
    """The box of a task in the graph."""
    return page.locator(".graph-box", has=page.get_by_text(name, exact=True))


def row(page: Page, name: str) -> Locator:
    """The row of a task in the timeline or in the list."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def card(page: Page) -> Locator:
    return page.get_by_role("group", name="About the task")


def order(dashboard: Dashboard, file: str) -> Graph:
    """A task, then one that waits for a file, then one that takes its result."""
    with app.graph("order") as g:
        loaded = g.add(greet.options(node="load"), "Ada")
        packed = g.add(hold.options(node="pack", after=[loaded]), dashboard.site.file(file))
        g.returns(g.add(echo.options(node="ship"), packed))
    return g


async def places(page: Page) -> dict[str, dict[str, int]]:
    """Where the boxes are, by their tasks."""
    return {each.pop("id"): each for each in await page.evaluate(PLACES)}


async def test_it_is_live_and_nothing_moves(dashboard: Dashboard) -> None:
    site = dashboard.site
    workflow_id = await site.workflow(order(dashboard, "live"))
    pack, ship = numbered(workflow_id, 2), numbered(workflow_id, 3)
    page = await dashboard.open(f"workflows/{workflow_id}")
    await expect(page).to_have_title(f"order …{workflow_id[-8:]} · Fairlane")
    await expect(page.get_by_role("heading", level=1)).to_have_text("order running")
    await expect(box(page, "load")).to_have_attribute("data-state", "completed")
    await expect(box(page, "pack")).to_have_attribute("data-state", "executing")
    await expect(box(page, "ship")).to_have_attribute("data-state", "scheduled")
    before = await places(page)
    assert before[pack]["right"] < before[ship]["left"]
    site.release("live")
    await expect(page.get_by_role("heading", level=1)).to_have_text("order completed")
    for name in ("load", "pack", "ship"):
        await expect(box(page, name)).to_have_attribute("data-state", "completed")
        await expect(box(page, name)).to_have_attribute("data-critical", "true")
    assert await places(page) == before
    await expect(page.get_by_role("link", name="3 completed")).to_be_visible()
    await expect(page.get_by_role("button", name="Cancel workflow")).to_have_count(0)
    await box(page, "ship").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("echo completed")
    assert page.url == dashboard.link(f"tasks/{ship}")
    await page.get_by_role("main").get_by_role("link", name="order").click()
    await expect(page.locator(".graph-box")).to_have_count(3)


async def test_many_alike_tasks_are_one_box(dashboard: Dashboard) -> None:
    with app.graph("many") as g:
        first = g.add(greet, "Ada")
        lines = [g.add(echo.options(after=[first]), number) for number in range(40)]
        others = [g.add(echo.options(after=[lines[0]]), number) for number in range(3)]
        g.returns(lines[1:] + others)
    workflow_id = await dashboard.site.workflow(g)
    page = await dashboard.open(f"workflows/{workflow_id}")
    # One of the forty has children: it is not like the others.
    group = box(page, "39 × echo")
    await expect(group).to_contain_text("39 completed")
    await expect(page.locator(".graph-box")).to_have_count(6)
    await group.click()
    rows = page.get_by_role("table", name="Tasks").locator("tbody tr")
    await expect(rows).to_have_count(39)
    await expect(page.get_by_role("list", name="Active filters")).to_contain_text("alike echo")
    await page.get_by_role("link", name="Remove alike echo").click()
    await expect(rows).to_have_count(44)
    await page.get_by_role("link", name="Timeline").click()
    await expect(row(page, "39 × echo").get_by_role("img")).to_have_attribute(
        "aria-label", re.compile("^39 completed; .* from first to last")
    )


async def test_a_card_tells_of_a_task(dashboard: Dashboard) -> None:
    with app.graph("told") as g:
        first = g.add(greet.options(node="load"), "Ada Lovelace")
        second = g.add(echo.options(node="pack"), first)
        g.add(fail.options(node="send", after=[second], max_retries=0), "No such street.")
    workflow_id = await dashboard.site.workflow(g)
    ids = [numbered(workflow_id, number) for number in (1, 2, 3)]
    await dashboard.site.reaches(ids[2], "dead_letter")
    page = await dashboard.open(f"workflows/{workflow_id}")
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.extend(each for each in ids if request.url.endswith(each))

    page.on("request", note)
    await expect(card(page)).to_have_count(0)
    await box(page, "load").hover()
    await expect(card(page)).to_contain_text("Ada Lovelace")
    await expect(card(page).get_by_role("group", name="Result")).to_contain_text('"hello"')
    await expect(card(page)).to_contain_text("ran for")
    assert asked == ids[:1]
    # The pointer may enter the card, and the keyboard closes it.
    await card(page).hover()
    await page.keyboard.press("Escape")
    await expect(card(page)).to_have_count(0)
    await box(page, "load").focus()
    await page.keyboard.press("ArrowRight")
    await expect(box(page, "pack")).to_be_focused()
    await expect(card(page)).to_contain_text("value: the result of \u2068load\u2069")
    await page.keyboard.press("ArrowRight")
    await expect(box(page, "send")).to_be_focused()
    await expect(card(page).locator(".error-message")).to_have_text("No such street.")
    await page.keyboard.press("ArrowRight")
    await expect(box(page, "send")).to_be_focused()
    await page.keyboard.press("ArrowLeft")
    await expect(box(page, "pack")).to_be_focused()
    assert await page.locator(".graph-box[tabindex='0']").count() == 1
    await page.keyboard.press("Enter")
    assert page.url == dashboard.link(f"tasks/{ids[1]}")


async def test_the_timeline_shows_who_waited_for_whom(dashboard: Dashboard) -> None:
    site = dashboard.site
    with app.graph("late") as g:
        early = g.add(greet.options(node="early"), "Ada")
        late = g.add(hold.options(node="late"), site.file("late"))
        g.add(echo.options(node="both", after=[early, late]), 1)
        g.add(echo.options(node="one", after=[early]), 1)
    workflow_id = await site.workflow(g)
    page = await dashboard.open(f"workflows/{workflow_id}?view=timeline")
    waited = row(page, "both").get_by_role("cell")
    await expect(waited.first).to_have_text("\u2068late\u2069")
    await expect(row(page, "late").locator("[data-kind=ran]")).to_be_visible()
    await expect(row(page, "both").locator("[data-kind=ran]")).to_have_count(0)
    site.release("late")
    await expect(page.get_by_role("heading", level=1)).to_have_text("late completed")
    await expect(waited.first).to_have_text("\u2068late\u2069")
    await expect(row(page, "one").get_by_role("cell").first).to_have_text("\u2068early\u2069")
    await expect(row(page, "both").get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(r"^Waited .* for .late., started .* later, ran for")
    )
    critical = page.locator(".timeline tr[data-critical=true] th")
    await expect(critical).to_have_text(["late", "both"])
    bars = page.locator(".timeline [data-kind=ran]")
    sides = [await each.bounding_box() for each in await bars.all()]
    assert len(sides) == 4
    ends = {name: await end_of(row(page, name)) for name in ("late", "both")}
    assert ends["late"] <= ends["both"]
    await row(page, "late").get_by_role("link").hover()
    await expect(card(page)).to_contain_text("released")


async def end_of(shown: Locator) -> float:
    """Where the bar of a run ends."""
    found = await shown.locator("[data-kind=ran]").bounding_box()
    assert found is not None
    return found["x"] + found["width"]


async def test_what_failed_and_what_never_ran(dashboard: Dashboard) -> None:
    with app.graph("broken") as g:
        refused = g.add(refuse.options(node="charge"), "The card was declined.")
        shipped = g.add(echo.options(node="ship", after=[refused]), 1)
        g.add(
            greet.options(node="tell", after=[shipped], on_parent_failure="continue"),
            "Ada",
        )
    workflow_id = await dashboard.site.workflow(g)
    await dashboard.site.reaches(numbered(workflow_id, 3), "completed")
    page = await dashboard.open(f"workflows/{workflow_id}?view=list")
    await expect(page.get_by_role("heading", level=1)).to_have_text("broken failed")
    failed = page.locator(".panel", has=page.get_by_role("heading", name="What failed"))
    await expect(failed.get_by_role("listitem")).to_have_count(1)
    await expect(failed).to_contain_text("The card was declined.")
    await expect(row(page, "ship")).to_contain_text("never ran")
    await expect(row(page, "charge")).to_contain_text("The card was declined.")
    await page.get_by_role("link", name="1 cancelled").click()
    rows = page.get_by_role("table", name="Tasks").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("ship")
    await page.get_by_role("link", name="Remove state cancelled").click()
    await expect(rows).to_have_count(3)
    await page.get_by_role("columnheader", name="Task").get_by_role("link").click()
    await expect(rows.first).to_contain_text("charge")
    await page.get_by_role("columnheader", name="Task").get_by_role("link").click()
    await expect(rows.first).to_contain_text("tell")


async def test_it_is_cancelled(dashboard: Dashboard) -> None:
    workflow_id = await dashboard.site.workflow(order(dashboard, "cancelled"))
    await dashboard.site.reaches(numbered(workflow_id, 2), "executing")
    page = await dashboard.open(f"workflows/{workflow_id}")
    await confirm(page.get_by_role("main"), "Cancel workflow", "Cancel this workflow?")
    await expect(page.get_by_role("status").last).to_contain_text("2 tasks cancelled.")
    await expect(page.get_by_role("heading", level=1)).to_have_text("order cancelled")
    await dashboard.site.reaches(numbered(workflow_id, 3), "cancelled")


async def test_its_text_is_copied(dashboard: Dashboard) -> None:
    with app.graph("copied") as g:
        first = g.add(greet.options(node='a "quoted" <name>'), "Ada")
        g.returns(g.add(echo, first))
    workflow_id = await dashboard.site.workflow(g)
    await dashboard.site.reaches(numbered(workflow_id, 2), "completed")
    page = await dashboard.another(permissions=CLIPBOARD)
    await dashboard.visit(page, f"workflows/{workflow_id}")
    await page.get_by_role("button", name="Copy the Mermaid text").click()
    await expect(page.get_by_text("Copied the Mermaid text.")).to_be_visible()
    found = await dashboard.site.world.run(dashboard.site.world.ops.workflow(workflow_id))
    assert found is not None
    assert await copied(page) == mermaid(found)
    await page.get_by_role("button", name="Copy the JSON").click()
    await expect(page.get_by_text("Copied the JSON.")).to_be_visible()
    answer = dashboard.site.ask("GET", f"api/v1/workflows/{workflow_id}")
    assert json.loads(await copied(page)) == answer


async def copied(page: Page) -> Any:
    return await page.evaluate("navigator.clipboard.readText()")


async def test_a_phone_shows_the_list_first(dashboard: Dashboard) -> None:
    workflow_id = await dashboard.site.workflow(order(dashboard, "phone"))
    page = await dashboard.another(PHONE)
    await dashboard.visit(page, f"workflows/{workflow_id}")
    await expect(page.get_by_role("table", name="Tasks").locator("tbody tr")).to_have_count(3)
    await page.get_by_role("link", name="Graph").click()
    await expect(page.locator(".graph-box")).to_have_count(3)
    dashboard.site.release("phone")


async def test_parts_of_it_are_gone(dashboard: Dashboard) -> None:
    dashboard.expects("404")
    site = dashboard.site
    with app.graph("gone") as g:
        first = g.add(greet.options(node="first"), "Ada")
        g.add(echo.options(node="second", after=[first]), 1)
    workflow_id = await site.workflow(g)
    ids = [numbered(workflow_id, number) for number in (1, 2)]
    await site.reaches(ids[1], "completed")
    page = await dashboard.open(f"workflows/{workflow_id}")
    await expect(page.locator(".graph-box")).to_have_count(2)
    await site.world.run(site.world.ops.delete(ids[:1]))
    await expect(page.locator(".graph-box")).to_have_count(1)
    await expect(page.get_by_role("main")).to_contain_text("the others were deleted")
    await dashboard.visit(page, f"workflows/{new_id()}")
    await expect(page.get_by_role("heading", name="There is no such workflow")).to_be_visible()


def grid(layers: int, width: int) -> Graph:
    """Tasks in layers; each depends on two of the layer before, so that no two are alike."""
    with app.graph("grid") as g:
        layer = [g.add(echo, number) for number in range(width)]
        for _ in range(layers - 1):
            layer = [
                g.add(echo.options(after=[layer[number], layer[(number + 7) % width]]), number)
                for number in range(width)
            ]
    return g


def fan(width: int) -> Graph:
    """One task before, and one after, very many that are alike."""
    with app.graph("fan") as g:
        first = g.add(greet, "Ada")
        g.returns(
            g.add(
                echo.options(
                    after=[g.add(echo.options(after=[first]), each) for each in range(width)]
                ),
                0,
            )
        )
    return g


async def drawn(dashboard: Dashboard, graph: Graph) -> Page:
    """The page of a workflow, once it is drawn. How long that took is printed (`pytest -rP`), and
    is no reason to fail."""
    workflow_id = await dashboard.site.workflow(graph)
    page = await dashboard.open()
    passed, *long = await page.evaluate(DRAWN_IN, f"#/workflows/{workflow_id}?view=graph")
    print(f"{graph.name}: drawn after {passed} ms, long tasks: {long}")  # noqa: T201
    await dashboard.settled(page)
    return page


async def test_nine_hundred_tasks_side_by_side(dashboard: Dashboard) -> None:
    page = await drawn(dashboard, grid(30, 30))
    await expect(page.locator(".graph-box")).to_have_count(900)
    found = list((await places(page)).values())
    layers = sorted({each["left"] for each in found})
    assert len(layers) == 30
    for left in layers:
        column = sorted((each["top"], each["bottom"]) for each in found if each["left"] == left)
        assert all(one[1] <= other[0] for one, other in pairwise(column))
    assert await page.locator(".graph path").count() == 2
    await page.get_by_role("button", name="All of it").click()
    await expect(page.locator(".zoom")).not_to_have_text("60 %")


async def test_a_thousand_alike_tasks(dashboard: Dashboard) -> None:
    page = await drawn(dashboard, fan(997))
    await expect(page.locator(".graph-box")).to_have_count(3)
    await expect(box(page, "997 × echo")).to_be_visible()


async def test_it_is_resumed_from_what_failed(dashboard: Dashboard) -> None:
    with app.graph("resumed") as g:
        loaded = g.add(greet.options(node="load"), "Ada")
        charged = g.add(flaky.options(node="charge", after=[loaded], max_retries=0), 1)
        g.returns(g.add(echo.options(node="ship"), charged))
    workflow_id = await dashboard.site.workflow(g)
    await dashboard.site.reaches(numbered(workflow_id, 3), "cancelled")
    page = await dashboard.open(f"workflows/{workflow_id}")
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text("resumed failed")
    before = await places(page)
    await confirm(page.get_by_role("main"), "Resume workflow", "Completed ones keep their results.")
    await expect(page.get_by_text("2 tasks to run again.")).to_be_visible()
    await expect(heading).to_have_text("resumed completed")
    await expect(page.get_by_role("button", name="Resume workflow")).to_have_count(0)
    assert await places(page) == before


async def test_it_is_resumed_from_a_task(dashboard: Dashboard) -> None:
    with app.graph("again") as g:
        loaded = g.add(greet.options(node="load"), "Ada")
        packed = g.add(echo.options(node="pack"), loaded)
        g.returns(g.add(echo.options(node="ship"), packed))
    site = dashboard.site
    workflow_id = await site.workflow(g)
    ids = [numbered(workflow_id, number) for number in (1, 2, 3)]
    await site.reaches(ids[2], "completed")
    page = await dashboard.open(f"workflows/{workflow_id}")
    # In the card, whose question does not close it.
    await box(page, "ship").hover()
    await expect(card(page)).to_contain_text("Result")
    question = await ask(card(page), "Resume from here")
    await expect(question).to_contain_text("ship")
    await answer(question, "Back")
    await expect(card(page).get_by_role("button", name="Resume from here")).to_be_focused()
    await confirm(card(page), "Resume from here", "It runs again")
    await expect(page.get_by_text("1 task to run again.")).to_be_visible()
    again = await site.reaches(ids[2], "completed")
    assert [(await site.task(each)).attempt for each in ids] == [1, 1, again.attempt]
    # And in the list.
    await dashboard.visit(page, f"workflows/{workflow_id}?view=list")
    await confirm(row(page, "pack"), "Resume from here", "It runs again")
    await expect(page.get_by_text("2 tasks to run again.")).to_be_visible()
    await expect(row(page, "ship")).to_contain_text("completed")


async def test_it_is_deleted(dashboard: Dashboard) -> None:
    with app.graph("deleted") as g:
        g.add(greet.options(node="load"), "Ada")
    workflow_id = await dashboard.site.workflow(g)
    await dashboard.site.reaches(numbered(workflow_id, 1), "completed")
    page = await dashboard.open(f"workflows/{workflow_id}")
    await confirm(page.get_by_role("main"), "Delete", "They cannot be restored.")
    await expect(page.get_by_role("heading", name="Workflows")).to_be_visible()
    found = await dashboard.site.world.run(dashboard.site.world.ops.workflow(workflow_id))
    assert found is None


async def test_what_runs_at_the_end(dashboard: Dashboard) -> None:
    with app.graph("ending", on_failure="cancel") as g:
        loaded = g.add(greet.options(node="load"), "Ada")
        g.add(echo.options(node="pack", after=[loaded]), 1)
        g.add(echo.options(node="bill", after=[loaded]), 1)
        g.on_exit(echo.options(node="close"))
    workflow_id = await dashboard.site.workflow(g)
    await dashboard.site.reaches(numbered(workflow_id, 4), "completed")
    page = await dashboard.open(f"workflows/{workflow_id}")
    await expect(page.locator(".graph-box")).to_have_count(4)
    lines = "".join(
        [str(await each.get_attribute("d")) for each in await page.locator(".graph path").all()]
    )
    assert lines.count("M") == 4  # none from load to close
    await expect(page.get_by_role("main")).to_contain_text("all others are cancelled")
    await page.get_by_role("link", name="List").click()
    await expect(row(page, "close")).to_contain_text("at the end")
