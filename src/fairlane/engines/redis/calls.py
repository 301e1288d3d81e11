"""Requests of this engine's operations to its driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fairlane.engines.redis.scripts import Script


class Joined:
    """Two values as one argument of a large call: they are joined when it is sent, so that large
    payloads are not in memory once more."""

    __slots__ = ("_head", "_rest")

    def __init__(self, head: bytes, rest: bytes) -> None:
        self._head = head
        self._rest = rest

    def __len__(self) -> int:
        return len(self._head) + len(self._rest)

    def __bytes__(self) -> bytes:
        return self._head + self._rest


Argument = bytes | str | int | float | Joined


LARGE_BYTES: Final = 512 * 1024
"""Payloads and results that are larger together are sent in pieces."""


class Run(NamedTuple):
    """Run a script on one store."""

    script: Script
    prefix: str
    arguments: Sequence[Argument]
    large: bool = False
    """Send it in pieces: as a whole, it would be in memory several times more. Only such a call
    may have arguments that are `Joined`."""


class Command(NamedTuple):
    """Run a plain command."""

    words: Sequence[Argument]
