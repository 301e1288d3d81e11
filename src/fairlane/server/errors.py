"""Errors over HTTP: one shape, a status for every class, and no internals.

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
    InvalidArguments,
    InvalidCursor,
    InvalidInput,
    OutOfBounds,
    PayloadTooLarge,
    ResultTooLarge,
    StoreError,
    StoreUnavailable,
    UnknownSchedule,
    UnknownType,
)
from fairlane.server.responses import Headers, Response

logger = logging.getLogger("fairlane.server")


class HttpError(FairlaneError):
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


class InvalidJson(HttpError):
    """The body is not JSON."""

    code = "invalid_json"


class Unauthorized(HttpError):
    """A token is needed: send it as `Authorization: Bearer …`."""

    code = "unauthorized"
    status = 401

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, headers=((b"www-authenticate", b"Bearer"),))


class Forbidden(HttpError):
    """This token does not allow that."""

    code = "forbidden"
    status = 403


class NotFound(HttpError):
    """There is nothing at this address."""

    code = "not_found"
    status = 404


class TaskNotFound(NotFound):
    """There is no task with this id."""

    code = "task_not_found"


class WorkflowNotFound(NotFound):
    """There is no workflow with this id: its tasks were deleted, or never submitted here."""

    code = "workflow_not_found"


class TypeNotFound(NotFound):
    """There is no such type: no task of it was submitted, and no worker has published it."""

    code = "type_not_found"


class WorkerNotFound(NotFound):
    """There is no worker with this id."""

    code = "worker_not_found"


class MethodNotAllowed(HttpError):
    """This address does not take that method."""

    code = "method_not_allowed"
    status = 405


class BodyTooLarge(HttpError):
    """The body is too large."""

    code = "body_too_large"
    status = 413


class UnsupportedMediaType(HttpError):
    """The body must be JSON: send `Content-Type: application/json`."""

    code = "unsupported_media_type"
    status = 415


class WrongHost(HttpError):
    """This server does not answer to that host name."""

    code = "wrong_host"
    status = 421


class InvalidRequest(HttpError):
    """The request is not valid."""

    code = "invalid_request"
    status = 422


class StateConflict(HttpError):
    """The current state does not allow this."""

    code = "conflict"
    status = 409


class TooManyRequests(HttpError):
    """Too many requests: wait a moment."""

    code = "too_many_requests"
    status = 429


class TooManyWorkers(TooManyRequests):
    """Too many workers of one token: deregister those that have left, or wait until their leases
    have run out and they are forgotten."""

    code = "too_many_workers"


INVALID: Final = 422
"""The status of invalid requests, except under `/api/tasks`, which uses 400."""


def response_to(error: Exception, invalid: int = INVALID) -> Response:
    """Return the response for an error. `invalid`: the status of invalid requests."""
    match error:
        case HttpError():
            status = invalid if error.status == INVALID else error.status
            return error_response(status, error.code, error.message, error.details, error.headers)
        case StoreError():
            return _store_error(error)
        case FairlaneError():
            status = _status_of(error, invalid)
            return error_response(status, error.code, error.message, _details_of(error))
        case _:
            logger.error("A request failed", exc_info=error)
            return error_response(500, "internal_error", "Something went wrong in the server.")


def error_response(
    status: int,
    code: str,
    message: str,
    details: Mapping[str, Any] | None = None,
    headers: Headers = (),
) -> Response:
    """Return a response in the one shape of errors."""
    body = {"error": {"code": code, "message": message, "details": details or {}}}
    return Response(body, status, headers)


def _details_of(error: FairlaneError) -> Mapping[str, Any] | None:
    match error:
        case InvalidArguments(parameter=str(name)):
            return {"parameter": name}
        case UnknownType(similar=names):
            return {"similar": names}
        case _:
            return None


def _status_of(error: FairlaneError, invalid: int) -> int:
    match error:
        case PayloadTooLarge() | ResultTooLarge():
            return 413
        case InvalidCursor():
            return 400
        case OutOfBounds():
            return 403
        case UnknownSchedule():
            return 404
        case InvalidInput() | IdempotencyConflict():
            return invalid
        case Conflict():
            return 409
        case _:
            return 500


def _store_error(error: StoreError) -> Response:
    # The message may quote addresses, paths and SQL: it is for the log only.
    temporary = isinstance(error, StoreUnavailable)
    if not temporary:  # a temporary error was logged where it occurred
        logger.error("The store is in trouble: %s", error)
    wait = b"1" if temporary else b"30"
    return error_response(503, error.code, type(error)().message, headers=((b"retry-after", wait),))
