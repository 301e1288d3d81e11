"""`/docs` shows the tasks of the application, as workers have published them."""

from __future__ import annotations

import html
import json
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest

from fairlane import Fairlane
from fairlane.core.definitions import Definition, Template
from fairlane.core.errors import StoreUnavailable
from fairlane.server.docs_tasks import SHOWN, address_of, section
from fairlane.server.schema_examples import example_of, words_of
from tests.fixtures.chromium import chromium
from tests.server.kit import Api

EVIL = "<img src=x onerror=alert(1)>\"' ; $(touch /tmp/evil) \u202e"


class Colour(Enum):
    RED = "red"


@dataclass
class Line:
    article: str
    amount: int


def described(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


async def page_of(api: Api, **headers: str) -> str:
    reply = await api.ask("GET", "/docs", **headers)
    assert reply.status == 200
    return reply.body.decode()


async def publish(api: Api, *definitions: Definition) -> None:
    for start in range(0, len(definitions), 500):
        await api.world.run(api.world.ops.publish(definitions[start : start + 500]))


def commands(page: str) -> list[str]:
    """Return the commands of tasks, which begin with the address of the server itself."""
    return [
        found
        for found in map(html.unescape, re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL))
        if '"task_type"' in found
    ]


async def test_a_task_is_shown_with_all_that_is_published(api: Api) -> None:
    assert "No worker has published a task yet" in await page_of(api)
    app = Fairlane("sqlite://")

    @app.task(queue="mail", priority="high", max_retries=7, timeout=30)
    async def greet(name: str, lines: list[Line], loud: bool = False) -> None:
        """Greet somebody.

        Twice, if it is loud.
        """

    await publish(api, greet.definition())
    api.services.templates.types._seen_at = float("-inf")
    page = await page_of(api)
    text = re.sub(r"<[^>]*>", " ", page)
    for shown in (
        r"greet\s+Greet somebody\.\s+Twice, if it is loud\.",
        r"queue\s+mail\s+·\s+priority\s+high\s+·\s+retries\s+7\s+·\s+timeout\s+30 s",
        r"name\s+string\s+required",
        r"lines\s+array of Line\s+required",
        r"loud\s+boolean\s+false",
    ):
        assert re.search(shown, text), shown
    (command,) = commands(page)
    assert command.startswith(f"curl -X POST http://127.0.0.1:{api.port}/api/v1/tasks ")
    assert "Authorization" not in command
    # The command can be used as it is shown.
    body = json.loads(shlex.split(command.replace("\\\n", " "))[-1])
    assert (await api.post("/api/v1/tasks", body, 201))["task_id"]


async def test_hostile_text_is_shown_as_text_and_quoted(api: Api) -> None:
    await publish(
        api,
        Definition(
            type="evil",
            description=f"{EVIL}\n\nMore {EVIL}",
            parameters={
                **described(**{EVIL: {"type": EVIL}, "a": {"enum": [EVIL]}, "b": {"$ref": EVIL}}),
                "required": [EVIL, "a"],
                "additionalProperties": EVIL,
            },
        ),
        Definition(type="odd", parameters={"properties": [EVIL], "required": EVIL, "type": 7}),
    )
    reply = await api.ask("GET", "/docs")
    page = reply.body.decode()
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 6
    assert "<script" not in page
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; frame-ancestors 'none'",
        reply.headers["content-security-policy"],
    )
    evil, _ = commands(page)
    assert evil.isascii()
    words = shlex.split(evil.replace("\\\n", " "))
    assert words[-2] == "-d"
    assert json.loads(words[-1])["parameters"][EVIL] == "…"


