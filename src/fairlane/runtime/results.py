"""Parameters that are results of other tasks, as a handler gets them.

A result is converted to the type of the parameter, as any argument is. What stands in place of the
result of a task that did not complete becomes a `Failed`, if the type of the parameter says so:
`Receipt | Failed`, `list[Price | Failed]`. msgspec cannot decode such types, so they are taken
apart here.
"""

from __future__ import annotations

import collections.abc
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec

from fairlane.core.errors import InputMissing
from fairlane.core.inputs import RESULT, Input
from fairlane.core.merging import Failed, failed_in
from fairlane.core.raw_json import items_of
from fairlane.runtime.codecs import Codec, find, stored_with
from fairlane.runtime.values import from_builtins


class Unanswered(InputMissing):
    """A task whose result is a parameter did not complete, and the parameter must be a result."""


class Refused(Exception):
    """The type of a parameter does not admit `Failed`."""

    def __init__(self, failed: Failed) -> None:
        self.failed = failed


def unanswered(handler: str, parameter: str, failed: Failed) -> Unanswered:
    """Return the error for a handler that can do nothing with a parent that failed."""
    return Unanswered(
        f"The parameter {parameter} of {handler} is the result of task {failed.task_id}, which is "
        f"{failed.state} ({failed.message.rstrip('.')}). Give the parameter a default, or let its "
        "type be `… | Failed`.",
        parameter=parameter,
        parent=failed.task_id,
    )


# -- types -----------------------------------------------------------------------------------------

_CONTAINERS: Final[Mapping[Any, Callable[[Iterable[Any]], Any]]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}


def without_failed(hint: Any) -> Any:
    """Return a type without `Failed`, for its items as well: what results are converted to."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        plain = without_failed(args[0])
        return hint if plain is args[0] else Annotated[(plain, *hint.__metadata__)]
    if _is_union(origin):
        kept = tuple(without_failed(each) for each in args if each is not Failed)
        return hint if kept == args else Union[kept or (Failed,)]  # noqa: UP007 (made of a tuple)
    if origin in _CONTAINERS:
        kept = tuple(without_failed(each) for each in args)
        return hint if kept == args else origin[kept]
    return hint


def _admits(hint: Any) -> bool:
    """Return whether a value of this type may be `Failed`."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _admits(args[0])
    return hint in (Failed, Any) or (_is_union(origin) and any(map(_admits, args)))


def _is_union(origin: Any) -> bool:
    return origin is Union or origin is types.UnionType


class _Items(NamedTuple):
    """What a list of results becomes: a container, and the types of its items."""

    container: Callable[[Iterable[Any]], Any]
    hints: tuple[Any, ...]
    alike: bool
    """There is any number of items, all of the first type."""

    def hint(self, place: int) -> Any:
        """Return the type of an item."""
        return self.hints[0 if self.alike else place]


_ANYTHING: Final = _Items(list, (Any,), alike=True)


def _items_in(hint: Any) -> _Items:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _items_in(args[0])
    if _is_union(origin):
        found = (_items_in(each) for each in args)
        return next((each for each in found if each is not _ANYTHING), _ANYTHING)
    container = _CONTAINERS.get(origin or hint)
    if container is None:
        return _ANYTHING
    if container is tuple and args and args[-1] is not Ellipsis:
        return _Items(container, args, alike=False)
    return _Items(container, args[:1] or (Any,), alike=True)


# -- values ----------------------------------------------------------------------------------------


class ResultParameter:
    """Converts what stands in a parameter, if that is a result or a list of results."""

    def __init__(self, hint: Any, codecs: Mapping[str, Codec]) -> None:
        self._hint = hint
        self._items = _items_in(hint)
        self._codecs = codecs
        self._decoders: dict[tuple[int, ...], msgspec.json.Decoder[Any]] = {}

    def value(self, given: bytes, source: Input) -> Any:
        """Return the argument. Raises Refused if it would be `Failed`, and must not be."""
        if not source.many:
            return self._value(given, self._hint, ())
        return self._list(given, self._items, (), iter(source.nesting or repeat(RESULT)))

    def _list(
        self, given: bytes, expected: _Items, place: tuple[int, ...], nesting: Iterator[int]
    ) -> Any:
        items = items_of(given)
        if not expected.alike and len(items) != len(expected.hints):
            raise ValueError(f"Expected {len(expected.hints)} results, got {len(items)}")
        values: list[Any] = []
        for number, each in enumerate(items):
            hint, here = expected.hint(number), (*place, 0 if expected.alike else number)
            if next(nesting) == RESULT:
                values.append(self._value(each, hint, here))
            else:
                values.append(self._list(each, _items_in(hint), here, nesting))
        return expected.container(values)

    def _value(self, given: bytes, hint: Any, place: tuple[int, ...]) -> Any:
        failed = failed_in(given)
        if failed is not None:
            if _admits(hint):
                return failed
            raise Refused(failed)
        stored = stored_with(given)
        if stored is not None:
            return self._decoded(stored.codec, stored.data)
        decoder = self._decoders.get(place)
        if decoder is None:
            decoder = msgspec.json.Decoder(without_failed(hint), dec_hook=from_builtins)
            self._decoders[place] = decoder
        return decoder.decode(given)

    def _decoded(self, name: str, data: Any) -> Any:
        codec = find(self._codecs, name).codec
        try:
            return codec.decode(data)
        except Exception as error:
            raise ValueError(
                f"The codec {name} cannot decode the result ({type(error).__name__})"
            ) from error
