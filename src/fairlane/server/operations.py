"""The vocabulary of the route table: an operation is a method on a path, and all that is known of
it: who may call it, what it takes, what it answers. Routes, OpenAPI and the tests of scopes are
made from the same table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from fairlane.core.audit import Action
from fairlane.core.tokens import Scope
from fairlane.server.answers import Answer
from fairlane.server.errors import INVALID
from fairlane.server.identity import Identity
from fairlane.server.services import Services

Body = TypeVar("Body")
Query = TypeVar("Query")

MEBIBYTE: Final = 1024 * 1024
BODY_BYTES: Final = 2 * MEBIBYTE
BATCH_BYTES: Final = 16 * MEBIBYTE

SUBMIT: Final = frozenset({Scope.SUBMIT})
READ: Final = frozenset({Scope.READ})
OWN: Final = frozenset({Scope.SUBMIT, Scope.READ})
"""Of a task whose id one knows: whoever may submit may also see what became of it."""
ADMIN: Final = frozenset({Scope.ADMIN})
WORKER: Final = frozenset({Scope.WORKER})
OPEN: Final[frozenset[Scope]] = frozenset()
"""No token needed."""


class Call(msgspec.Struct, Generic[Body, Query], frozen=True):
    """One request, read and checked, as an operation sees it."""

    body: Body
    query: Query
    path: Mapping[str, str]
    identity: Identity
    headers: Mapping[bytes, bytes]
    """Names in lower case; of a header that was sent twice, the last one."""
    address: str
    """Where the request came from."""
    secure: bool
    """It came over TLS."""
    left: Callable[[], Awaitable[None]]
    """Ends when the client has gone: for those who wait before they answer."""


Handler = Callable[[Services, Call[Any, Any]], Awaitable[Answer]]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A method on a path.

    `scopes`: any one of them is enough; none: everybody. `body` and `query` are structs that the
    request must fit. `returns` is what the answer's body looks like, for readers of the
    documentation. `invalid` is the status of what does not fit.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    scopes: frozenset[Scope]
    body: Any = None
    query: Any = None
    returns: Any = None
    status: int = 200
    further: tuple[int, ...] = ()
    """Other statuses of success."""
    invalid: int = INVALID
    most: int = BODY_BYTES
    """Bytes of body."""
    action: Action | None = None
    """What the audit log calls it, if it belongs there."""
    optional_body: bool = False
    """No body at all counts as an empty object."""
