"""Events that repeat: the first few of each kind pass, the others are counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

Kind = TypeVar("Kind", bound=Hashable)

MOST: Final = 5
SECONDS: Final = 10.0
KINDS: Final = 100


class Repeats(Generic[Kind]):
    """Lets `most` events of each kind pass within `seconds`, and counts those that follow.

    A period begins with the first event of its kind. At most `kinds` kinds are counted separately,
    so that the number of lines in a log is bounded: the events of further kinds are counted
    together, as the kind None.
    """

    def __init__(
        self,
        most: int = MOST,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
        kinds: int = KINDS,
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._kinds = kinds
        self._periods: dict[Kind | None, _Period] = {}

    def passes(self, kind: Kind) -> bool:
        """Count an event, and return whether it is among the first of its kind."""
        period = self._periods.get(kind)
        if period is None:
            named = kind if len(self._periods) < self._kinds else None
            period = self._periods.setdefault(named, _Period(self._clock()))
            if named is None:
                period.count += 1
                return False
        period.count += 1
        return period.count <= self._most

    def take_ended(self, *, all: bool = False) -> Iterator[tuple[Kind | None, int, float]]:
        """Forget the periods that are over, or all of them. Yield the kind, the number of events
        that did not pass, and the seconds of each period in which there were any."""
        if not self._periods:
            return
        now = self._clock()
        for kind, period in list(self._periods.items()):
            seconds = now - period.since
            if all or seconds >= self._seconds:
                del self._periods[kind]
                passed = 0 if kind is None else self._most
                if period.count > passed:
                    yield kind, period.count - passed, seconds


class _Period:
    __slots__ = ("count", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.count = 0
