"""Reading a request: its headers, its query, its body. What does not fit raises an error that says
why."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from fairlane.core.raw_json import NotJson, check_utf8
from fairlane.core.text import concealed, shown
from fairlane.server.errors import (
    BodyTooLarge,
    InvalidJson,
    InvalidRequest,
    UnsupportedMediaType,
)
from fairlane.server.large_bodies import (
    CUTS_LISTS,
    ITEM_BYTES,
    LARGE_BYTES,
    PART_BYTES,
    Pace,
    Undecoded,
    check_lists,
    items_of,
    list_body,
    too_deep,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

T = TypeVar("T")

PARAMETERS: Final = 100
"""A query with more parameters is an attack."""


class ClientGone(Exception):
    """The client left before its request was complete."""


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by name."""
    return dict(scope["headers"])


class BodyReader:
    """Reads bodies of one kind, of at most `most` bytes. `optional`: no body counts as `{}`."""

    def __init__(self, kind: Any, most: int, *, optional: bool) -> None:
        self._most = most
        self._optional = optional
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self._list = list_body(kind)

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> Any:
        """Return the decoded body."""
        declared = headers.get(b"content-length")
        if declared is not None and len(declared) < 20 and int(declared) > self._most:
            raise _too_large(self._most)
        body = await read_body(receive, self._most)
        if not body and self._optional:
            body = b"{}"
        elif not _is_json(headers.get(b"content-type", b"")):
            raise UnsupportedMediaType
        return decode(self._decoder, body) if len(body) <= LARGE_BYTES else await self._large(body)

    async def _large(self, body: bytes) -> Any:
        """Decode a large body in steps, between which others can use the event loop."""
        pace = Pace()
        if self._list is None or not CUTS_LISTS:
            found = decode(self._decoder, body)
            await pace.rest()
            return found
        kind, field, item, _ = self._list
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(item)
        undecoded = item is not msgspec.Raw and self._most > ITEM_BYTES and len(body) > PART_BYTES
        items: list[Any] = []
        # All items are checked before the first one has an effect.
        for index, raw in enumerate(items_of(body, self._list)):
            found = _decode_item(decoder, raw, f"{field}[{index}]")
            items.append(raw if undecoded else found)
            await pace.rest()
        return kind(Undecoded(items, decoder.decode) if undecoded else tuple(items))


def _decode_item(decoder: msgspec.json.Decoder[Any], raw: memoryview, place: str) -> Any:
    if decoder.type is msgspec.Raw:
        return msgspec.Raw(raw)
    try:
        return decode(decoder, bytes(raw))
    except InvalidRequest as error:
        raise InvalidRequest(error.message.replace("$", f"$.{place}", 1)) from None


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Decode JSON. Raises InvalidJson, InvalidRequest or BodyTooLarge with the reason."""
    large = len(body) > LARGE_BYTES
    if large:
        check_lists(decoder.type, body)
    try:
        check_utf8(body)  # the decoder does not look into values that are kept raw
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest(_sentence(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, NotJson) as error:
        if not large and _is_grammatical(body):  # which is parsed again, for a better message
            raise InvalidRequest(
                "A text in the body is not valid: it has half of a surrogate pair, such as \\ud800."
            ) from None
        raise InvalidJson(f"The body is not JSON: {error}.") from None
    except RecursionError:
        raise too_deep() from None


def _is_grammatical(body: bytes) -> bool:
    """Return whether this is JSON, although with texts that UTF-8 cannot hold."""
    try:
        json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)


async def read_body(receive: Receive, most: int) -> bytes:
    """Return the body of a request. Raises BodyTooLarge or ClientGone."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if len(body) > most:
        raise _too_large(most)
    if not message.get("more_body", False):
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return b"".join(parts)


async def wait_until_gone(receive: Receive) -> None:
    """Wait until the client has left. Its request must have been read, or have no body."""
    while (await receive())["type"] != "http.disconnect":
        pass


def query_of(scope: Scope, kind: Any) -> Any:
    """Return the query as a struct: its fields are single values, or lists for parameters that may
    be repeated."""
    try:
        text = scope["query_string"].decode("ascii")
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            strict_parsing=bool(text),
            encoding="utf-8",
            errors="strict",
            max_num_fields=PARAMETERS,
        )
    except ValueError:
        raise InvalidRequest(
            f"The query is malformed, or has more than {PARAMETERS} parameters."
        ) from None
    found: dict[str, Any] = {}
    fields = _fields(kind)
    for name, value in pairs:
        if name in fields.times and "T" not in value.upper():  # msgspec takes seconds since 1970
            raise InvalidRequest(
                f"The parameter {shown(name)} is not a time in ISO 8601.",
                details={"field": name},
            )
        if name in fields.repeatable:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise InvalidRequest(
                f"The parameter {shown(name)} was given twice.", details={"field": name}
            )
        else:
            found[name] = value
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(_sentence(error)) from None


class _Fields(NamedTuple):
    """Which fields of a query are lists, and which are times."""

    repeatable: frozenset[str]
    times: frozenset[str]


@cache
def _fields(kind: Any) -> _Fields:
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)

    def of(*kinds: type[msgspec.inspect.Type]) -> frozenset[str]:
        return frozenset(
            field.encode_name
            for field in info.fields
            if any(isinstance(_bare(each), kinds) for each in _choices(field.type))
        )

    inspect = msgspec.inspect
    return _Fields(of(inspect.ListType, inspect.VarTupleType), of(inspect.DateTimeType))


def _choices(type: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, ...]:
    bare = _bare(type)
    return bare.types if isinstance(bare, msgspec.inspect.UnionType) else (bare,)


def _bare(type: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """Return a type without its metadata."""
    return type.type if isinstance(type, msgspec.inspect.Metadata) else type


@lru_cache(maxsize=256)
def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body has more than {most:,} bytes: send less at once.")


def _sentence(error: msgspec.ValidationError) -> str:
    """Return msgspec's message as a sentence."""
    return concealed(f"{error}.").replace("`", "'")
