"""What operations ask of a connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Execute(NamedTuple):
    """One statement; the reply is a cursor over its rows."""

    sql: str
    parameters: Sequence[Any] = ()


class ExecuteMany(NamedTuple):
    """One statement for many rows; the reply is a cursor whose rowcount is the sum."""

    sql: str
    rows: Iterable[Sequence[Any]]


class Wake:
    """A call that hints, once the transaction is durable, that there is work."""


WAKE = Wake()

Call = Execute | ExecuteMany | Wake
