"""The calls that operations of this engine yield to its driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairlane.core.flow import Flow


class Query(NamedTuple):
    """One statement; the reply is a list of its rows."""

    sql: str
    parameters: Sequence[Any] = ()


class Chore(Query):
    """A statement for maintenance, left out inside a caller's transaction."""

    __slots__ = ()


class Script(NamedTuple):
    """Several statements without parameters; no reply."""

    sql: str


class Wake(NamedTuple):
    """Wake waiting workers once the operation is done."""

    everyone: bool = True
    """In other processes as well, not only in this one."""


class Sweep:
    """Vacuum the tables that claims read, in the background."""


SWEEP = Sweep()


class AskNested:
    """Ask whether the operation is part of a caller's transaction; the reply is a bool."""


ASK_NESTED = AskNested()


class Apart(NamedTuple):
    """Perform a flow outside a caller's transaction; the reply is its result.

    Others see at once what it writes, and what it reads cannot be rolled back.
    """

    flow: Callable[[], Flow[Any]]


WAKE = Wake()
WAKE_US = Wake(everyone=False)

# Most operations are one statement, which is a transaction by itself. Others begin a transaction
# when they need one; the driver rolls back what is left open.
BEGIN = Query("BEGIN")
COMMIT = Query("COMMIT")
ROLLBACK = Query("ROLLBACK")

# Advisory locks. A limited type is locked by its hash, as the second key after CLASS.
CLASS = 0x46_61_69_72  # "Fair"
WAITERS = CLASS << 32 | 1
MIGRATION = CLASS << 32 | 2
FOLDING = CLASS << 32 | 3
TRIMMING = CLASS << 32 | 4
