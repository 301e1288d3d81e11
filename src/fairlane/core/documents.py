"""Documents: what a store keeps besides tasks, of which there is little and which changes seldom.

Tokens, schedules, settings, definitions, roles, samples and entries of the audit log are documents
of a kind each. An engine stores them without knowing what is in them; what they mean is said once
for all engines, in `tokens`, `schedules`, `store_settings`, `definitions`, `roles`, `facts` and
`audit`, by operations composed from these flows.

Nothing is locked between two calls. An operation reads, decides, and writes on condition that no
other process has changed what it read. Otherwise it starts again (see `rewrites`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from fairlane.core import limits
from fairlane.core.errors import StoreBusy
from fairlane.core.flow import Flow, Operation, writes

P = ParamSpec("P")
T = TypeVar("T")
Self = TypeVar("Self")

Place = tuple[int, str]
"""Where a document stands among those of its kind: its `at`, then its id."""


class Document(msgspec.Struct, frozen=True):
    """A document as it is stored, or is to be stored.

    Those of a kind are ordered by `at` (microseconds). `alias` is a second name, which no other
    document of its kind may have. `version` counts how often it was written: 0 for a new one.
    """

    id: str
    value: bytes
    at: int
    expires_at: int | None = None
    alias: str | None = None
    version: int = 0

    def counts(self, now: int) -> bool:
        """Return whether it has not expired."""
        return self.expires_at is None or self.expires_at > now


class Written(StrEnum):
    """What became of a write. All of it took effect, or nothing did."""

    DONE = "done"
    OVERTAKEN = "overtaken"
    """A version is not the one that was read."""
    TAKEN = "taken"
    """Another document has the alias."""
    FULL = "full"


class Order(StrEnum):
    """In which order documents are listed: by `at`, then by id."""

    OLDEST = "oldest"
    NEWEST = "newest"


class Documents(Protocol):
    """What an engine implements. Those that read answer the engine's time as well."""

    def read_documents(
        self, kind: str, ids: Sequence[str]
    ) -> Flow[tuple[int, list[Document | None]]]:
        """Read the documents with these ids, in that order."""

    def find_document(self, kind: str, alias: str) -> Flow[tuple[int, Document] | None]:
        """Read the document with this alias, if there is one: a single look-up in an index."""

    def list_documents(
        self, kind: str, order: Order, limit: int, after: Place | None = None, skip: int = 0
    ) -> Flow[tuple[int, list[Document]]]:
        """Read the documents that come after a place, without the first `skip` of them."""

    def write_documents(
        self,
        kind: str,
        puts: Sequence[Document],
        drops: Sequence[Document] = (),
        most: int | None = None,
    ) -> Flow[Written]:
        """Store and delete documents, if all of them have the version that is stored.

        `most`: how many of this kind there may be; a write that adds none may exceed it.
        """

    def expire_documents(self, kind: str, limit: int) -> Flow[int]:
        """Delete documents that have expired; answers how many."""


def every(self: Documents, kind: str) -> Flow[tuple[int, list[Document]]]:
    """Read all documents of a kind, the oldest first."""
    found: list[Document] = []
    while True:
        after = (found[-1].at, found[-1].id) if found else None
        now, page = yield from self.list_documents(kind, Order.OLDEST, limits.PAGE, after)
        found += page
        if len(page) < limits.PAGE:
            return now, found


class Overtaken(Exception):
    """Another process has changed a document since it was read."""


def write(
    self: Documents,
    kind: str,
    puts: Sequence[Document],
    drops: Sequence[Document] = (),
    most: int | None = None,
) -> Flow[Written]:
    """Call `write_documents`; start the operation again if another process was faster."""
    written = yield from self.write_documents(kind, puts, drops, most)
    if written is Written.OVERTAKEN:
        raise Overtaken
    return written


_FORGOTTEN_AT_ONCE = 100


def write_or_forget(self: Documents, kind: str, puts: Sequence[Document], most: int) -> Flow[None]:
    """Call `write`. If there are too many of this kind, forget those that are oldest by `at`."""
    while (yield from write(self, kind, puts, most=most)) is Written.FULL:
        wanted = {each.id for each in puts}
        _, oldest = yield from self.list_documents(
            kind, Order.OLDEST, _FORGOTTEN_AT_ONCE + len(puts)
        )
        others = [each for each in oldest if each.id not in wanted]
        yield from write(self, kind, [], others[:_FORGOTTEN_AT_ONCE])


_ATTEMPTS = 100


def rewrites(method: Callable[Concatenate[Self, P], Flow[T]]) -> Operation[Self, P, T]:
    """Mark an operation that reads documents, and writes them unless they changed meanwhile."""

    @writes
    @wraps(method)
    def attempt(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        for _ in range(_ATTEMPTS):
            try:
                return (yield from method(self, *args, **kwargs))
            except Overtaken:
                continue
        raise StoreBusy("Other processes keep changing the same documents: try again later.")

    return attempt
