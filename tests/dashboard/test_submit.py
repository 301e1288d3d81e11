"""The form that submits a task: by fields and as JSON, its refusals, and tasks that are copied."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from msgspec.structs import replace
from playwright.async_api import Locator, Page, Route, expect

from fairlane.core.blobs import reference
from fairlane.core.ids import new_id
from fairlane.core.ownership import stamped
from fairlane.core.sealing import new_key, sealed
from fairlane.core.submission import new_task
from tests.dashboard.axe import judged
from tests.dashboard.kit import DESKTOP, PATIENCE_MS, PHONE, Dashboard
from tests.dashboard.test_lib import computed
from tests.dashboard.test_session import locked, sign_in

REQUIRED = {"customer": "Ada", "quantity": 2}


SCHEMA: dict[str, Any] = {
    "properties": {
        "plain": {"type": "string", "description": "Some text."},
        "time": {"type": "string", "format": "date-time"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}], "default": None},
        "count": {"type": ["integer", "null"]},
        "share": {"type": "number"},
        "flag": {"type": "boolean"},
        "point": {"$ref": "#/$defs/Point"},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "lost": {"$ref": "#/$defs/Nowhere"},
        "anything": {},
        "odd": 5,
    },
    "required": ["plain"],
    "$defs": {"Colour": {"enum": ["red", 1]}, "Point": {"type": "object"}},
}
KINDS = {
    "plain": ["text", "text", True, []],
    "time": ["text", "date-time", False, []],
    "maybe": ["choice", "choice", False, ["red", 1]],
    "count": ["integer", "whole number", False, []],
    "share": ["number", "number", False, []],
    "flag": ["choice", "true or false", False, [True, False]],
    "point": ["json", "object, as JSON", False, []],
    **{name: ["json", "JSON", False, []] for name in ("either", "lost", "anything", "odd")},
}
VALUES: list[dict[str, Any]] = [
    {},
    {"plain": "", "count": -7, "share": 1.5, "flag": False, "maybe": 1},
    {"plain": "a\r\nb", "count": "7", "share": 0, "flag": None, "maybe": "green"},
    {"plain": "a\nb", "count": 1.5, "share": True, "flag": "true", "maybe": None},
    {"plain": None, "point": {"x": [1]}, "either": "a", "anything": "", "__proto__": {"a": 1}},
]


def field(page: Page, label: str) -> Locator:
    return page.locator("form").get_by_label(label, exact=True)


def said_at(page: Page, label: str) -> Locator:
    """What is said to be wrong with a field."""
    inside = page.get_by_label(label, exact=True)
    return page.locator(".field", has=inside).locator(".error-text")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("main").get_by_role("button", name=name, exact=True)


async def fill(page: Page, **given: str) -> None:
    for label, text in given.items():
        await field(page, label).fill(text)


async def sent(page: Page) -> tuple[str, dict[str, Any]]:
    """Submit: the id of the new task, whose page is shown then, and the body of the request."""
    async with page.expect_response("**/api/v1/tasks") as waiting:
        await button(page, "Submit").click()
    answer = await waiting.value
    task_id: str = (await answer.json())["task_id"]
    await expect(page).to_have_url(re.compile(f"#/tasks/{task_id}$"))
    await expect(page.get_by_role("status").filter(has_text="Submitted.")).to_be_visible()
    return task_id, json.loads(answer.request.post_data or "")


async def test_fields_are_made_from_a_schema(dashboard: Dashboard) -> None:
    given = json.dumps({"type": "t", "version": 1, "parameters": SCHEMA})
    asked = f"(({{ fields, open }}) => ({{ fields, open }}))(m.shapeOf({given}))"
    shape = await computed(dashboard, "pages/submit/schema.js", asked)
    assert shape["open"]
    assert {
        each["name"]: [each["kind"], each["type"], each["required"], each["choices"]]
        for each in shape["fields"]
    } == KINDS
    assert shape["fields"][0]["description"] == "Some text."
    for parameters, open in (("null", None), ('{"additionalProperties": false}', False)):
        asked = f'm.shapeOf({{type: "t", version: 1, parameters: {parameters}}})?.open ?? null'
        assert await computed(dashboard, "pages/submit/schema.js", asked) is open

    # Whatever the values are: fields do not change them.
    entered = json.dumps(json.dumps(VALUES))
    asked = (
        f"JSON.parse({entered}).map((each) => "
        f"JSON.stringify(m.collected(m.draftOf({json.dumps(shape)}, each))))"
    )
    found = await computed(dashboard, "pages/submit/draft.js", asked)
    assert [json.loads(each) for each in found] == [
        {"parameters": each, "errors": {}} for each in VALUES
    ]


async def test_by_fields_with_the_defaults_of_the_definition(dashboard: Dashboard) -> None:
    site = dashboard.site
    page = await dashboard.open("tasks")
    await button(page, "Submit a task").click()
    await expect(page).to_have_title("Submit a task · Fairlane")
    types = page.locator("datalist option")
    await expect(field(page, "Type")).to_be_visible()
    assert await types.evaluate_all("(all) => all.map(({ value }) => value)") == [
        *("echo", "fail", "flaky", "greet", "hold", "order", "refuse")
    ]
    await fill(page, Type="order")
    about = page.locator(".definition")
    await expect(about).to_contain_text("Gives back what was ordered.")
    await expect(about).to_contain_text("tests.dashboard.apps")
    await expect(about).to_contain_text("queue orders, priority high, at most 7 retries")
    await fill(page, customer="Ada", quantity="2", price="9.50", lines='[{"sku": "a"}]')
    await field(page, "express").select_option("true")
    await expect(field(page, "size")).to_have_text(re.compile("^default: small"))
    await expect(field(page, "quantity")).to_have_attribute("aria-required", "true")
    await expect(field(page, "Queue")).to_be_hidden()
    await page.get_by_text("More options").click()
    for label, default in (
        ("Queue", "orders"),
        ("Retries", "7"),
        ("Timeout", "45"),
        ("Tags", "team:shop"),
    ):
        await expect(field(page, label)).to_have_attribute("placeholder", default)
    await expect(field(page, "Priority")).to_have_text(re.compile("^default: high"))

    task_id, body = await sent(page)
    given = {**REQUIRED, "express": True, "price": 9.5, "lines": [{"sku": "a"}]}
    assert body == {"task_type": "order", "parameters": given}
    task = await site.reaches(task_id, "completed")
    assert json.loads(task.payload) == given
    assert (task.queue, task.priority, task.max_retries, task.timeout) == ("orders", 8, 7, 45)
    assert task.tags == {"team": "shop"}


async def test_a_type_that_nobody_has_published_is_submitted_as_json(dashboard: Dashboard) -> None:
    dashboard.expects("404")
    page = await dashboard.open("submit")
    await fill(page, Type="unpublished")
    await page.keyboard.press("Tab")
    await expect(page.locator("form")).to_contain_text("No worker has published this type")
    await expect(button(page, "Edit as JSON")).to_have_count(0)
    large = '{"id": 12345678901234567890, "list": [1, {"__proto__": null}]}'
    await field(page, "All parameters").fill(large)
    await page.get_by_text("More options").click()
    await fill(
        page,
        Queue="attic",
        Delay="3600.5",
        Retries="0",
        Timeout="0",
        Tags="team: red: one\nempty:",
    )
    await field(page, "Priority").select_option("low")
    await fill(page, Capabilities="gpu, big.disk", **{"Idempotency key": "only once"})
    task_id, _ = await sent(page)
    task = await dashboard.site.task(task_id)
    assert task.payload == b'{"id":12345678901234567890,"list":[1,{"__proto__":null}]}'
    assert (task.queue, task.priority, task.status) == ("attic", 2, "scheduled")
    assert (task.max_retries, task.timeout, task.idempotency_key) == (0, None, "only once")
    assert task.tags == {"team": "red: one", "empty": ""}
    assert task.capabilities == ("big.disk", "gpu")
    # The same key once more: the task that is there is shown.
    page = await dashboard.open("submit")
    await fill(page, Type="unpublished")
    await field(page, "All parameters").fill(large)
    await page.get_by_text("More options").click()
    await field(page, "Idempotency key").fill("only once")
    await button(page, "Submit").click()
    await expect(page).to_have_url(re.compile(f"#/tasks/{task_id}$"))
    await expect(page.get_by_role("status").last).to_contain_text("There is such a task already")


async def test_nothing_is_lost_between_fields_and_json(dashboard: Dashboard) -> None:
    page = await dashboard.open("submit")
    whole = field(page, "All parameters")
    # What was entered before the type was known becomes fields.
    await whole.fill('{"customer": 5, "quantity": 12345678901234567890, "size": "xl", "more": [1]}')
    await fill(page, Type="order")
    await expect(field(page, "customer")).to_have_value("5")  # as JSON: a text field shows texts
    await expect(field(page, "quantity")).to_have_value("12345678901234567890")
    await expect(field(page, "size")).to_have_value('"xl"')
    await expect(field(page, "Other parameters")).to_have_value(re.compile('"more"'))
    await fill(page, price="1e2", lines="null")
    await field(page, "express").select_option("false")
    given = {
        "more": [1],
        "customer": 5,
        "quantity": 12345678901234567890,
        "express": False,
        "size": "xl",
        "price": 100,
        "lines": None,
    }
    await button(page, "Edit as JSON").click()
    assert json.loads(await whole.input_value()) == given
    await button(page, "Edit as JSON").click()
    await expect(field(page, "express")).to_have_value("false")
    await expect(field(page, "price")).to_have_value("100")
    await expect(field(page, "lines")).to_have_value("null")
    # Through other types and back.
    await fill(page, Type="order2")
    assert json.loads(await whole.input_value()) == given
    await fill(page, Type="greet")
    assert json.loads(await field(page, "Other parameters").input_value()) == given
    await fill(page, name="line\tone")
    await fill(page, Type="order")
    await expect(field(page, "customer")).to_have_value("5")
    await expect(field(page, "Other parameters")).to_have_value(re.compile(r"line\\tone"))


async def test_what_cannot_be_is_said_at_its_field_before_it_is_sent(dashboard: Dashboard) -> None:
    page = await dashboard.open("submit")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    alert = page.get_by_role("alert")
    await button(page, "Submit").click()
    await expect(alert).to_contain_text("correct the marked fields")
    await expect(said_at(page, "Type")).to_have_text("A task has a type.")
    await expect(field(page, "Type")).to_be_focused()
    await field(page, "All parameters").fill('{"a": ')
    await fill(page, Type="order")  # what cannot be read stays as it is
    await expect(said_at(page, "Type")).to_be_hidden()
    await button(page, "Submit").click()
    await expect(said_at(page, "All parameters")).to_contain_text("This is not JSON: ")
    await button(page, "Edit as JSON").click()
    await expect(field(page, "All parameters")).to_have_value('{"a": ')
    await field(page, "All parameters").fill("[1]")
    await button(page, "Submit").click()
    await expect(said_at(page, "All parameters")).to_contain_text("Parameters are an object")
    await field(page, "All parameters").fill("")
    await button(page, "Edit as JSON").click()
    await fill(page, quantity="1.5", price="much", lines="[1")
    await button(page, "Submit").click()
    await expect(field(page, "customer")).to_be_focused()
    for label, message in (
        ("customer", "This parameter is required."),
        ("quantity", "This is not a whole number."),
        ("price", "This is not a number."),
        ("lines", "This is not JSON: "),
    ):
        await expect(said_at(page, label)).to_contain_text(message)
        await expect(field(page, label)).to_have_attribute("aria-invalid", "true")
    await button(page, "Edit as JSON").click()  # would change them
    await expect(field(page, "lines")).to_have_value("[1")
    await page.get_by_text("More options").click()
    await fill(page, customer="a", quantity="1", price="", lines="", Retries="some", Tags="none")
    await page.get_by_text("More options").click()
    await button(page, "Submit").click()
    await expect(said_at(page, "Retries")).to_contain_text("not a number")
    await expect(said_at(page, "Tags")).to_contain_text("name:value")
    assert "POST" not in asked


async def test_a_refusal_is_shown_at_its_field_and_nothing_is_lost(dashboard: Dashboard) -> None:
    dashboard.expects("422")
    page = await dashboard.open("submit")
    alert = page.get_by_role("alert")
    await fill(page, Type="order", customer="Ada", quantity="2", lines='{"sku": "a"}')
    await button(page, "Submit").click()
    message = "order: `lines` must be a list or null, not an object."
    await expect(alert).to_have_text(message)
    await expect(said_at(page, "lines")).to_have_text(message)
    await expect(field(page, "lines")).to_be_focused()
    await expect(field(page, "lines")).to_have_value('{"sku": "a"}')
    await expect(field(page, "customer")).to_have_value("Ada")
    # In JSON the text has it all.
    await button(page, "Edit as JSON").click()
    await button(page, "Submit").click()
    await expect(said_at(page, "All parameters")).to_have_text(message)
    await field(page, "All parameters").fill(json.dumps({**REQUIRED, "colour": "red"}))
    await button(page, "Edit as JSON").click()
    await button(page, "Submit").click()
    await expect(said_at(page, "Other parameters")).to_contain_text("There is no `colour`")
    await field(page, "Other parameters").fill("")
    # An option that is wrong is brought to light.
    await page.get_by_text("More options").click()
    await fill(page, Queue="no name")
    await page.get_by_text("More options").click()
    await button(page, "Submit").click()
    await expect(alert).to_contain_text("queue name")
    await expect(said_at(page, "Queue")).to_be_visible()
    await fill(page, Queue="mended")
    task_id, body = await sent(page)
    assert body == {"task_type": "order", "parameters": REQUIRED, "queue": "mended"}
    assert (await dashboard.site.task(task_id)).queue == "mended"


async def test_fields_and_errors_are_for_everybody(dashboard: Dashboard) -> None:
    for size, scheme in ((DESKTOP, "light"), (PHONE, "dark")):
        page = await dashboard.another(size, color_scheme=scheme, bypass_csp=True)
        await dashboard.visit(page, "submit")
        await fill(page, Type="order", quantity="x" * 200, lines="[")
        await page.get_by_text("More options").click()
        await fill(page, Tags="none", Delay="soon")
        await button(page, "Submit").click()
        await expect(said_at(page, "Tags")).to_be_visible()
        assert await judged(page, "submit") == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_it_is_sent_once(dashboard: Dashboard) -> None:
    page = await dashboard.open("submit")
    asked, released = asyncio.Event(), asyncio.Event()
    bodies: list[Any] = []

    async def slowly(route: Route) -> None:
        bodies.append(route.request.post_data_json)
        asked.set()
        await released.wait()
        await route.continue_()

    await page.route("**/api/v1/tasks", slowly)
    await fill(page, Type="greet", name="once")
    await field(page, "name").press("Enter")
    await asyncio.wait_for(asked.wait(), PATIENCE_MS / 1000)
    await expect(button(page, "Submit")).to_have_attribute("aria-busy", "true")
    await button(page, "Submit").click()
    await field(page, "name").press("Enter")
    released.set()
    await expect(page).to_have_url(re.compile("#/tasks/"))
    assert bodies == [{"task_type": "greet", "parameters": {"name": "once"}}]


async def test_a_server_that_is_away_loses_nothing(dashboard: Dashboard) -> None:
    dashboard.expects("ERR_FAILED")
    page = await dashboard.open("submit")
    await page.route("**/api/v1/tasks", lambda route: route.abort())
    await fill(page, Type="greet", name="patient")
    await button(page, "Submit").click()
    await expect(page.get_by_role("alert")).to_have_text("The server cannot be reached.")
    await page.unroute("**/api/v1/tasks")
    _, body = await sent(page)
    assert body["parameters"] == {"name": "patient"}


async def test_a_task_is_edited_and_submitted_again(dashboard: Dashboard) -> None:
    site = dashboard.site
    first = await site.ran(
        "order",
        {**REQUIRED, "customer": "Ada\nLovelace", "price": None},
        queue="special",
        priority=7,
        max_retries=1,
        timeout_seconds=None,
        tags={"team": "red", "a:b": "c"},
        required_capabilities=(),
        idempotency_key=f"of {new_id()}",
    )
    page = await dashboard.open(f"tasks/{first}")
    await button(page, "Edit and resubmit").click()
    await expect(page).to_have_url(re.compile(rf"#/submit\?from={first}$"))
    await expect(page.get_by_role("main")).to_contain_text("idempotency key")
    for label, value in (
        ("Type", "order"),
        ("customer", "Ada\nLovelace"),
        ("quantity", "2"),
        ("price", "null"),
        ("Queue", "special"),
        ("Priority", "7"),
        ("Retries", "1"),
        ("Timeout", "0"),
        ("Delay", ""),
        ("Idempotency key", ""),
    ):
        await expect(field(page, label)).to_have_value(value)
    await fill(page, quantity="3")
    second, _ = await sent(page)
    assert second != first
    task = await site.reaches(second, "completed")
    assert json.loads(task.payload) == {"customer": "Ada\nLovelace", "quantity": 3, "price": None}
    assert (task.queue, task.priority, task.max_retries, task.timeout) == ("special", 7, 1, None)
    assert task.tags == {"team": "red", "a:b": "c"}
    assert task.idempotency_key is None
    # The form is empty again for the next one.
    await dashboard.open("submit")
    await expect(field(page, "Type")).to_have_value("")
    await expect(field(page, "All parameters")).to_have_value("")


async def test_parameters_that_cannot_be_read_cannot_be_edited(dashboard: Dashboard) -> None:
    dashboard.expects("404")
    site = dashboard.site
    key = new_key()
    for payload, reason in (
        (sealed(key, key.check, b"x" * 40), "They are encrypted"),
        (reference("store", b"{}" * 50_000).payload(), "by reference"),
    ):
        new = replace(new_task("idle"), payload=payload)
        (task_id,) = await site.world.submit_all([new])
        page = await dashboard.open("submit", **{"from": task_id})
        await expect(page.get_by_role("heading", level=3)).to_have_text(
            "These parameters cannot be edited"
        )
        await expect(page.get_by_role("main")).to_contain_text(reason)
        await expect(page.locator("form")).to_have_count(0)
        back = page.get_by_role("link", name="Back to the task")
        await expect(back).to_have_attribute("href", f"#/tasks/{task_id}")
    page = await dashboard.open("submit", **{"from": new_id()})
    await expect(page.get_by_role("heading", name="There is no such task")).to_be_visible()
    await page.get_by_role("link", name="Submit another task").click()
    await expect(field(page, "Type")).to_be_visible()


async def test_from_the_palette_by_the_keyboard_alone(dashboard: Dashboard) -> None:
    page = await dashboard.open()
    await expect(page.locator(".nav ul a")).to_have_count(7)
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    await page.keyboard.type("submit")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("#/submit$"))
    await expect(field(page, "Type")).to_be_visible()
    await page.keyboard.press("Tab")

    async def tab_to(label: Locator) -> None:
        for _ in range(30):
            if await label.evaluate("(one) => one === document.activeElement"):
                return
            await page.keyboard.press("Tab")
        raise AssertionError(await label.evaluate("(one) => one.outerHTML"))

    await tab_to(field(page, "Type"))
    await page.keyboard.type("order")
    await tab_to(field(page, "customer"))
    await page.keyboard.type("Grace")
    await tab_to(field(page, "quantity"))
    await page.keyboard.type("4")
    await tab_to(field(page, "size"))
    await page.keyboard.type("large")
    await tab_to(page.locator("summary"))
    await page.keyboard.press("Space")
    await tab_to(field(page, "Queue"))
    await page.keyboard.type("keys")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("#/tasks/"))
    task = await dashboard.site.reaches(page.url.rpartition("/")[2], "completed")
    assert json.loads(task.payload) == {"customer": "Grace", "quantity": 4, "size": "large"}
    assert task.queue == "keys"


async def test_who_may_not_submit(alone: Dashboard) -> None:
    alone.expects("401")
    site = alone.site
    task_id = await site.submit("idle")
    _, secret = await site.token("read", name="reader")
    await locked(site)
    page = await alone.another()
    await page.goto(alone.link("tasks"))
    await sign_in(page, secret)
    reason = "This takes a token with the scope submit."
    for view, name in (
        ("tasks", "Submit a task"),
        (f"tasks/{task_id}", "Edit and resubmit"),
        ("submit", "Submit"),
    ):
        await alone.visit(page, view)
        await expect(button(page, name)).to_be_disabled()
        await expect(button(page, name)).to_have_attribute("title", reason)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Search").fill("submit")
    await expect(page.get_by_role("dialog")).to_contain_text("No match")


async def test_a_bound_token_submits_its_own_tasks(alone: Dashboard) -> None:
    alone.expects("401", "404")
    site = alone.site
    _, secret = await site.token("submit", "read", name="acme", own=True)
    (mine,) = await site.world.submit_all([stamped(new_task("greet", {"name": "me"}), "acme")])
    await locked(site)
    page = await alone.another()
    await page.goto(alone.link("submit"))
    await sign_in(page, secret)
    # It may not list definitions, and asks for the one of its type.
    await fill(page, Type="order")
    await field(page, "Type").press("Tab")
    await fill(page, customer="Acme", quantity="1")
    await button(page, "Submit").click()
    await expect(page.locator("dt:has-text('Owner') + dd")).to_have_text("acme")
    await expect(page.get_by_role("main")).to_contain_text("orders")
    await page.goto(alone.link("submit", **{"from": mine}))
    await expect(field(page, "name")).to_have_value("me")
