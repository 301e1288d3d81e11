"""The errors that users see, by the SQLSTATE that PostgreSQL reports."""

from __future__ import annotations

from fairlane.core.errors import (
    AccessDenied,
    EncryptionRequired,
    FairlaneError,
    InvalidConnection,
    InvalidTaskId,
    SchemaMissing,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)


class Duplicate(StoreError):
    """A task with this id is stored already."""


class Fenced(StoreError):
    """A deleted task had the id of one that is submitted: see core/fences.py."""


class LaneClosed(StoreError):
    """A lane that a submission uses is closed or was dropped: see sql/lanes.sql."""


def error_of(state: str, message: str, store: str) -> FairlaneError:
    """Return the error for an SQLSTATE and a message. `store` is its name without secrets."""
    said = message.split("\n", maxsplit=1)[0].rstrip(".")
    match state:
        case "25006":
            return StoreReadOnly(
                f"The {store} does not accept writes: it is a standby, or "
                "default_transaction_read_only is on. Connect to the primary."
            )
        case "53100":
            return StoreFull(f"The disk of the {store} is full: free some space.")
        case "40001" | "40P01" | "55P03" | "55006":
            return StoreBusy(f"The {store} is busy with the same rows: {said}. Try again.")
        case "57014":
            return StoreBusy(f"The {store} took too long: {said}. Try again.")
        case "42501":
            return AccessDenied(
                f"The {store} refused access: {said}. "
                "Grant this role the rights on schema fairlane."
            )
        case "3D000":
            return StoreUnusable(f"The {store} does not exist: create the database first.")
        case "3F000" | "42P01" | "42883":
            return SchemaMissing()
        case "23505":
            return Duplicate()
        case "22012":  # the only division by zero there can be: see submit.sql
            return Fenced()
        case "2201F":  # the only root of a negative number: see submit.sql
            return EncryptionRequired()
        case "2201E":  # the only logarithm there is: see submit.sql
            return LaneClosed()
        case "22P02":
            return InvalidTaskId()
        case "25P01" | "25P02":
            return InvalidConnection(
                "The transaction of this connection has failed or ended. Roll it back and begin a "
                "new one."
            )
        case "26000" | "42P05":
            return StoreUnusable(
                f"The {store} does not know a prepared statement: a pooler in transaction mode "
                "seems to be in between. Add the option pgbouncer=true to the URL."
            )
    match state[:2]:
        case "28":
            return AccessDenied(f"The {store} refused access: {said}. Check user and password.")
        case "08" | "53" | "57" | "58" | "25":
            return StoreUnavailable(f"The {store} is not available at the moment: {said}.")
    return StoreError(f"The {store} refused an operation: {said} ({state}).")


def is_fatal(error: Exception) -> bool:
    """Return whether all open connections must be given up after this error."""
    return isinstance(error, StoreUnavailable) and not isinstance(error, StoreBusy)


def unreachable(error: BaseException, store: str) -> StoreUnavailable:
    """Return the error for a connection that cannot be made, or was lost."""
    said = str(error).split("\n", maxsplit=1)[0].rstrip(".") or error.__class__.__name__
    return StoreUnavailable(f"The {store} cannot be reached: {said}.")
