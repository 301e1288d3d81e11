"""Whether the result of one task can be a parameter of another, by their type hints.

A result travels as JSON, so what fits is what JSON can be converted to. Only what certainly does
not fit is refused: type checkers know more, and a worker checks the value itself.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import sys
import types
import typing
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Final, NewType, TypeVar, Union, get_args, get_origin

import msgspec

from fairlane.runtime.results import without_failed

_ARRAYS: Final = (list, tuple, set, frozenset, collections.abc.Collection)
_SEQUENCES: Final = frozenset(
    {
        *(list, tuple, set, frozenset),
        *(collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Collection),
        *(collections.abc.Iterable, collections.abc.Set, collections.abc.MutableSet),
    }
)
_MAPPINGS: Final = frozenset({dict, collections.abc.Mapping, collections.abc.MutableMapping})
_TEXTS: Final = (
    *(str, bytes, bytearray, datetime.date, datetime.time, datetime.timedelta),
    *(uuid.UUID, decimal.Decimal, enum.Enum),
)
_LOOSE: Final = frozenset({str, dict})
"""What any value of the same kind of JSON may be, or become."""


def fits(result: Any, parameter: Any) -> bool:
    """Return whether a result of one type may be an argument of another."""
    result, parameter = _plain(result), without_failed(_plain(parameter))
    parameter = _plain(parameter)
    if _says_nothing(result) or _says_nothing(parameter):
        return True
    if _is_union(result):
        return all(fits(each, parameter) for each in get_args(result))
    if _is_union(parameter):
        return any(fits(result, each) for each in get_args(parameter))
    kinds = _kind(result), _kind(parameter)
    if None in kinds:
        return True
    if kinds[0] != kinds[1]:
        return kinds == ("integer", "number")
    match kinds[0]:
        case "array":
            return _items_fit(result, parameter)
        case "object":
            return _objects_fit(result, parameter)
        case "text":
            return _classes_fit(result, parameter)
    return True


def part_of(hint: Any, path: Sequence[str | int]) -> Any:
    """Return the type of a part of a result. Raises LookupError if there is no such part."""
    for step in path:
        hint = _plain(hint)
        if _says_nothing(hint) or _is_union(hint):
            return Any
        hint = _member(hint, step) if isinstance(step, str) else _item(hint, step)
    return hint


def shown_hint(hint: Any) -> str:
    """Return a type as messages show it."""
    if isinstance(hint, type) and not get_args(hint):
        return hint.__qualname__.rpartition(".")[2]
    return str(hint).replace("typing.", "")


# -- types -----------------------------------------------------------------------------------------


def _plain(hint: Any) -> Any:
    """Return a type without annotations and new names."""
    while True:
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return type(None) if hint is None else hint


def _says_nothing(hint: Any) -> bool:
    return hint in (Any, object) or isinstance(hint, TypeVar | str)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _kind(hint: Any) -> str | None:
    """Return which kind of JSON a type is; None if that is not known."""
    known = get_origin(hint) or hint
    if known in _SEQUENCES:
        return "array"
    if known in _MAPPINGS or _fields(hint) is not None:
        return "object"
    if not isinstance(known, type):
        return None  # a literal, for example
    if issubclass(known, enum.Enum):
        return None  # a text or a number
    if known is type(None):
        return "null"
    if known is bool:
        return "boolean"
    if known is int:
        return "integer"
    if known is float:
        return "number"
    return "text" if issubclass(known, _TEXTS) and known is not decimal.Decimal else None


def _items_fit(result: Any, parameter: Any) -> bool:
    given, wanted = get_args(result), get_args(parameter)
    alike, fixed = not _is_fixed(result), _is_fixed(parameter)
    if (alike and not given) or not (wanted or fixed):
        return True  # of no type in particular
    if not alike:
        if fixed:
            return len(given) == len(wanted) and all(map(fits, given, wanted))
        return all(fits(each, wanted[0]) for each in given)
    return True if fixed else fits(given[0], wanted[0])


def _is_fixed(hint: Any) -> bool:
    """Return whether a type is a tuple of so many items."""
    args = get_args(hint)
    return get_origin(hint) is tuple and not (args and args[-1] is Ellipsis)


def _objects_fit(result: Any, parameter: Any) -> bool:
    given, wanted = get_args(result), get_args(parameter)
    if len(given) == len(wanted) == 2 and _fields(result) is None and _fields(parameter) is None:
        return fits(given[1], wanted[1])
    return _classes_fit(get_origin(result) or result, get_origin(parameter) or parameter)


def _classes_fit(result: Any, parameter: Any) -> bool:
    """Return whether values of one class may be those of another of the same kind of JSON."""
    if any(
        each in _LOOSE or each in _MAPPINGS or typing.is_typeddict(each)
        for each in (result, parameter)
    ):
        return True
    return issubclass(result, parameter)


# -- parts of types --------------------------------------------------------------------------------


def _fields(hint: Any) -> dict[str, Any] | None:
    """Return the types of the members of an object, by their names in JSON."""
    known = get_origin(hint) or hint
    if not isinstance(known, type):
        return None
    try:
        if issubclass(known, msgspec.Struct):
            return {each.encode_name: each.type for each in msgspec.structs.fields(known)}
        if dataclasses.is_dataclass(known) or typing.is_typeddict(known):
            return typing.get_type_hints(known)
    except (NameError, TypeError):
        return {}  # an object, but not one that can be looked into
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(known, pydantic.BaseModel):
        return {}
    return None


def _member(hint: Any, name: str) -> Any:
    fields = _fields(hint)
    if fields == {} or (get_origin(hint) is not None and fields is not None):
        return Any
    if fields is not None:
        return fields[name]
    if (get_origin(hint) or hint) in _MAPPINGS:
        args = get_args(hint)
        return args[1] if args else Any
    if _kind(hint) is None:
        return Any
    raise LookupError


def _item(hint: Any, number: int) -> Any:
    kind = _kind(hint)
    if kind is None:
        return Any
    if kind != "array":
        raise LookupError
    args = get_args(hint)
    if _is_fixed(hint):
        return args[number]
    return args[0] if args else Any
