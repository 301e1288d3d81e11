"""What the operations of this engine ask of its driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairlane.core.flow import Flow


class Query(NamedTuple):
    """One statement; the reply is a list of its rows."""

    sql: str
    parameters: Sequence[Any] = ()


class Chore(Query):
    """A statement for the store's own upkeep, which may be left out where it is not convenient."""

    __slots__ = ()


class Script(NamedTuple):
    """Several statements without parameters; no reply."""

    sql: str


class Wake(NamedTuple):
    """A call that hints, once the operation is done, that there is work."""

    everyone: bool = True
    """Other processes as well, not only this one."""


class Sweep:
    """A call that has the room of claimed tasks cleared, in the background."""


SWEEP = Sweep()


class Apart(NamedTuple):
    """A call that performs a flow outside of a caller's transaction; the reply is its result.

    What it writes is there for everyone at once, and what it reads will not be rolled back.
    """

    flow: Callable[[], Flow[Any]]


WAKE = Wake()
WAKE_US = Wake(everyone=False)

# Most operations are one statement, which is a transaction by itself. These are for the others that
# find out on their way that they need one; the driver rolls back what is left open.
BEGIN = Query("BEGIN")
COMMIT = Query("COMMIT")
ROLLBACK = Query("ROLLBACK")

# Advisory locks. Those with a number are keys of their own; types are locked by their hash under
# CLASS.
CLASS = 0x46_61_69_72  # "Fair"
WAITERS = CLASS << 32 | 1
MIGRATION = CLASS << 32 | 2
FOLDING = CLASS << 32 | 3
TRIMMING = CLASS << 32 | 4
