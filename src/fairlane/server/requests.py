"""Reading a request: its headers, its query, its body; or saying in what way it does not fit."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from fairlane.core import limits
from fairlane.core.text import concealed, shown
from fairlane.server.errors import NotJson, TooLarge, Unfit, WrongMediaType
from fairlane.server.operations import Operation

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

T = TypeVar("T")

PARAMETERS: Final = 100
"""More parameters than this in a query are an attack."""


class Gone(Exception):
    """The client went away before its request was complete."""


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The headers by name."""
    return dict(scope["headers"])


class BodyReader:
    """Reads the body of one operation."""

    def __init__(self, operation: Operation) -> None:
        self._most = operation.most
        self._optional = operation.optional_body
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(operation.body)

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> Any:
        """The body as the operation wants it."""
        declared = headers.get(b"content-length")
        if declared is not None and len(declared) < 20 and int(declared) > self._most:
            raise _too_large(self._most)
        body = await received(receive, self._most)
        if not body and self._optional:
            body = b"{}"
        elif not _is_json(headers.get(b"content-type", b"")):
            raise WrongMediaType
        return decoded(self._decoder, body)


def decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """JSON as a decoder wants it, or an error that says in what way it does not fit."""
    try:
        if not body.isascii():
            body.decode("utf-8")  # of what is kept as it was sent the decoder sees the outline only
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Unfit(*_told(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if _is_grammatical(body):
            raise Unfit(
                "The body has a text that is none: half of a surrogate pair, such as \\ud800."
            ) from None
        raise NotJson(f"The body is not JSON: {error}.") from None
    except RecursionError:
        raise Unfit(
            f"The body is nested deeper than {limits.JSON_DEPTH} levels: flatten it."
        ) from None


def _is_grammatical(body: bytes) -> bool:
    """Whether it is JSON, though with texts that no UTF-8 can hold."""
    try:
        json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)


async def received(receive: Receive, most: int) -> bytes:
    """The body of a request, as long as it has at most so many bytes."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
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
            raise Gone
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return b"".join(parts)


async def left(receive: Receive) -> None:
    """Wait until the client has gone. Its request must have been read, or have no body."""
    while (await receive())["type"] != "http.disconnect":
        pass


def query_of(scope: Scope, kind: Any) -> Any:
    """The query as an operation wants it: a struct whose fields are single values, or lists for
    parameters that may be repeated."""
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
        raise Unfit(f"The query is malformed, or has more than {PARAMETERS} parameters.") from None
    found: dict[str, Any] = {}
    fields = _fields(kind)
    for name, value in pairs:
        if name in fields.times and "T" not in value.upper():  # msgspec takes seconds since 1970
            raise Unfit(
                f"The parameter {shown(name)} is not a time as ISO 8601 has it.",
                details={"field": name},
            )
        if name in fields.repeatable:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise Unfit(f"The parameter {shown(name)} was given twice.", details={"field": name})
        else:
            found[name] = value
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Unfit(*_told(error)) from None


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
    """A type without what is only said about it."""
    return type.type if isinstance(type, msgspec.inspect.Metadata) else type


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"The body has more than {most:,} bytes: send less at once.")


def _told(error: msgspec.ValidationError) -> tuple[str]:
    """What msgspec says, as a sentence."""
    return (concealed(f"{error}.").replace("`", "'"),)
