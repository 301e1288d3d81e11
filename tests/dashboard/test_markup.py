"""Whatever users and workers wrote is text: no page makes markup, a script or an address of it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from playwright.async_api import Page, expect

from fairlane.core.definitions import Definition
from fairlane.core.ids import numbered
from fairlane.core.model import Beat, Report, TaskError
from fairlane.core.outcomes import Completed, Failed
from tests.dashboard.apps import app, echo, fail
from tests.dashboard.kit import Dashboard, Site, views

SCHEDULE = "javascript:ran.schedule"
TYPE, QUEUE = "javascript:ran.type", "javascript:ran.queue"
"""Names may not look worse than this."""

TRAPS = "window.times = []; window.ran = (...told) => window.times.push([location.hash, ...told]);"

UNFOLD = """async () => {
  const shut = "main details:not([open]) > summary, main [aria-expanded=false]";
  const next = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
  for (let round = 0; round < 20 && document.querySelector(shut); round++) {
    for (const each of document.querySelectorAll(shut)) each.click();
    await next();
  }
  for (const each of document.querySelectorAll("main button")) {
    if (each.innerText.trim().startsWith("Show all")) each.click();
  }
  await next();
}"""
TOUCH = """() => {
  for (const one of document.querySelectorAll("body *")) {
    for (const type of ["mouseover", "pointerover", "focusin"]) {
      one.dispatchEvent(new Event(type, { bubbles: true }));
    }
  }
}"""
MADE = """() => {
  const never = "img, iframe, object, embed, base, script:not([src]), [srcdoc]";
  const runs = ({ name, value }) => /^on/.test(name) || /^\\s*javascript:/i.test(value)
    && ["href", "src", "action", "formaction", "xlink:href"].includes(name);
  return [...document.querySelectorAll("*")]
    .filter((one) => one.matches(never) || [...one.attributes].some(runs))
    .map((one) => one.outerHTML);
}"""
"""What no page here has of its own."""
REVERSES = "\u202e"
"""Everything after it is shown from right to left, up to the end of what isolates it."""
EXPOSED = """(reverses) => {
  const alone = (one) => getComputedStyle(one).unicodeBidi !== "normal"
    || !["inline", "contents"].includes(getComputedStyle(one).display);
  const isolated = (text) => {
    let one = text.parentElement;
    while (!alone(one)) one = one.parentElement;
    return one;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = new Map();
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (!text.data.trim() || text.parentElement.closest("script, style, svg, textarea")) continue;
    const one = isolated(text);
    texts.set(one, [...(texts.get(one) ?? []), text.data]);
  }
  return [...texts]
    .filter(([, all]) => all.length > 1 && all.some((text) => text.includes(reverses)))
    .map(([one, all]) => `${one.outerHTML.slice(0, 120)}: ${all.join(" | ")}`);
}"""
"""Texts that share what isolates them with a text that could reverse them."""
TOLD = """() => {
  const told = (one) =>
    [one.title, one.getAttribute("aria-label"), one.value, one.text, one.placeholder];
  const quiet = document.querySelectorAll("[title], [aria-label], input, option");
  return [document.title, document.body.innerText, ...[...quiet].flatMap(told)].join("\\n");
}"""
"""All that a page tells, on screen or to those who ask."""


def evil(where: str) -> str:
    """A text that tries all there is to break out of wherever it is put, and tells where it was."""
    return (
        f"{where}{REVERSES}{{{{7*7}}}}</script><script>ran()</script><img src=x onerror=ran()>"
        "\"onmouseover='ran()'`${ran()}`"
    )


async def set_out(site: Site) -> dict[str, str]:
    """Evil texts wherever there is a text: the ids of a dead, a running and a completed task."""
    world = site.world
    worker = await world.worker(
        host=evil("host"), version=evil("version"), capabilities=frozenset({"javascript:ran.able"})
    )
    health = {evil("health-name"): evil("health-value")}
    await world.run(world.ops.heartbeat(Beat(worker, 1, health=health)))
    ids = {}
    for name in ("dead", "completed", "running"):
        payload = {evil("key"): [evil("item"), {evil("inner"): evil("long") * 20}]}
        ids[name] = await site.submit(
            TYPE,
            payload,
            queue=QUEUE,
            max_retries=0,
            tags={evil("tag"): evil("value")},
            idempotency_key=evil(f"key-{name}"),
        )
        task = await world.claim_one(worker, queues=frozenset({QUEUE}))
        if name == "dead":
            error = TaskError.of(evil("message"), evil("code"), traceback=evil("traceback"))
            await world.settle(task, Failed(error))
        elif name == "completed":
            await world.settle(task, Completed(json.dumps({evil("result"): evil("end")}).encode()))
        else:
            report = Report(task.task_id, task.attempt, 50.0, evil("progress"))
            await world.run(world.ops.progress(worker, [report]))
    ids["waiting"] = await site.submit(TYPE, queue=QUEUE, depends_on=[ids["running"]])
    await world.run(world.ops.publish([definition()]))
    await site.schedule(
        SCHEDULE,
        task={
            "type": TYPE,
            "payload": {evil("scheduled"): 1},
            "tags": {evil("tag"): evil("value")},
        },
        note=evil("schedule-note"),
    )
    await world.run(world.ops.pause_schedule(SCHEDULE, note=evil("pause-note")))
    with app.graph(evil("flow")) as g:
        first = g.add(echo.options(node=evil("node")), evil("argument"))
        g.add(fail.options(node="second", after=[first], max_retries=0), evil("broken"))
    ids["flow"] = await site.workflow(g)
    await site.reaches(numbered(ids["flow"], 2), "dead_letter")
    return ids


def definition() -> Definition:
    """What a worker may publish about a type."""
    about, preset = evil("about"), evil("preset")
    properties = {
        evil("parameter"): {"type": "string", "description": about, "default": preset},
        evil("choice"): {"enum": [evil("option")]},
    }
    return Definition(
        type=TYPE,
        parameters={"type": "object", "properties": properties},
        description=evil("described"),
        source=evil("source"),
    )


EVERYWHERE = (
    *(
        "host",
        "version",
        "health-name",
        "health-value",
        "key",
        "item",
        "inner",
        "long",
        "tag",
        "value",
    ),
    *("key-dead", "message", "code", "traceback", "result", "end", "progress"),
    *("scheduled", "schedule-note", "pause-note"),
    *("parameter", "about", "preset", "choice", "option", "described", "source"),
    *("flow", "node", "argument", "broken"),
)


async def looked_at(page: Page) -> str:
    """All text on a page with everything unfolded; nothing of it has become anything else."""
    await page.evaluate(UNFOLD)
    told = await harmless(page)
    other = await page.locator("main [aria-pressed=false]").element_handles()
    for button in other:  # documents as they are, say
        await button.evaluate("(one) => one.click()")
        told += await harmless(page)
    return told


async def harmless(page: Page) -> str:
    """All text on a page as it is."""
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)
    await page.evaluate(TOUCH)
    assert await page.evaluate(MADE) == []
    assert await page.evaluate(EXPOSED, REVERSES) == []
    told: str = await page.evaluate(TOLD)
    return told


def quoted(where: str) -> str:
    """The text as a part of a string in JSON."""
    return json.dumps(evil(where))[1:-1]


async def test_everything_is_text(dashboard: Dashboard) -> None:
    dashboard.expects("404", "400", "422")  # of tasks and filters that cannot be
    site = dashboard.site
    ids = await set_out(site)
    # Without the policy: it would only hide a fault.
    page = await dashboard.another(bypass_csp=True)
    page.on("dialog", lambda dialog: dashboard.complaints.append(f"dialog: {dialog.message}"))
    await page.context.add_init_script(TRAPS)
    asked: list[tuple[str, dict[str, Any]]] = [
        *((view, {}) for view in views(ids["dead"], SCHEDULE, ids["flow"])),
        *((f"tasks/{ids[name]}", {}) for name in ("completed", "running", "waiting")),
        ("tasks", {"tag": f"{evil('tag')}:{evil('value')}"}),
        ("tasks", {"type": evil("typed"), "status": evil("typed"), "worker": evil("typed")}),
        ("dead", {"tag": f"{evil('tag')}:{evil('value')}", "type": evil("typed")}),
        ("queues", {"name": evil("typed"), "sort": evil("typed")}),
        ("workers", {"id": evil("typed")}),
        ("schedules", {"order": evil("typed")}),
        ("schedules", {"cursor": evil("typed")}),
        *(("schedule", {"id": name}) for name in (SCHEDULE, evil("typed"))),
        (f"schedules/{quote(evil('typed'), safe='')}", {}),
        *(("submit", {"from": task_id}) for task_id in (ids["dead"], evil("typed"))),
        (f"tasks/{quote(evil('typed'), safe='')}", {}),
        ("workflows", {"name": evil("typed"), "state": evil("typed")}),
        ("workflows", {"cursor": evil("typed")}),
        (
            f"workflows/{ids['flow']}",
            {"state": evil("typed"), "like": evil("typed")},
        ),
        (f"workflows/{quote(evil('typed'), safe='')}", {}),
        (quote(evil("typed"), safe=""), {}),
    ]
    told = ""
    for view, query in asked:
        await dashboard.visit(page, view, **query)
        told += await looked_at(page)
    for view in ("graph", "timeline"):
        await dashboard.visit(page, f"workflows/{ids['flow']}?view={view}")
        await page.locator("[data-box]").first.hover()
        await expect(page.get_by_role("group", name="About the task")).to_contain_text("argument")
        told += await harmless(page)
    for where in EVERYWHERE:
        assert evil(where) in told or quoted(where) in told, where
    assert await page.evaluate("times") == []
    # What would have become of a text that is not treated as one.
    await page.evaluate("(text) => { document.body.innerHTML = text; }", evil("control"))
    await page.wait_for_function("times.length > 0")
    assert await page.evaluate(MADE) != []


async def test_what_comes_while_one_looks_is_text(dashboard: Dashboard) -> None:
    site = dashboard.site
    page = await dashboard.another(bypass_csp=True)
    await page.context.add_init_script(TRAPS)
    overview = await page.context.new_page()
    await dashboard.visit(page, "tasks", tag=f"live:{evil('value')}")
    await dashboard.visit(overview)
    await site.ran("fail", {"message": evil("fresh")}, max_retries=0, tags={"live": evil("value")})
    await expect(page.locator("main").get_by_role("row").filter(has_text="fail")).to_have_count(1)
    await expect(overview.locator("main")).to_contain_text(evil("fresh"))
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Search").fill(f"live:{evil('value')}")
    await expect(page.get_by_role("dialog").get_by_role("option").first).to_contain_text("<img")
    await harmless(page)
    await page.keyboard.press("Escape")
    for shown in (page, overview):
        await looked_at(shown)
        assert await shown.evaluate("times") == []
