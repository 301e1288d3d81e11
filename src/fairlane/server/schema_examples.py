"""The published schema of a parameter for people: in a few words, and as an example value.

Schemas come from workers, which are not trusted: every keyword may hold anything, and a schema may
refer to itself. What is not understood is called any JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from fairlane.core.json_schema import list_in, object_in

ANY: Final = "any JSON"

_DEPTH: Final = 5
_STEPS: Final = 100
"""How many values an example holds at the most."""
_ALTERNATIVES: Final = 8
_WORDS: Final = 200
_TEXT: Final = 200

_FORMATS: Final[Mapping[str, str]] = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00Z",
    "duration": "PT1M",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "decimal": "1.5",
    "email": "ada@example.com",
    "uri": "https://example.com",
}


def words_of(schema: Any) -> str:
    """Return a schema in a few words, such as "array of string"."""
    text = _words(schema, _DEPTH)
    return text if len(text) <= _WORDS else f"{text[:_WORDS]}…"


def _words(schema: Any, depth: int) -> str:
    if not isinstance(schema, dict) or not depth:
        return ANY
    if isinstance(reference := schema.get("$ref"), str):
        return reference.rpartition("/")[2]
    if values := list_in(schema, "enum"):
        return _alternatives(values, json_of)
    if "const" in schema:
        return json_of(schema["const"])
    if options := list_in(schema, "anyOf"):
        return _alternatives(options, lambda option: _words(option, depth - 1))
    types = list_in(schema, "type") or [schema.get("format") or schema.get("type")]
    text = _alternatives(types, lambda type: type if isinstance(type, str) else ANY)
    return f"{text} of {_words(schema['items'], depth - 1)}" if "items" in schema else text


def _alternatives(items: list[Any], shown: Callable[[Any], str]) -> str:
    more = " | …" if len(items) > _ALTERNATIVES else ""
    return " | ".join(map(shown, items[:_ALTERNATIVES])) + more


def json_of(value: Any) -> str:
    """Return a value as JSON, cut if it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _WORDS else f"{text[:_WORDS]}…"


def example_of(schema: Any) -> dict[str, Any]:
    """Return parameters that fit, with those that are required; as far as the schema says."""
    found = _Example(schema).value(schema, _DEPTH) if isinstance(schema, dict) else {}
    return found if isinstance(found, dict) else {}


class _Example:
    """Makes values that fit the parts of one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._definitions = object_in(root, "$defs")
        self._steps = _STEPS

    def value(self, schema: Any, depth: int) -> Any:
        self._steps -= 1
        found = self._resolved(schema)
        if depth < 0 or self._steps < 0:
            return None
        if values := list_in(found, "enum"):
            return values[0]
        if "const" in found:
            return found["const"]
        if options := list_in(found, "anyOf"):
            return self.value(options[0], depth - 1)
        types = list_in(found, "type") or [found.get("type")]
        make = _MAKERS.get(types[0]) if isinstance(types[0], str) else None
        return "…" if make is None else make(self, found, depth - 1)

    def object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = object_in(schema, "properties")
        required = [name for name in list_in(schema, "required") if isinstance(name, str)]
        return {name: self.value(properties.get(name), depth) for name in required[:_STEPS]}

    def array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        first = list_in(schema, "prefixItems")
        if first:
            return [self.value(each, depth) for each in first[:_STEPS]]
        return [self.value(schema["items"], depth)] if "items" in schema else []

    def text(self, schema: Mapping[str, Any], _depth: int) -> str:
        if "contentEncoding" in schema:
            return ""  # base64
        format = schema.get("format")
        known = _FORMATS.get(format) if isinstance(format, str) else None
        least = _number_in(schema, "minLength", 0)
        return known or "text".ljust(int(min(least, _TEXT)), "-")

    def number(self, schema: Mapping[str, Any], _depth: int) -> Any:
        above = _number_in(schema, "exclusiveMinimum", None)
        return _number_in(schema, "minimum", 1 if above is None else above + 1)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if isinstance(reference, str):
            schema = self._definitions.get(reference.removeprefix("#/$defs/"))
        return schema if isinstance(schema, dict) else {}


_MAKERS: Final[Mapping[str, Callable[[_Example, Mapping[str, Any], int], Any]]] = {
    "object": _Example.object,
    "array": _Example.array,
    "string": _Example.text,
    "integer": _Example.number,
    "number": _Example.number,
    "boolean": lambda *_: True,
    "null": lambda *_: None,
}


def _number_in(schema: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    value = schema.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else otherwise