async def test_a_store_that_is_away_leaves_the_rest(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise StoreUnavailable

    monkeypatch.setattr(api.services.templates.types, "_look", away)
    page = await page_of(api)
    assert "The store does not answer" in page
    assert "/api/v1/tasks" in page


async def test_the_page_stays_small(api: Api) -> None:
    empty = len(await page_of(api))
    await publish(api, *(Definition(type=f"task-{number:04}") for number in range(1_000)))
    api.services.templates.types._seen_at = float("-inf")
    page = await page_of(api)
    assert len(commands(page)) == SHOWN
    assert f"{1_000 - SHOWN} more are not shown here" in page
    assert len(page) - empty < 100_000


def test_the_largest_definitions_cost_little() -> None:
    wide = described(**{f"{number:050}": {"enum": ["x" * 300]} for number in range(80)})
    endless = {
        **described(a={"$ref": "#/$defs/a"}),
        "$defs": {"a": described(**{name: {"$ref": "#/$defs/a"} for name in "abcdefgh"})},
    }
    deep: Any = {"type": "string"}
    for _ in range(500):
        deep = {"anyOf": [deep] * 2}
    templates = {
        f"{kind}-{number}": Template(
            f"{kind}-{number}",
            Definition(type=f"{kind}-{number}", parameters=schema, description="<&\n\n" * 800),
        )
        for number in range(100)
        for kind, schema in (("wide", wide), ("endless", endless), ("deep", described(a=deep)))
    }
    began = time.thread_time()
    shown = section(templates.values(), 1_000, "http://host", token=True)
    assert time.thread_time() - began < 0.05
    assert len(shown) < 300_000
    assert "more are not shown here" in shown


@pytest.mark.parametrize(
    "hint",
    [
        *(str, int, float, bool, bytes, date, timedelta, UUID, Decimal, Colour, Any),
        *(list[int], dict[str, int], tuple[int, str], Line, list[Line], int | None, set[str]),
        Literal["a", 2],
        Annotated[datetime, msgspec.Meta(tz=True)],
        Annotated[int, msgspec.Meta(ge=10)],
        Annotated[float, msgspec.Meta(gt=10)],
        Annotated[str, msgspec.Meta(min_length=8)],
    ],
)
def test_examples_fit_what_handlers_take(hint: Any) -> None:
    app = Fairlane("sqlite://")

    async def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = hint
    task = app.task(handler)
    example = example_of(task.definition().parameters)
    task.arguments.decode(json.dumps(example).encode())
    assert task.prepare(**example) is not None


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, "any JSON"),
        ({}, "any JSON"),
        ({"type": "string", "format": "date-time"}, "date-time"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "array", "items": {"$ref": "#/$defs/Line"}}, "array of Line"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer | null"),
        ({"enum": list(range(20))}, "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | …"),
        ({"const": "a"}, '"a"'),
    ],
)
def test_a_schema_in_words(schema: Any, words: str) -> None:
    assert words_of(schema) == words


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({b"host": b"queue.example:8443"}, "https://queue.example:8443/tasks"),
        ({b"host": b"[::1]:80"}, "https://[::1]:80/tasks"),
        ({b"host": b"a$(touch x)"}, "https://127.0.0.1:8000/tasks"),
        ({}, "https://127.0.0.1:8000/tasks"),
    ],
)
def test_the_address_in_commands(headers: Mapping[bytes, bytes], address: str) -> None:
    assert address_of(headers, secure=True, root="/tasks") == address


async def test_on_a_telephone(api: Api) -> None:
    long = {"x" * 200: {"enum": ["y" * 150] * 3}}
    await publish(
        api, Definition(type="z" * 255, description="w" * 300, parameters=described(**long))
    )
    async with chromium() as browser:
        context = await browser.new_context(viewport={"width": 360, "height": 800})
        shown = await context.new_page()
        await shown.goto(f"http://127.0.0.1:{api.port}/docs#application")
        await shown.click("#application ~ details summary >> nth=0")
        assert await shown.is_visible("#application ~ details[open] pre")
        assert await shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
        widths = await shown.evaluate(
            "[...document.querySelectorAll('details[open] th')].map(cell => cell.offsetWidth)"
        )
        assert len(widths) == 3
        assert min(widths) > 80
