"""Errors of a server and of connections to it, as the errors that every store raises."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fairlane.core.errors import (
    AccessDenied,
    BatchTooLarge,
    Conflict,
    FairlaneError,
    InvalidInput,
    NotAFairlaneStore,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from fairlane.engines.http.address import Address
from fairlane.http_client import Disconnected, ProtocolError, Reply

LONGEST_PAUSE: Final = 60.0
"""The longest pause that a server may ask for."""


_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"}


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
    """Return the error that a reply reports."""
    reported = _reported(reply)
    error = _by_status(reply) if reported is None else _by_code(reply.status, reported)
    if isinstance(error, StoreUnavailable):
        error.after = _pause(reply.header("retry-after"))
    return error


def connection_error(address: Address, error: BaseException) -> BaseException:
    """Return the error for a connection that could not be made, or was lost."""
    who = address.shown
    match error:
        case StoreError():
            return error
        case ssl.SSLCertVerificationError():
            return StoreUnusable(
                f"{who} has a certificate that cannot be trusted: "
                f"{error.verify_message.rstrip('.')}. Check ca_file and the host in the URL."
            )
        case ssl.SSLError(reason=reason) if reason in _NO_TLS:
            return StoreUnusable(f"{who} does not speak TLS: use http://.")
        case TimeoutError():
            return StoreUnavailable(f"{who} does not answer.")
        case Disconnected() | ProtocolError() | ConnectionResetError() | BrokenPipeError():
            hint = "" if address.tls else " If it expects TLS, use https://."
            return StoreUnavailable(f"{who} closed the connection.{hint}")
        case OSError():
            return StoreUnavailable(f"{who} cannot be reached at the moment.")
        case _:
            return error


def code_of(reply: Reply) -> str | None:
    """Return the code of the error that a reply reports, if it is one."""
    reported = _reported(reply)
    return None if reported is None else reported.code


def details_of(reply: Reply) -> dict[str, Any]:
    """Return the details of the error that a reply reports."""
    reported = _reported(reply)
    return {} if reported is None else reported.details


def _reported(reply: Reply) -> _Error | None:
    try:
        return _body.decode(reply.body).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _by_code(status: int, reported: _Error) -> FairlaneError:
    known = _CLASSES.get(reported.code)
    if known is not None:
        return known(reported.message)
    if reported.code == "invalid_batch":
        return _first_of(reported)
    if reported.code == "unauthorized" and "needed" in reported.message:
        return AccessDenied(
            "The server requires a token: give it as token=…, or as FAIRLANE_TOKEN."
        )
    if status >= 500:
        return StoreUnavailable(f"The server failed: {reported.message}")
    if reported.code == "not_found":
        return _no_server(status)
    return _BY_STATUS.get(status, InvalidInput)(reported.message)


def _first_of(reported: _Error) -> FairlaneError:
    """Return the error of the first invalid task of a batch."""
    try:
        first = reported.details["errors"][0]
        return _CLASSES.get(first["code"], InvalidInput)(first["message"])
    except (KeyError, IndexError, TypeError):
        return InvalidInput(reported.message)


def _by_status(reply: Reply) -> FairlaneError:
    """Return the error for a reply that is not in our shape: a proxy's, for example."""
    if reply.status >= 500:
        return StoreUnavailable(
            f"The server is away: a proxy in front of it replied {reply.status}."
        )
    known = _BY_STATUS.get(reply.status)
    if known is None:
        return _no_server(reply.status)
    return known(f"A proxy in front of the server refused the request ({reply.status}).")


def _no_server(status: int) -> NotAFairlaneStore:
    return NotAFairlaneStore(
        f"There is no Fairlane server at this address, or it is too old: it replied {status}. "
        "Check the URL, and the path where the server is mounted."
    )


def _pause(given: str | None) -> float:
    """Return the seconds in a Retry-After header; 0 if it has none."""
    if given is None or not given.strip().isdecimal():
        return 0.0
    return min(float(given.strip()[:9]), LONGEST_PAUSE)
