"""docs/reference/http.md: the routes, from the server's route table."""

from __future__ import annotations

from typing import Annotated, Any, get_origin

from fairlane.server.openapi import tag_of
from fairlane.server.operations import Operation
from fairlane.server.routes import OPERATIONS
from tools.reference.markdown import code, page, table


def render() -> str:
    """Return the page."""
    tags: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        tags.setdefault(tag_of(operation), []).append(operation)
    parts = []
    for tag, operations in sorted(tags.items()):
        parts += [
            f"## {tag}",
            table(
                ("call", "scopes", "bound", "body", "query", "response", "what"),
                map(_row, operations),
            ),
        ]
    return page(
        "HTTP",
        "All routes of the server. A running server describes bodies, queries and responses in "
        "full: `/openapi.json` for programs, `/docs` for people. *Scopes*: the token needs "
        "one of them, and all after *and*; `admin` includes `submit` and `read`. *Bound*: the same "
        "for "
        "[bound tokens](../security.md#tenants), which are refused where there is none. "
        "Live events also come over the WebSocket `/ws` (scope `read`). How to use it "
        "is in [Use it over HTTP](../howto/http.md), and what can go wrong in [Errors](errors.md).",
        *parts,
    )


def _row(operation: Operation) -> tuple[str, ...]:
    statuses = ", ".join(map(str, (operation.status, *operation.further)))
    return (
        code(f"{operation.method} {operation.path}"),
        _scopes(operation),
        ", ".join(sorted(operation.bound or ())),
        code(_name(operation.body)),
        code(_name(operation.query)),
        f"{statuses} {code(_name(operation.returns))}".strip(),
        operation.summary,
    )


def _scopes(operation: Operation) -> str:
    either = ", ".join(sorted(operation.scopes)) or "(public)"
    return " and ".join([either, *sorted(operation.besides)])


def _name(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        kind = kind.__origin__
    return "" if kind is None else str(kind.__name__)
