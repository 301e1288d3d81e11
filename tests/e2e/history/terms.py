"""What an invariant is told besides history and dump, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

SLACK = 0.005
"""Seconds by which clocks that are read at different moments may differ."""


class Violation(NamedTuple):
    """Something that must not be."""

    invariant: str
    task: str | None
    says: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.task or '-'}: {self.says}"


class Terms(msgspec.Struct, frozen=True):
    """What holds for a run. What is None, or not named, is not checked."""

    lease: float = 30.0
    reap: float = 5.0
    recovery: float = 10.0
    overtakes: int | None = None
    """How many younger tasks may be claimed before a task: workers x batch."""
    longest_wait: float | None = None
    """How long a task of the lowest priority may wait while others keep coming."""
    concurrency: Mapping[str, int] = {}
    """By type, from the first task on."""
    rates: Mapping[str, float] = {}
    transactional: frozenset[str] = frozenset()
    """Types whose handlers complete in a transaction that also leaves an effect."""
