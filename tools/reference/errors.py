"""docs/reference/errors.md: every error with its code, from `core/errors.py` and the server."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from fairlane import server
from fairlane.core import errors
from fairlane.core.errors import Conflict, FairlaneError, InvalidInput, StoreError
from fairlane.server.errors import HttpError, response_to
from tools.reference.markdown import code, page, sentence, table

_GROUPS: dict[type[FairlaneError], str] = {
    InvalidInput: "The call asks for something impossible. Nothing was changed.",
    Conflict: "The call is understood, but the present state does not allow it.",
    StoreError: "The store failed. A `StoreUnavailable` is temporary: the same call may succeed "
    "later. A `StoreUnusable` lasts until somebody does something.",
}


def render() -> str:
    """Return the page."""
    parts = []
    for group, about in _GROUPS.items():
        rows = [_row(each) for each in _below(group) if each.__module__ == errors.__name__]
        parts += [
            f"## {group.__name__}",
            about,
            table(("class", "code", "HTTP", "what it says"), rows),
        ]
    parts += [
        "## Errors of the server",
        "Requests that never reach a store. The codes of the errors above come over HTTP, too.",
        table(("code", "HTTP", "what it says"), _http_rows()),
    ]
    return page(
        "Errors",
        "Every error is a `FairlaneError` with a `code` that does not change. Over HTTP it is "
        '`{"error": {"code", "message", "details"}}`. The classes are in `fairlane.errors`; '
        "those that `fairlane` exports are in [the Python API](python.md). *What it says* is the "
        "default message. Under `/api/tasks` the status is 400 where this page has 422.",
        *parts,
    )


def _below(cls: type[FairlaneError]) -> Iterator[type[FairlaneError]]:
    yield cls
    for each in cls.__subclasses__():
        yield from _below(each)


def _row(cls: type[FairlaneError]) -> tuple[str, ...]:
    # Turning an error of a store into a response logs it.
    status = "503" if issubclass(cls, StoreError) else str(response_to(cls()).status)
    return (code(cls.__name__), code(cls.code), status, sentence(cls.__doc__))


def _http_rows() -> list[tuple[str, ...]]:
    for module in walk_packages(server.__path__, f"{server.__name__}."):
        import_module(module.name)  # some define errors of their own
    found: dict[tuple[int, str], type[FairlaneError]] = {}
    for each in _below(HttpError):
        if each is not HttpError and each.__module__.startswith(server.__name__):
            found.setdefault((response_to(each()).status, each.code), each)
    return [
        (code(name), str(status), sentence(each.__doc__))
        for (status, name), each in sorted(found.items())
    ]
