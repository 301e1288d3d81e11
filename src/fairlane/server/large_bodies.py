"""Bodies above a size: read in steps, so that none of them holds the event loop or builds more
than it should.

A list of items, as in batches, is cut into its items first, and each is decoded by itself. In all
other bodies, only what stays raw and single texts may be large.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge
from fairlane.server.errors import BodyTooLarge, InvalidJson, InvalidRequest

T = TypeVar("T")

LARGE_BYTES: Final = 64 * 1024
"""Bodies up to this size are decoded at once."""
ITEM_BYTES: Final = 2 * 1024 * 1024
"""The maximum size of one item of a list."""
LISTED_BYTES: Final = 768 * 1024
"""The maximum size of all fields of a body, or of an item, that hold many values."""
PART_BYTES: Final = 512 * 1024
"""Items of a larger list are decoded and handled in parts of this size, where they may be handled
apart from each other."""
STEP_SECONDS: Final = 0.005
"""How long the event loop is held before others get a turn."""


class Pace:
    """Lets others use the event loop between the steps of a long piece of work."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    async def rest(self) -> None:
        """Give way, if this work has held the loop for long enough."""
        if time.perf_counter() - self._since > STEP_SECONDS:
            await asyncio.sleep(0)
            self._since = time.perf_counter()


async def call_aside(size: int, function: Callable[[], T]) -> T:
    """Call a function that works on a value of this size: in a thread if it is large, because keys
    are made from payloads in several steps, between which the event loop can go on."""
    return await asyncio.to_thread(function) if size > LARGE_BYTES else function()


# -- lists -----------------------------------------------------------------------------------------


class Undecoded(Sequence[T]):
    """The items of a large list, each decoded when it is read: together, and with everything that
    is made of them, they may take many times the memory of their JSON."""

    def __init__(self, items: Sequence[memoryview], decode: Callable[[memoryview], T]) -> None:
        self._items = items
        self._decode = decode

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._decode(self._items[index])


class ListBody(NamedTuple):
    """A kind of body that is nothing but a list of items."""

    kind: Any
    field: str
    item: Any
    strict: bool
    """Whether other fields are refused. Otherwise they are ignored."""


@cache
def list_body(kind: Any) -> ListBody | None:
    """Return how to read this kind of body if it is nothing but a list of items."""
    found = _bare(inspect.type_info(kind))
    if not isinstance(found, inspect.StructType) or len(found.fields) != 1:
        return None
    (field,) = found.fields
    listed = _bare(field.type)
    if not isinstance(listed, inspect.VarTupleType):
        return None
    item = _bare(listed.item_type)
    if isinstance(item, inspect.RawType):
        return ListBody(found.cls, field.encode_name, msgspec.Raw, found.forbid_unknown_fields)
    if not isinstance(item, inspect.StructType):
        return None
    return ListBody(found.cls, field.encode_name, item.cls, found.forbid_unknown_fields)


def items_of(body: bytes, shape: ListBody) -> Iterator[memoryview]:
    """Yield the items of a list, each as it was sent."""
    view = memoryview(body)
    missing = True
    at = _expect(body, b"{", 0)
    while not _is_next(body, b"}", at):
        end = _end_of_value(view, at)
        name = _text(view[at:end])
        at = _expect(body, b":", end)
        if name == shape.field and missing:
            missing = False
            at = yield from _items(body, view, at, name)
        elif name == shape.field or shape.strict:
            raise InvalidRequest(f"The body has one field, {shape.field!r}, once.")
        else:
            at = _end_of_value(view, at)
        at = _next_of(body, b"}", at)
    at = _expect(body, b"}", at)
    if at < len(body):
        raise InvalidJson(f"The body is not JSON: trailing characters (byte {at}).")
    if missing:
        raise InvalidRequest(f"Object missing required field '{shape.field}'.")


def _items(body: bytes, view: memoryview, at: int, name: str) -> Any:
    if not _is_next(body, b"[", at):
        raise InvalidRequest(f"Expected `array` - at `$.{name}`.".replace("`", "'"))
    at = _expect(body, b"[", at)
    count = 0
    while not _is_next(body, b"]", at):
        count += 1
        if count > limits.SUBMIT_BATCH:
            raise BatchTooLarge(f"At most {limits.SUBMIT_BATCH:,} items are sent at once.")
        end = _end_of_value(view, at)
        yield view[at:end]
        at = _next_of(body, b"]", end)
    return _expect(body, b"]", at)


