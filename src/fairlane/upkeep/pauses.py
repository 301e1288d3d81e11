"""How long to wait between tries: longer and longer, never at the same time as everyone else."""

from __future__ import annotations

import random


class Pauses:
    """Full jitter from 0.1 up to 10 seconds."""

    __slots__ = ("_ceiling",)

    def __init__(self) -> None:
        self._ceiling = 0.1

    def next(self) -> float:
        pause = random.uniform(self._ceiling / 10, self._ceiling)
        self._ceiling = min(2 * self._ceiling, 10.0)
        return pause


def jittered(seconds: float, share: float = 0.1) -> float:
    """About so long: those who poll must not fall into step."""
    return seconds * random.uniform(1 - share, 1 + share)
