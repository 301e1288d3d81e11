"""Whether JSON fits the schema of a task's parameters, as far as a schema alone can tell.

The schemas come from type hints (see `runtime/arguments.py`) or from workers in other languages.
Only what certainly does not fit is refused: keywords that are not known here allow everything,
because the handler has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

Schema = Mapping[str, Any]
Path = tuple[str, ...]
"""The steps to a value inside the whole, as a message shows them: `("lines", "[0]", ".sku")`."""

LAX: Final = "x-lax"
"""A keyword of our own: the handler converts such values itself, so they are not checked."""
_STEPS: Final = 10_000
"""How many values are compared with a schema at the most. Schemas may refer to themselves, and
their authors are not trusted with the time of a server: after that, everything is allowed."""

_DEPTH: Final = 120


class Misfit(NamedTuple):
    """What does not fit. `text` is a sentence without its full stop; `parameter` names the
    parameter of the task that is wrong, None if it is none in particular."""

    text: str
    parameter: str | None


def misfit(schema: Schema, value: Any) -> Misfit | None:
    """Return what does not fit; None if nothing is wrong."""
    return _Check(schema).value(schema, value, ())


def unknown(schema: Schema, name: str, path: Path = ()) -> Misfit | None:
    """Return that an object can have no member of this name; None if it can."""
    properties = object_in(schema, "properties")
    if name in properties or schema.get("additionalProperties", True) is not False:
        return None
    known = ", ".join(f"`{each}`" for each in properties)
    says = f"there is {known}" if known else "it takes nothing"
    inside = _inside(path, name)
    return _misfit(inside, f"There is no {_named(inside)}: {says}")


def without_required(schema: Schema, names: Collection[str]) -> dict[str, Any]:
    """Return a schema of an object that need not have members of these names."""
    required = [name for name in list_in(schema, "required") if name not in names]
    return {**schema, "required": required}


class _Check:
    """Checks values against the parts of one schema."""

    def __init__(self, root: Schema) -> None:
        self._definitions: Schema = object_in(root, "$defs")
        self._steps = _STEPS
        self._depth = 0

    def value(self, schema: Any, value: Any, path: Path) -> Misfit | None:
        self._steps -= 1
        self._depth += 1
        known = self._resolve(schema) if self._steps >= 0 and self._depth <= _DEPTH else None
        found = None if known is None else self._known(known, value, path)
        self._depth -= 1
        return found

    def _known(self, found: Schema, value: Any, path: Path) -> Misfit | None:
        if found.get(LAX):
            return None
        if options := list_in(found, "anyOf"):
            return self._any_of(options, value, path)
        allowed = list_in(found, "enum")
        if allowed and not _is_one_of(value, allowed):
            return _misfit(path, f"{_named(path)} must be one of {_listed(allowed)}")
        types = _types_of(found)
        if types and not any(_TYPES[type][1](value) for type in types):
            return _wrong_type(path, types, value)
        if isinstance(value, dict):
            return self._object(found, value, path)
        if isinstance(value, list):
            return self._array(found, value, path)
        return None

    def _resolve(self, schema: Any) -> Schema | None:
        """Return the schema that this one refers to; None if that cannot be known."""
        if not isinstance(schema, dict):
            return None
        reference = schema.get("$ref")
        if reference is None:
            return schema
        found: Any = self._definitions.get(str(reference).removeprefix("#/$defs/"))
        return found if isinstance(found, dict) and "$ref" not in found else None

    def _any_of(self, options: list[Any], value: Any, path: Path) -> Misfit | None:
        types: list[str] = []
        misfits = []
        for option in options:
            found = self.value(option, value, path)
            if found is None:
                return None
            misfits.append(found)
            types += _types_of(self._resolve(option) or {})
        if not types or kind_of(value) in (_TYPES[type][0] for type in types):
            # The alternative of the same type was most likely meant.
            return next((each for each in misfits if ", not " not in each.text), misfits[0])
        return _wrong_type(path, types, value)

    def _object(self, schema: Schema, value: Mapping[str, Any], path: Path) -> Misfit | None:
        properties = object_in(schema, "properties")
        for name in list_in(schema, "required"):
            if name not in value:
                inside = _inside(path, name)
                return _misfit(inside, f"{_named(inside)} is missing")
        others = schema.get("additionalProperties", True)
        for name, each in value.items():
            inside = _inside(path, name)
            found = unknown(schema, name, path)
            if found is not None:
                return found
            found = self.value(properties.get(name, others), each, inside)
            if found is not None:
                return found
        return None

    def _array(self, schema: Schema, value: list[Any], path: Path) -> Misfit | None:
        first = list_in(schema, "prefixItems")
        for number, each in enumerate(value):
            part = first[number] if number < len(first) else schema.get("items")
            found = self.value(part, each, (*path, f"[{number}]"))
            if found is not None:
                return found
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "string": ("text", lambda value: isinstance(value, str)),
    "integer": (
        "a whole number",
        lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    ),
    "number": ("a number", _is_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
    "array": ("a list", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
}
"""How a type is called, and whether a value has it."""


def object_in(schema: Schema, name: str) -> dict[str, Any]:
    """Return the object that a keyword has; empty if it has none."""
    value = schema.get(name)
    return value if isinstance(value, dict) else {}


def list_in(schema: Schema, name: str) -> list[Any]:
    """Return the list that a keyword has; empty if it has none."""
    value = schema.get(name)
    return value if isinstance(value, list) else []


def _types_of(schema: Schema) -> list[str]:
    """Return the types that a value may have; empty if that is not known."""
    types: list[Any] = list_in(schema, "type") or [schema.get("type")]
    if not all(isinstance(each, str) and each in _TYPES for each in types):
        return []
    # A decimal is decoded from a number as well.
    return [*types, "number"] if schema.get("format") == "decimal" else types


def _listed_types(types: list[str]) -> str:
    return " or ".join(dict.fromkeys(_TYPES[type][0] for type in types))


def kind_of(value: Any) -> str:
    """Return what kind of JSON a value is, without showing the value."""
    kinds = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next(_TYPES[kind][0] for kind in kinds if _TYPES[kind][1](value))


def _is_one_of(value: Any, allowed: list[Any]) -> bool:
    # Not `in`: Python holds that 1 equals True.
    return any(
        value == each and isinstance(value, bool) is isinstance(each, bool) for each in allowed
    )


def _listed(allowed: list[Any]) -> str:
    texts = [f'"{each}"' if isinstance(each, str) else str(each) for each in allowed[:10]]
    return ", ".join(texts) + (", …" if len(allowed) > len(texts) else "")


def _inside(path: Path, name: object) -> Path:
    return (*path, f".{name}" if path else str(name))


def _named(path: Path) -> str:
    return f"`{''.join(path)[:200]}`" if path else "The payload"


def _misfit(path: Path, text: str) -> Misfit:
    return Misfit(text, path[0][:200] if path else None)


def _wrong_type(path: Path, types: list[str], value: Any) -> Misfit:
    return _misfit(path, f"{_named(path)} must be {_listed_types(types)}, not {kind_of(value)}")
