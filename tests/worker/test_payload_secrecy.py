"""With keys, no message of Fairlane's own shows what is in a payload."""

from __future__ import annotations

import enum
import logging
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest

from fairlane import Fairlane
from fairlane.core.errors import InvalidArguments
from fairlane.core.sealing import Key
from fairlane.core.states import State
from fairlane.dialects.tq_payloads import payload_reader
from fairlane.runtime.arguments import Unreadable
from tests.conformance.test_encryption import keyed
from tests.fixtures.raw import written
from tests.fixtures.stores import World
from tests.worker.kit import application, ended, working

KEY = Key("k1", b"1" * 32)
SECRET = "S3CRET"


class Colour(enum.Enum):
    RED = "red"


class Card(msgspec.Struct, tag="card"):
    number: Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]


class Cash(msgspec.Struct, tag="cash"):
    coins: int


@dataclass
class Person:
    name: str
    age: int


class Item(pydantic.BaseModel):
    sku: UUID
    count: int


class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    items: list[Item] = []
    notes: dict[str, int] = {}
    colour: Colour = Colour.RED
    size: pydantic.ByteSize | None = None


def paint(colour: Colour) -> None: ...


def pick(kind: Literal["a", "b"]) -> None: ...


def pay(means: Card | Cash) -> None: ...


def greet(person: Person) -> None: ...


def count(numbers: dict[int, int]) -> None: ...


def ship(order: Order) -> None: ...


HANDLERS = (paint, pick, pay, greet, count, ship)
MISFITS: list[tuple[Any, Any, str]] = [
    (paint, {"colour": SECRET}, "`$.colour`"),
    (paint, {"colour": "red", SECRET: 1}, "not expected"),
    (pick, {"kind": SECRET}, "`$.kind`"),
    (pay, {"means": {"type": SECRET}}, "`$.means.type`"),
    (pay, {"means": {"type": "card", "number": SECRET}}, "regex"),
    (greet, {"person": {"name": "Ada", "age": SECRET}}, "Expected `int`, got `str`"),
    (greet, {"person": SECRET}, "`$.person`"),
    (count, {"numbers": {SECRET: 1}}, "`key` in `$.numbers`"),
    (ship, {"order": {"items": [{"sku": SECRET, "count": 1}]}}, "items.0.sku: uuid_parsing"),
    (ship, {"order": {"items": [{"count": SECRET}]}}, "items.0.sku: Field required"),
    (ship, {"order": {"notes": {SECRET: "x"}}}, "notes.…: Input should be a valid integer"),
    (ship, {"order": {"colour": SECRET}}, "colour: Input should be 'red'"),
    (ship, {"order": {"size": f"1 {SECRET}"}}, "size: byte_size"),
    (ship, {"order": {SECRET: 1}}, "…: Extra inputs are not permitted"),
]


def shop(world: World) -> Fairlane:
    app = application(world)
    for handler in HANDLERS:
        app.task(name=handler.__name__)(handler)
    return app


async def test_payloads_that_do_not_fit_are_described_without_their_values(
    memory: World, caplog: pytest.LogCaptureFixture
) -> None:
    world = keyed(memory, KEY)
    app = shop(world)
    ids = [await world.submit(handler.__name__, payload) for handler, payload, _ in MISFITS]
    with caplog.at_level(logging.DEBUG):
        async with working(app):
            tasks = [await ended(app, task_id) for task_id in ids]
    for (handler, payload, words), task in zip(MISFITS, tasks, strict=True):
        assert (task.status, task.attempts[-1].error) == (State.FAILED, task.error)
        assert task.error is not None
        assert words in task.error.message, (handler, payload)
        assert SECRET not in str(task.error)
    assert SECRET not in caplog.text
    events = await world.run(world.ops.events(None, 1000))
    assert SECRET not in str(events)
    assert SECRET.encode() not in await written(memory.backend, memory.url)


# Python itself names a parameter that does not exist.
@pytest.mark.parametrize(
    ("handler", "payload", "words"), [each for each in MISFITS if SECRET not in each[1]]
)
def test_nor_does_the_refusal_of_arguments_show_them(
    handler: Any, payload: dict[str, Any], words: str
) -> None:
    app = Fairlane("sqlite://")
    task: Any = app.task(name="task")(handler)
    with pytest.raises(InvalidArguments) as caught:
        task.prepare(**payload)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_nor_do_the_models_of_a_dialect() -> None:
    def handler(order: Order) -> None: ...

    read = payload_reader("ship", handler, None)
    with pytest.raises(Unreadable, match="colour") as caught:
        read({"colour": SECRET})
    assert SECRET not in str(caught.value)


class Codec:
    def encode(self, value: Any) -> Any:
        return value

    def decode(self, value: Any) -> Any:
        raise KeyError(value["text"])


async def test_nor_do_codecs_that_cannot_decode(memory: World) -> None:
    app = application(keyed(memory, KEY))
    app.codec("own", Codec())

    @app.task(name="say", codec="own")
    async def say(text: str) -> None: ...

    handle = await say.submit(SECRET)
    async with working(app):
        task = await ended(app, handle.task_id)
    assert task.error is not None
    assert task.error.message.endswith("(KeyError).")


class Even(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if number % 2:
            raise ValueError("must be even")
        return number


@dataclass
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("must be positive")


@pytest.mark.parametrize(
    ("hint", "number", "words"), [(Even, 3, "even"), (Positive, -1, "positive")]
)
def test_what_the_application_says_itself_is_shown(hint: Any, number: int, words: str) -> None:
    app = Fairlane("sqlite://")

    def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = hint
    task: Any = app.task(name="task")(handler)
    with pytest.raises(InvalidArguments, match=words):
        task.prepare(value={"number": number})


def test_many_errors_are_cut() -> None:
    app = Fairlane("sqlite://")
    task: Any = app.task(name="ship")(ship)
    with pytest.raises(InvalidArguments, match="and 14 more"):
        task.prepare(order={"items": [{}] * 12})
