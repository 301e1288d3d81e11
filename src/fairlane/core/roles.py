"""Roles: what only one process does at a time, for a term."""

from __future__ import annotations

from fairlane.core.documents import Document, Documents, rewrites, write
from fairlane.core.flow import Flow
from fairlane.core.priority import MICROSECONDS

_KIND = "role"


@rewrites
def elect(self: Documents, role: str, candidate: str, seconds: float) -> Flow[bool]:
    return (yield from take_role(self, role, candidate, seconds))


def was_taken(self: Documents, role: str) -> Flow[bool]:
    """Return whether any process has ever held a role of this store."""
    _, (held,) = yield from self.read_documents(_KIND, [role])
    return held is not None


def take_role(self: Documents, role: str, candidate: str, seconds: float) -> Flow[bool]:
    """`elect`, inside an operation that begins again when it is overtaken."""
    term = int(seconds * MICROSECONDS)
    now, (held,) = yield from self.read_documents(_KIND, [role])
    # Its document is dated by the end of the term. A term that ends more than two terms from now
    # was taken while the clock was ahead: it is over.
    if held is not None and held.value != candidate.encode() and 0 < held.at - now <= 2 * term:
        return False
    version = 0 if held is None else held.version
    taken = Document(role, candidate.encode(), now + term, version=version)
    yield from write(self, _KIND, [taken])
    return True
