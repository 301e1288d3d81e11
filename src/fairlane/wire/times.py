"""Times in JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

import msgspec

from fairlane.core.model import microseconds_of, moment

Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""ISO 8601, UTC, with microseconds: always 27 characters."""

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time in a request: ISO 8601 with a time zone."""


def iso(time: datetime) -> Moment:
    """Return a time as JSON shows it."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@lru_cache
def iso_of(microseconds: int) -> Moment:
    """Return an engine's time as JSON shows it. Cached: tasks of a batch share their times."""
    return iso(moment(microseconds))


def iso_of_or_none(microseconds: int | None) -> Moment | None:
    """`iso_of` a time that may be None."""
    return None if microseconds is None else iso_of(microseconds)


def iso_or_none(time: datetime | None) -> Moment | None:
    """`iso` of a time that may be None."""
    return None if time is None else iso(time)


def time_of(text: Moment) -> datetime:
    """Return the time that JSON shows."""
    return datetime.fromisoformat(text)


def microseconds_or_none(text: Moment | None) -> int | None:
    """Return the time that JSON shows as engines have it; None stays None."""
    return None if text is None else microseconds_of(time_of(text))


def time_or_none(text: Moment | None) -> datetime | None:
    """`time_of` a text that may be None."""
    return None if text is None else datetime.fromisoformat(text)
