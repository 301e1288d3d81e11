"""What a server that refuses something means to a user: the same errors that a store raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from fairlane.core.errors import (
    AccessDenied,
    BatchTooLarge,
    Conflict,
    FairlaneError,
    InvalidInput,
    NotAFairlaneStore,
    StoreBusy,
    StoreUnavailable,
    StoreUnusable,
)

LONGEST_PAUSE: Final = 60.0
"""However long a server asks to be left alone."""


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    retry_after: str | None = None


class _Error(msgspec.Struct, frozen=True):
    code: str
    message: str
    details: dict[str, Any] = {}


class _Body(msgspec.Struct, frozen=True):
    error: _Error


_body = msgspec.json.Decoder(_Body)


def _classes(of: type[FairlaneError]) -> Iterator[type[FairlaneError]]:
    yield of
    for each in of.__subclasses__():
        if each.__module__ == FairlaneError.__module__:
            yield from _classes(each)


_CLASSES: Final = {each.code: each for each in _classes(FairlaneError)}
_BY_STATUS: Final[dict[int, type[FairlaneError]]] = {
    401: AccessDenied,
    403: AccessDenied,
    409: Conflict,
    413: BatchTooLarge,
    421: StoreUnusable,
    429: StoreBusy,
}


def error_of(reply: Reply) -> FairlaneError:
    """The error that an answer tells of."""
    told = _told(reply)
    error = _without_words(reply) if told is None else _with_words(reply.status, told)
    if isinstance(error, StoreUnavailable):
        error.after = _pause(reply.retry_after)
    return error


def code_of(reply: Reply) -> str | None:
    """The code of the error that an answer tells of."""
    told = _told(reply)
    return None if told is None else told.code


def details_of(reply: Reply) -> dict[str, Any]:
    """What else an error says."""
    told = _told(reply)
    return {} if told is None else told.details


def _told(reply: Reply) -> _Error | None:
    try:
        return _body.decode(reply.body).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _with_words(status: int, told: _Error) -> FairlaneError:
    known = _CLASSES.get(told.code)
    if known is not None:
        return known(told.message)
    if told.code == "invalid_batch":
        return _first_of(told)
    if told.code == "unauthorized" and "needed" in told.message:
        return AccessDenied("The server wants a token: give it as token=…, or as FAIRLANE_TOKEN.")
    if status >= 500:
        return StoreUnavailable(f"The server is in trouble: {told.message}")
    if told.code == "not_found":
        return _no_server(status)
    return _BY_STATUS.get(status, InvalidInput)(told.message)


def _first_of(told: _Error) -> FairlaneError:
    """Of several tasks that do not fit, the first is enough."""
    try:
        first = told.details["errors"][0]
        return _CLASSES.get(first["code"], InvalidInput)(first["message"])
    except (KeyError, IndexError, TypeError):
        return InvalidInput(told.message)


def _without_words(reply: Reply) -> FairlaneError:
    """What a proxy says, or who knows who."""
    if reply.status >= 500:
        return StoreUnavailable(f"The server is away: what stands before it says {reply.status}.")
    known = _BY_STATUS.get(reply.status)
    if known is None:
        return _no_server(reply.status)
    return known(f"What stands before the server refused the request ({reply.status}).")


def _no_server(status: int) -> NotAFairlaneStore:
    return NotAFairlaneStore(
        f"There is no Fairlane server at this address, or one that is too old: it says {status}. "
        "Check the URL, and the path it is mounted at."
    )


def _pause(given: str | None) -> float:
    """Seconds to wait, as far as the server said so in seconds."""
    if given is None or not given.strip().isdecimal():
        return 0.0
    return min(float(given.strip()[:9]), LONGEST_PAUSE)
