"""Errors as HTTP says them: one shape, a status for every class, and no word about the inside.

{"error": {"code": "invalid_type", "message": "A task type has …", "details": {…}}}
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fairlane.core.errors import (
    Conflict,
    FairlaneError,
    IdempotencyConflict,
    InvalidCursor,
    InvalidInput,
    PayloadTooLarge,
    ResultTooLarge,
    StoreError,
    StoreUnavailable,
)
from fairlane.server.answers import Answer, Headers

logger = logging.getLogger("fairlane.server")


class Refused(FairlaneError):
    """The request was refused."""

    code = "refused"
    status: ClassVar[int] = 400

    def __init__(
        self,
        message: str | None = None,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(message)
        self.details = details
        self.headers = headers


class NotJson(Refused):
    """The body is not JSON."""

    code = "invalid_json"


class Unauthorized(Refused):
    """A token is needed: send it as `Authorization: Bearer …`."""

    code = "unauthorized"
    status = 401

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, headers=((b"www-authenticate", b"Bearer"),))


class Forbidden(Refused):
    """This token does not allow that."""

    code = "forbidden"
    status = 403


class NotFound(Refused):
    """There is nothing at this address."""

    code = "not_found"
    status = 404


class TaskNotFound(NotFound):
    """There is no task with this id."""

    code = "task_not_found"


class WorkerNotFound(NotFound):
    """There is no worker with this id."""

    code = "worker_not_found"


class WrongMethod(Refused):
    """This address does not take that method."""

    code = "method_not_allowed"
    status = 405


class TooLarge(Refused):
    """The body is too large."""

    code = "body_too_large"
    status = 413


class WrongMediaType(Refused):
    """The body must be JSON: send `Content-Type: application/json`."""

    code = "unsupported_media_type"
    status = 415


class WrongHost(Refused):
    """This server does not answer to that host name."""

    code = "wrong_host"
    status = 421


class Unfit(Refused):
    """The request does not fit."""

    code = "invalid_request"
    status = 422


class NotNow(Refused):
    """The present state does not allow this."""

    code = "conflict"
    status = 409


class TooMany(Refused):
    """Too many requests: wait a moment."""

    code = "too_many_requests"
    status = 429


INVALID: Final = 422
"""What does not fit, unless a dialect says otherwise (001 says 400)."""


def answer_to(error: Exception, invalid: int = INVALID) -> Answer:
    """The answer that an error becomes. `invalid`: the status of what does not fit."""
    match error:
        case Refused():
            status = invalid if error.status == INVALID else error.status
            return refusal(status, error.code, error.message, error.details, error.headers)
        case StoreError():
            return _store_trouble(error)
        case FairlaneError():
            return refusal(_status_of(error, invalid), error.code, error.message)
        case _:
            logger.error("A request went wrong", exc_info=error)
            return refusal(500, "internal_error", "Something went wrong in the server.")


def refusal(
    status: int,
    code: str,
    message: str,
    details: Mapping[str, Any] | None = None,
    headers: Headers = (),
) -> Answer:
    """The one shape of errors."""
    body = {"error": {"code": code, "message": message, "details": details or {}}}
    return Answer(body, status, headers)


def _status_of(error: FairlaneError, invalid: int) -> int:
    match error:
        case PayloadTooLarge() | ResultTooLarge():
            return 413
        case InvalidCursor():
            return 400
        case InvalidInput() | IdempotencyConflict():
            return invalid
        case Conflict():
            return 409
        case _:
            return 500


def _store_trouble(error: StoreError) -> Answer:
    # The error's own words may quote addresses, paths and SQL: they are for the log alone.
    passing = isinstance(error, StoreUnavailable)
    if not passing:  # what is passing is told once, by whoever met it
        logger.error("The store is in trouble: %s", error)
    wait = b"1" if passing else b"30"
    return refusal(503, error.code, type(error)().message, headers=((b"retry-after", wait),))
