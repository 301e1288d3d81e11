"""How many ticks had which outcome, how late they were fired, and the last ones that were not.

All of it is one document, written in the step that handles the ticks. So the counts are exact,
however many processes fire schedules and wherever one of them dies.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from fairlane.core.priority import MICROSECONDS
from fairlane.core.schedules import Outcome, ScheduleRun

LAG_BOUNDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""The upper bounds of the buckets, in seconds. There is one more for what is later."""
RECENT: Final = 100


class Skip(msgspec.Struct, frozen=True, array_like=True):
    """Ticks that were not fired. `number` counts them all; `at` is when they were handled."""

    number: int
    at: int
    schedule_id: str
    run: ScheduleRun


class TickCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of the ticks of all schedules there have ever been."""

    outcomes: dict[Outcome, int] = {}
    lags: tuple[int, ...] = (0,) * (len(LAG_BOUNDS) + 1)
    """How many ticks were fired how late: one number for each bucket."""
    lag_sum: float = 0.0
    skips: int = 0
    recent: tuple[Skip, ...] = ()
    """The last ticks that were not fired, the oldest first."""

    def counted(
        self, now: int, handled: Sequence[tuple[str, ScheduleRun]], late: Iterable[int]
    ) -> TickCounts:
        """Return the counts with these ticks of schedules. `late`: by how many microseconds those
        were late that were fired."""
        outcomes, lags = dict(self.outcomes), list(self.lags)
        skips = self.skips
        recent = list(self.recent)
        for schedule_id, run in handled:
            outcomes[run.outcome] = outcomes.get(run.outcome, 0) + run.count
            if run.outcome not in {Outcome.FIRED, Outcome.MANUAL}:
                skips += 1
                recent.append(Skip(skips, now, schedule_id, run))
        lag_sum = self.lag_sum
        for each in late:
            seconds = max(0.0, each / MICROSECONDS)
            lag_sum += seconds
            lags[bisect_left(LAG_BOUNDS, seconds)] += 1
        return TickCounts(outcomes, tuple(lags), lag_sum, skips, tuple(recent[-RECENT:]))


_decoder: Final = msgspec.json.Decoder(TickCounts)


def decode(value: bytes) -> TickCounts:
    """Return the counts out of their document."""
    return _decoder.decode(value)


def encode(counts: TickCounts) -> bytes:
    """Return the counts as their document has them."""
    return msgspec.json.encode(counts)
