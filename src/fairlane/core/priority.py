"""Priorities, and how waiting raises them.

A priority is a level from 0 to 10; four of them have names. Aging is a pure function of a level
and of the time a task has been ready, applied when tasks are claimed. Nothing is ever promoted in
storage, so a million tasks that come of age are promoted at that very instant, at no cost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidPriority
from fairlane.core.text import shown

LOWEST: Final = 0
HIGHEST: Final = 10
NAMES: Final[Mapping[str, int]] = {"critical": 10, "high": 8, "medium": 5, "low": 2}
ALIASES: Final[Mapping[str, int]] = {"normal": 5}
DEFAULT: Final = NAMES["medium"]

_NAME_OF = {level: name for name, level in NAMES.items()}
MICROSECONDS: Final = 1_000_000
ALWAYS_YOUNG: Final = 1 << 62
"""An age that nothing reaches."""


class Band(StrEnum):
    """A range of levels that share defaults and aging."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


def level_of(priority: object) -> int:
    """Return the level that a caller means by a name or a number."""
    if isinstance(priority, str):
        level = NAMES.get(priority, ALIASES.get(priority))
        if level is not None:
            return level
    elif isinstance(priority, int) and not isinstance(priority, bool):
        if LOWEST <= priority <= HIGHEST:
            return int(priority)
    raise InvalidPriority(f"{InvalidPriority.__doc__} Got {shown(priority)}.")


def priority_of(text: str) -> str | int:
    """Return what a caller means who can only write text: a name, or a number. See `level_of`."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else text


def shown_as(level: int) -> str | int:
    """Return a level as users read it: its name where it has one."""
    return _NAME_OF.get(level, level)


def band_of(level: int) -> Band:
    """Return the band a level belongs to."""
    if level >= NAMES["critical"]:
        return Band.CRITICAL
    if level >= NAMES["high"]:
        return Band.HIGH
    return Band.MEDIUM if level >= NAMES["medium"] else Band.LOW


class Segment(msgspec.Struct, frozen=True):
    """The part of one level's tasks whose age gives them one effective level.

    It holds tasks that have been ready for at least `from_age` and less than `to_age`
    microseconds (None: however long).
    """

    effective: int
    level: int
    from_age: int
    to_age: int | None


class Aging(msgspec.Struct, frozen=True):
    """After how many seconds of readiness a band counts as the next one (None: never).

    Each step has its own time, which begins when the step before it is done. So a shorter later
    step is no contradiction, and a task never falls behind a younger one of its level.
    """

    low_to_medium: float | None = 600.0
    medium_to_high: float | None = 1200.0
    high_to_critical: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            threshold = getattr(self, name)
            if threshold is not None and not _is_threshold(threshold):
                raise InvalidPriority(
                    f"The aging threshold {name} is a number of seconds from 0 to "
                    f"{limits.DELAY_SECONDS:,.0f}, or None (null in JSON) for never. "
                    f"Got {shown(threshold)}."
                )

    def effective(self, level: int, age: int) -> int:
        """Return the level that a task counts as after being ready for `age` microseconds."""
        return next(
            segment.effective
            for segment in self.segments(level)
            if segment.to_age is None or age < segment.to_age
        )

    def raised_to(self, level: int, age: int) -> str:
        """Return the effective level as a label, empty where age has not raised it."""
        effective = self.effective(level, age)
        return "" if effective == level else str(effective)

    @property
    def youth(self) -> int:
        """The age in microseconds before which no task has been raised."""
        return _youth(self)

    def segments(self, level: int) -> tuple[Segment, ...]:
        """Return how age divides the tasks of one level, youngest first."""
        return _segments(self, level)

    def walk(self) -> tuple[tuple[int, tuple[Segment, ...]], ...]:
        """Effective levels from the highest down, each with the segments that count as it."""
        return _walk(self)


def _is_threshold(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= limits.DELAY_SECONDS  # type: ignore[operator]


@lru_cache
def _segments(aging: Aging, level: int) -> tuple[Segment, ...]:
    steps = {
        Band.LOW: (aging.low_to_medium, aging.medium_to_high, aging.high_to_critical),
        Band.MEDIUM: (aging.medium_to_high, aging.high_to_critical),
        Band.HIGH: (aging.high_to_critical,),
        Band.CRITICAL: (),
    }[band_of(level)]
    targets = (NAMES["medium"], NAMES["high"], NAMES["critical"])[3 - len(steps) :]
    found: list[Segment] = []
    effective, age = level, 0
    for step, target in zip(steps, targets, strict=True):
        if step is None:
            break
        come_of_age = age + round(step * MICROSECONDS)
        found.append(Segment(effective, level, age, come_of_age))
        effective, age = target, come_of_age
    found.append(Segment(effective, level, age, None))
    return tuple(found)


@lru_cache
def _youth(aging: Aging) -> int:
    ages = [
        segment.to_age
        for level in range(LOWEST, HIGHEST + 1)
        for segment in _segments(aging, level)
        if segment.to_age is not None
    ]
    return min(ages, default=ALWAYS_YOUNG)


@lru_cache
def _walk(aging: Aging) -> tuple[tuple[int, tuple[Segment, ...]], ...]:
    everything = sorted(
        (segment for level in range(LOWEST, HIGHEST + 1) for segment in _segments(aging, level)),
        key=lambda segment: (-segment.effective, -segment.level),
    )
    return tuple(
        (effective, tuple(group))
        for effective, group in groupby(everything, key=lambda segment: segment.effective)
    )
