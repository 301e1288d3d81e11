"""Arguments: checked against type hints when submitted, converted to what they say when run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest

from fairlane import GIVEN, Context, Shared
from fairlane.core.errors import InvalidArguments, InvalidHandler
from fairlane.runtime.arguments import Arguments, Unreadable


@dataclass
class Address:
    street: str
    number: int = 1


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Order(pydantic.BaseModel):
    order_id: int = pydantic.Field(alias="orderId")
    placed: datetime
    lines: list[str] = []


class StrictOrder(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    placed: date

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def year(self) -> int:
        return self.placed.year


class Point(msgspec.Struct):
    x: int
    y: int


class Opaque:
    pass


NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def takes(hint: Any) -> Arguments:
    def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = hint
    return Arguments(handler)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, 5),
        (float, 0.1),
        (str, "é\0\x1b"),
        (bytes, b"\0\xff"),
        (bool, True),
        (list[int], [1, 2]),
        (dict[str, float], {"a": 1.5}),
        (dict[int, str], {1: "a"}),
        (set[int], {1, 2}),
        (tuple[int, str], (1, "a")),
        (datetime, NOON),
        (date, date(2026, 1, 2)),
        (timedelta, timedelta(seconds=90)),
        (UUID, UUID(int=7)),
        (Colour, Colour.BLUE),
        (Decimal, Decimal("1.10")),
        (Address, Address("High", 3)),
        (list[Address], [Address("High")]),
        (Point, Point(1, 2)),
        (Order, Order(orderId=1, placed=NOON)),
        (list[Order], [Order(orderId=1, placed=NOON, lines=["a"])]),
        (StrictOrder, StrictOrder(placed=date(2026, 1, 2))),
        (Literal["a", "b"], "b"),
        (int | None, None),
        (Annotated[int, msgspec.Meta(ge=0)], 0),
        (Any, {"a": [1, None, 2.5]}),
        (int, 2**70),
    ],
)
def test_values_arrive_as_what_the_hint_says(hint: Any, value: Any) -> None:
    arguments = takes(hint)
    decoded = arguments.decode(arguments.encode((value,), {}))["value"]
    assert (decoded, type(decoded)) == (value, type(value))


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, "5"),
        (int, True),
        (int, None),
        (int, 1.5),
        (str, 5),
        (datetime, "yesterday"),
        (UUID, "not one"),
        (Colour, "green"),
        (Address, {"number": 1}),
        (Order, {"orderId": "x", "placed": "2026-01-01T00:00:00Z"}),
        (Any, Opaque()),
        (Any, {"a": Opaque()}),
        (float, float("nan")),
        (float | None, float("inf")),
        (Any, {"deep": [float("nan")]}),
        (str, "\ud800"),
        (Annotated[int, msgspec.Meta(ge=0)], -1),
    ],
)
def test_values_that_do_not_fit_are_refused(hint: Any, value: Any) -> None:
    with pytest.raises(InvalidArguments, match="handler: "):
        takes(hint).encode((value,), {})


def test_nesting_without_end_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InvalidArguments):
        takes(Any).encode((value,), {})


def test_defaults_left_out_stay_out() -> None:
    def handler(a: int, b: int = 2, c: str | None = None) -> None: ...

    arguments = Arguments(handler)
    assert arguments.encode((1,), {}) == b'{"a":1}'
    assert arguments.decode(b'{"a":1}') == {"a": 1}
    assert arguments.decode(arguments.encode((1,), {"c": None})) == {"a": 1, "c": None}


def test_an_open_ended_handler_takes_what_comes() -> None:
    def handler(a: int, b: int = 2, **rest: Any) -> None: ...

    arguments = Arguments(handler)
    payload = arguments.encode((1,), {"x": [1], "rest": 5})
    assert arguments.decode(payload) == {"a": 1, "x": [1], "rest": 5}


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2), {}, "too many positional"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
        ((1,), {"a": 1}, "multiple values"),
    ],
)
def test_calls_that_could_not_be_made_are_refused(args: Any, kwargs: Any, words: str) -> None:
    def handler(a: int) -> None: ...

    with pytest.raises(InvalidArguments, match=words):
        Arguments(handler).encode(args, kwargs)


def test_who_calls_it_wrongly_is_told_what_it_takes() -> None:
    def one(ctx: Context, a: int, b: int = 2, **rest: int) -> None: ...
    def none() -> None: ...

    with pytest.raises(InvalidArguments, match=r"It takes \(a, b=…, \*\*rest\)\.$"):
        Arguments(one).encode((), {})
    with pytest.raises(InvalidArguments, match=r"too many positional arguments\. It takes no argu"):
        Arguments(none).encode((1,), {})


def test_what_has_no_form_in_json_is_told_what_to_pass() -> None:
    def handler(what: Any) -> None: ...

    advice = "use its id, a dict or a dataclass instead, or give the task a codec."
    with pytest.raises(InvalidArguments, match=f"object cannot be encoded as JSON: {advice}$"):
        Arguments(handler).encode((object(),), {})


@pytest.mark.parametrize("payload", [b'{"a":"x"}', b"{}", b'{"a":1,"z":2}', b"[]", b"{", b"\xff"])
def test_payloads_that_do_not_fit_are_unreadable(payload: bytes) -> None:
    def handler(a: int) -> None: ...

    with pytest.raises(Unreadable, match="The payload does not fit"):
        Arguments(handler).decode(payload)


def test_context_and_shared_parameters_are_not_arguments() -> None:
    def handler(
        ctx: Context, day: str, db: Annotated[Opaque, Shared("pool")] = GIVEN, n: int = 1
    ) -> int:
        return n

    arguments = Arguments(handler)
    assert (arguments.wants_context, arguments.shared, arguments.returns) == (
        True,
        {"db": "pool"},
        int,
    )
    assert arguments.decode(arguments.encode(("monday", 2), {})) == {"day": "monday", "n": 2}
    with pytest.raises(InvalidArguments, match="db"):
        arguments.encode(("monday",), {"db": None})


def starred(*values: int) -> None: ...
def by_position(a: int, /) -> None: ...
def context_second(a: int, ctx: Context) -> None: ...
def unreadable(a: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821
def two_models(a: Address | Point) -> None: ...
def opaque(a: list[Opaque]) -> None: ...
def yields() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (starred, "takes \\*values"),
        (by_position, "by position only"),
        (context_second, "make that its first"),
        (unreadable, "Nowhere"),
        (two_models, "cannot be decoded from JSON"),
        (opaque, "takes `a` as Opaque, which cannot be sent as JSON"),
        (yields, "yields"),
        (functools.partial(by_position, 1), "A task is a function"),
        (Opaque(), "A task is a function"),
    ],
)
def test_functions_that_cannot_be_tasks_are_refused(
    handler: Callable[..., Any], words: str
) -> None:
    with pytest.raises(InvalidHandler, match=words):
        Arguments(handler)
