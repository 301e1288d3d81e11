"""Times as JSON has them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

import msgspec

from fairlane.core.model import moment

Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""ISO 8601, UTC, with microseconds: always 27 characters."""

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time that is asked for: ISO 8601 with its zone."""


def iso(time: datetime) -> Moment:
    """A time for programs."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@lru_cache
def iso_of(microseconds: int) -> Moment:
    """An engine's time for programs. Remembered: what is stored together has the same one."""
    return iso(moment(microseconds))


def iso_or_none(time: datetime | None) -> Moment | None:
    """The same where there may be none."""
    return None if time is None else iso(time)
