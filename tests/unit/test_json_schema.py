"""What fits a schema, and what is said about what does not."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.core.json_schema import LAX, misfit

POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "mode": {"enum": ["fast", "slow", 1]},
        "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}},
        "price": {"type": "string", "format": "decimal"},
        "flag": {"type": ["boolean", "null"]},
        "either": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "string"}]},
        "model": {"type": "object", LAX: True},
        "unknown": {"$ref": "#/$defs/Nowhere"},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "anything": {},
    },
    "required": ["to"],
    "additionalProperties": False,
    "$defs": {"Point": POINT},
}

FITS: list[dict[str, Any]] = [
    {"count": None},
    {"count": 5, "mode": "fast"},
    {"count": 5.0, "mode": 1},
    {"points": [{"x": 1}, {"x": 2.5, "more": True}]},
    {"pair": ["a", None, None]},
    {"pair": []},
    {"price": "1.50", "flag": None},
    {"price": 1.5, "flag": True},
    {"either": "text"},
    {"either": {"x": 1}},
    {"model": 5, "unknown": [1], "anything": {"a": [1]}},
    {"map": {"a": 1}},
]
DOES_NOT: list[tuple[Any, str]] = [
    ([], "The payload must be an object, not a list"),
    ({}, "`to` is missing"),
    ({"to": 5}, "`to` must be text, not a whole number"),
    ({"to": "a", "count": "5"}, "`count` must be a whole number or null, not text"),
    ({"to": "a", "count": 5.5}, "`count` must be a whole number or null, not a number"),
    ({"to": "a", "count": True}, "`count` must be a whole number or null, not true or false"),
    ({"to": "a", "mode": "other"}, '`mode` must be one of "fast", "slow", 1'),
    ({"to": "a", "mode": True}, '`mode` must be one of "fast", "slow", 1'),
    ({"to": "a", "points": [{"x": 1}, {"x": "1"}]}, "`points[1].x` must be a number, not text"),
    ({"to": "a", "points": {}}, "`points` must be a list, not an object"),
    ({"to": "a", "pair": ["a", 5]}, "`pair[1]` must be null, not a whole number"),
    ({"to": "a", "price": True}, "`price` must be text or a number, not true or false"),
    ({"to": "a", "flag": "yes"}, "`flag` must be true or false or null, not text"),
    ({"to": "a", "either": {}}, "`either.x` is missing"),
    ({"to": "a", "either": 5}, "`either` must be an object or text, not a whole number"),
    ({"to": "a", "map": {"a": "b"}}, "`map.a` must be a whole number, not text"),
    ({"to": "a", "cc": 1}, "There is no `cc`: there is `to`, `count`"),
]


def text_of(schema: dict[str, Any], value: Any) -> str:
    found = misfit(schema, value)
    assert found is not None
    return found.text


@pytest.mark.parametrize("value", FITS)
def test_it_fits(value: dict[str, Any]) -> None:
    assert misfit(SCHEMA, {"to": "a", **value}) is None


@pytest.mark.parametrize(("value", "found"), DOES_NOT)
def test_it_does_not_fit(value: Any, found: str) -> None:
    assert text_of(SCHEMA, value).startswith(found)


@pytest.mark.parametrize(
    ("value", "parameter"),
    [
        ({}, "to"),
        ({"to": 5}, "to"),
        ({"to": "a", "a.b": 1}, "a.b"),
        ({"to": "a", "map": {"c.d": "e"}}, "map"),
        ({"to": "a", "either": {}}, "either"),
        ([], None),
    ],
)
def test_the_parameter_is_named(value: Any, parameter: str | None) -> None:
    found = misfit(SCHEMA, value)
    assert found is not None
    assert found.parameter == parameter


def test_no_parameters_at_all() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert misfit(schema, {}) is None
    assert text_of(schema, {"a": 1}) == "There is no `a`: it takes nothing"


def test_of_alternatives_without_types_the_first_is_named() -> None:
    schema = {"anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}
    assert text_of(schema, 5) == 'The payload must be one of "a"'
    assert misfit(schema, "b") is None


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": 5, "required": 5, "anyOf": 5, "enum": 5, "prefixItems": 5, "$defs": 5},
        {"type": "tuple"},
        {"type": ["integer", 5]},
        {"type": {}},
        {"properties": {"a": 5, "b": {"items": 5}}},
        {"$ref": 5},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"pattern": "(a+)+$", "minimum": 10},
    ],
)
def test_a_schema_that_makes_no_sense_allows_everything(schema: dict[str, Any]) -> None:
    for value in ({"a": 1, "b": [1]}, [1, "a"], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", None):
        assert misfit(schema, value) is None


def test_a_schema_cannot_take_long() -> None:
    alternatives = [{"$ref": "#/$defs/a"}] * 50
    endless = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": alternatives}}}
    assert misfit(endless, 5) is None
    deep: Any = 5
    for _ in range(90):
        deep = [deep]
    assert (
        misfit({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, deep)
        is None
    )


def test_long_lists_of_values_are_cut() -> None:
    found = text_of({"enum": list(range(100))}, "a")
    assert found == "The payload must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"