_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_TRAILING: Final = re.compile(r"trailing characters \(byte ([0-9]+)\)")
_raw: Final = msgspec.json.Decoder(msgspec.Raw)


def _end_of_value(view: memoryview, at: int) -> int:
    """Return where a value ends that is followed by something else."""
    window = view[at : at + ITEM_BYTES + 1]
    try:
        _raw.decode(window)
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing is not None:
            return at + int(trailing[1]) - 1  # msgspec has read one character too many
        if len(window) <= ITEM_BYTES:
            raise InvalidJson(f"The body is not JSON: {error}, counted from byte {at}.") from None
    except RecursionError:
        raise too_deep() from None
    if len(window) > ITEM_BYTES:
        raise BodyTooLarge(f"An item has more than {ITEM_BYTES:,} bytes, or is not JSON.")
    return len(view)


CUTS_LISTS: Final = _end_of_value(memoryview(b"[1] ,2"), 0) == 4
"""Whether msgspec says where a value ends, as it does today."""


def _text(view: memoryview) -> str:
    try:
        return msgspec.json.decode(view, type=str)
    except msgspec.MsgspecError as error:
        raise InvalidJson(f"The body is not JSON: {error}.") from None


def _is_next(body: bytes, character: bytes, at: int) -> bool:
    return body.startswith(character, _after_space(body, at))


def _expect(body: bytes, character: bytes, at: int) -> int:
    """Return where the next value begins, after a character that has to be here."""
    at = _after_space(body, at)
    if not body.startswith(character, at):
        raise InvalidJson(f"The body is not JSON: expected {character.decode()!r} (byte {at}).")
    return _after_space(body, at + 1)


def _next_of(body: bytes, closing: bytes, at: int) -> int:
    """Return where the next of several values begins, or the bracket after the last one."""
    if _is_next(body, closing, at):
        return _after_space(body, at)
    at = _expect(body, b",", at)
    if _is_next(body, closing, at):
        raise InvalidJson(f"The body is not JSON: trailing comma (byte {at}).")
    return at


def _after_space(body: bytes, at: int) -> int:
    found = _SPACE.match(body, at)
    return at if found is None else found.end()


# -- everything else -------------------------------------------------------------------------------


def check_lists(kind: Any, body: bytes) -> None:
    """Raise BodyTooLarge if fields that hold many values are too large to be decoded."""
    outline = _outline(kind)
    if outline is None:
        return
    try:
        found = outline.decode(body)
    except msgspec.ValidationError:
        return  # decoding the body fails in the same way, and says why
    except msgspec.DecodeError as error:  # parsing it once is enough
        raise InvalidJson(f"The body is not JSON: {error}.") from None
    except RecursionError:
        raise too_deep() from None
    if sum(memoryview(each).nbytes for each in msgspec.structs.astuple(found)) > LISTED_BYTES:
        names = ", ".join(found.__struct_fields__)
        raise BodyTooLarge(f"The fields {names} have more than {LISTED_BYTES:,} bytes together.")


@cache
def _outline(kind: Any) -> msgspec.json.Decoder[Any] | None:
    """Return a decoder that cuts out the fields of a body that may hold many values."""
    found = _bare(inspect.type_info(kind))
    if not isinstance(found, inspect.StructType):
        return None
    names = [(field.name, field.encode_name) for field in found.fields if _is_plural(field.type)]
    if not names:
        return None
    fields = [(name, msgspec.Raw, msgspec.field(default_factory=msgspec.Raw)) for name, _ in names]
    return msgspec.json.Decoder(msgspec.defstruct("Outline", fields, rename=dict(names)))


_PLURAL: Final = (inspect.AnyType, inspect.CollectionType, inspect.DictType)


def _is_plural(type: inspect.Type) -> bool:
    bare = _bare(type)
    if isinstance(bare, inspect.UnionType):
        return any(map(_is_plural, bare.types))
    if isinstance(bare, inspect.StructType):
        return any(_is_plural(field.type) for field in bare.fields)
    return isinstance(bare, _PLURAL)


def _bare(type: inspect.Type) -> inspect.Type:
    """Return a type without its metadata."""
    return type.type if isinstance(type, inspect.Metadata) else type


def too_deep() -> InvalidRequest:
    """Return the error for a body that is nested too deeply."""
    return InvalidRequest(f"The body is nested deeper than {limits.JSON_DEPTH} levels: flatten it.")
