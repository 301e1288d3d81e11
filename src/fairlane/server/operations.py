"""Entries of the route table: an operation is a method on a path, with its handler, its scopes, its
body, its query and its response. Routes, OpenAPI and tests are made from this table."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from fairlane.core.audit import Action
from fairlane.core.tokens import Scope
from fairlane.server.auth import Identity
from fairlane.server.errors import INVALID
from fairlane.server.responses import Response
from fairlane.server.services import Services

Body = TypeVar("Body")
Query = TypeVar("Query")

MEBIBYTE: Final = 1024 * 1024
BODY_BYTES: Final = 2 * MEBIBYTE
BATCH_BYTES: Final = 16 * MEBIBYTE

SUBMIT: Final = frozenset({Scope.SUBMIT})
READ: Final = frozenset({Scope.READ})
OWN: Final = frozenset({Scope.SUBMIT, Scope.READ})
"""For a task whose id is known: a token that may submit may also read results."""
ADMIN: Final = frozenset({Scope.ADMIN})
WORKER: Final = frozenset({Scope.WORKER})
OPEN: Final[frozenset[Scope]] = frozenset()
"""No token needed."""


class Call(msgspec.Struct, Generic[Body, Query], frozen=True):
    """A request, decoded and authenticated."""

    body: Body
    query: Query
    path: Mapping[str, str]
    identity: Identity
    headers: Mapping[bytes, bytes]
    """Names in lower case; of a header that was sent twice, the last one."""
    address: str
    """The address of the client."""
    secure: bool
    """Whether it came over TLS."""
    root: str
    """The path at which the server is mounted into another application; empty if it is not."""
    left: Callable[[], Awaitable[None]]
    """Returns when the client has left: for operations that wait."""


Handler = Callable[[Services, Call[Any, Any]], Awaitable[Response]]


class Operation(msgspec.Struct, frozen=True):
    """A method on a path.

    `scopes`: the token needs one of them; an empty set means public. `bound`: the same for a bound
    token, which sees only tasks within its bounds here; None means that it is refused. `body`,
    `query` and `returns` are the types of body, query and response. `invalid` is the status of
    invalid requests.
    """

    method: str
    path: str
    handler: Handler
    scopes: frozenset[Scope]
    bound: frozenset[Scope] | None = None
    body: Any = None
    query: Any = None
    returns: Any = None
    status: int = 200
    further: tuple[int, ...] = ()
    """Other status codes of success."""
    invalid: int = INVALID
    most: int = BODY_BYTES
    """The maximum size of the body, in bytes."""
    action: Action | None = None
    """The action in the audit log, if the operation is recorded there."""
    optional_body: bool = False
    """A missing body counts as an empty object."""
    besides: frozenset[Scope] = OPEN
    """Scopes that the token needs, too: all of them."""

    @property
    def description(self) -> str:
        """What it does: the docstring of the handler."""
        return inspect.getdoc(self.handler) or ""

    @property
    def summary(self) -> str:
        """The first sentence of the description."""
        return self.description.replace("\n", " ").partition(". ")[0].rstrip(".")
