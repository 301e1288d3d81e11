"""A worker publishes what the code says about its tasks."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairlane import Fairlane
from fairlane.core.definitions import Definition
from fairlane.core.errors import InvalidHandler
from fairlane.core.retry import RetryPolicy
from fairlane.runtime.codecs import Codec
from tests.fixtures.stores import World
from tests.worker.kit import application, ended, working


@dataclass
class Address:
    street: str
    number: int = 1


def define(app: Fairlane) -> None:
    @app.task(
        name="send",
        queue="mail",
        priority="high",
        max_retries=5,
        timeout=30,
        retry=RetryPolicy(base=2.0),
        tags={"team": "shop"},
        required_capabilities={"smtp", "dns"},
        unique=True,
    )
    async def send(to: Address, copies: int = 1, **more: str) -> str:
        """Send a letter."""
        return f"{to.street} {to.number}, {copies}"


async def test_definitions_are_published_when_a_worker_starts(world: World) -> None:
    app = application(world)
    define(app)

    @app.task
    async def plain() -> int:
        return 1

    async with working(app, capabilities=frozenset({"smtp", "dns"})):
        handle = await plain.submit()
        await ended(app, handle.task_id)
        found = [each.definition for each in await world.run(world.ops.definitions())]
    little, much = found
    assert little.type == "plain"
    assert little.defaults() == {}
    assert much.defaults() == {
        "queue": "mail",
        "priority": 8,
        "required_capabilities": ("dns", "smtp"),
        "max_retries": 5,
        "timeout_seconds": 30,
        "retry_policy": RetryPolicy(base=2.0),
        "unique": True,
        "tags": {"team": "shop"},
    }
    assert much.description == "Send a letter."
    line = inspect.getsource(inspect.getmodule(define) or define).split("\n")
    assert f", line {1 + next(n for n, text in enumerate(line) if '@app.task(' in text)}" in (
        much.source
    )
    assert much.parameters == {
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/Address"},
            "copies": {"type": "integer", "default": 1},
        },
        "required": ["to"],
        "additionalProperties": {"type": "string"},
        "$defs": {
            "Address": {
                "title": "Address",
                "type": "object",
                "properties": {
                    "street": {"type": "string"},
                    "number": {"type": "integer", "default": 1},
                },
                "required": ["street"],
            }
        },
    }


def test_a_parameter_that_cannot_be_sent_is_refused_by_name() -> None:
    app = Fairlane("sqlite://")
    with pytest.raises(InvalidHandler, match="takes `file` as Path, which cannot be sent"):

        @app.task
        def read(file: Path) -> None: ...

    with pytest.raises(InvalidHandler, match="takes `files` as Path"):

        @app.task
        def read_all(files: dict[str, list[Path]]) -> None: ...

    assert not app.tasks


def test_with_a_codec_only_the_codec_knows_the_payload() -> None:
    class Text:
        def encode(self, value: Any) -> Any:
            return str(value)

        def decode(self, value: Any) -> Any:
            return {"file": Path(value)}

    app = Fairlane("sqlite://")
    assert isinstance(Text(), Codec)
    app.codec("text", Text())

    @app.task(codec="text")
    def read(file: Path) -> None: ...

    assert read.definition().parameters is None


def test_defaults_that_are_no_json_are_left_out() -> None:
    app = Fairlane("sqlite://")

    @app.task
    def work(a: int = 5, b: Any = object(), c: Any = None) -> None: ...  # noqa: B008

    schema = work.definition().parameters
    assert schema is not None
    assert schema["properties"] == {
        "a": {"type": "integer", "default": 5},
        "b": {},
        "c": {"default": None},
    }


def test_two_classes_of_one_name_are_not_confused() -> None:
    def made(kind: type) -> type:
        return dataclass(type("Same", (), {"__annotations__": {"x": kind}}))

    app = Fairlane("sqlite://")

    def handler(a: Any, b: Any) -> None: ...

    handler.__annotations__ = {"a": made(int), "b": made(str), "return": None}
    task = app.task(name="t")(handler)
    schema = task.definition().parameters
    assert schema is not None
    assert schema["$defs"] == {"Same": {"x-lax": True}}


def test_a_definition_of_a_pydantic_model_is_for_readers() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", n=(int, ...))
    app = Fairlane("sqlite://")

    def handler(m: Any) -> None: ...

    handler.__annotations__ = {"m": model, "return": None}
    definition: Definition = app.task(name="t")(handler).definition()
    assert definition.parameters is not None
    assert definition.parameters["properties"]["m"]["x-lax"] is True
