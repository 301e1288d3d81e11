"""Which results can be which parameters, by their type hints."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NewType, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

from fairlane import Failed
from fairlane.runtime.fitting import fits, part_of, shown_hint

T = TypeVar("T")
Cents = NewType("Cents", int)


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Order:
    number: int
    lines: list[str]


@dataclass
class LargeOrder(Order):
    weight: float = 0.0


class Price(msgspec.Struct, rename="camel"):
    in_cents: int


class Page(msgspec.Struct, Generic[T]):
    item: T


class Customer(TypedDict):
    name: str


class Model(pydantic.BaseModel):
    name: str


@pytest.mark.parametrize(
    ("result", "parameter"),
    [
        (int, int),
        (int, float),
        (Cents, int),
        (Annotated[int, "x"], Cents),
        (Any, int),
        (int, Any),
        (int, object),
        (T, int),
        (None, None),
        (int, int | None),
        (None, int | None),
        (int, int | Failed),
        (int, Failed | int),
        (list[int], Sequence[int | Failed]),
        (list[int], tuple[int, ...]),
        (list[int], list[Any]),
        (list[int], list),
        (list, list[int]),
        (set[str], frozenset[str]),
        (tuple[int, str], tuple[int, str]),
        (tuple[int, bool], list[int | bool]),
        (tuple[()], list[int]),
        (tuple[list[int], tuple[()]], list[list[int]]),
        (list[int], tuple[int, int]),
        (dict[str, int], Mapping[str, float]),
        (dict[str, Any], Order),
        (Order, dict[str, Any]),
        (Customer, Order),
        (LargeOrder, Order),
        (Page[int], Page[int]),
        (Model, Model),
        (str, datetime.datetime),
        (datetime.datetime, str),
        (datetime.datetime, datetime.date),
        (uuid.UUID, uuid.UUID),
        (Literal["a"], str),
        (Colour, str),
        (decimal.Decimal, str),
        (complex, int),
    ],
    ids=str,
)
def test_what_fits(result: Any, parameter: Any) -> None:
    assert fits(result, parameter)


@pytest.mark.parametrize(
    ("result", "parameter"),
    [
        (str, int),
        (int, str),
        (float, int),
        (bool, int),
        (None, int),
        (int | None, int),
        (int | str, int),
        (Order, int),
        (Order, Price),
        (Order, LargeOrder),
        (Order, Model),
        (int, Order),
        (list[int], int),
        (int, list[int]),
        (list[int], list[str]),
        (list[int], dict[str, int]),
        (tuple[int, str], list[int]),
        (tuple[int, str], tuple[int, int]),
        (tuple[int, str], tuple[int, str, int]),
        (tuple[()], tuple[int]),
        (tuple[int], tuple[()]),
        (tuple[int], list[list[int]]),
        (dict[str, int], dict[str, str]),
        (uuid.UUID, datetime.datetime),
        (str, int | Failed | None),
    ],
    ids=str,
)
def test_what_does_not(result: Any, parameter: Any) -> None:
    assert not fits(result, parameter)


@pytest.mark.parametrize(
    ("hint", "path", "part"),
    [
        (Order, ["number"], int),
        (Order, ["lines", 0], str),
        (Order, ["lines"], list[str]),
        (Price, ["inCents"], int),
        (Customer, ["name"], str),
        (Model, ["name"], Any),
        (Page[int], ["item"], Any),
        (dict[str, Order], ["a", "number"], int),
        (dict, ["a"], Any),
        (list, [3], Any),
        (tuple[int, Order], [1, "number"], int),
        (tuple[int, ...], [7], int),
        (Any, ["a", 0], Any),
        (Order | None, ["number"], Any),
        (complex, ["real"], Any),
        (complex, [0], Any),
    ],
    ids=str,
)
def test_parts(hint: Any, path: list[str | int], part: Any) -> None:
    assert part_of(hint, path) == part


@pytest.mark.parametrize(
    ("hint", "path"),
    [
        (Order, ["total"]),
        (Price, ["in_cents"]),
        (int, ["real"]),
        (list[int], ["a"]),
        (Order, [0]),
        (tuple[int, int], [2]),
    ],
    ids=str,
)
def test_there_is_no_such_part(hint: Any, path: list[str | int]) -> None:
    with pytest.raises(LookupError):
        part_of(hint, path)


def test_types_are_shown_in_short() -> None:
    assert shown_hint(Order) == "Order"
    assert shown_hint(list[int] | None) == "list[int] | None"
