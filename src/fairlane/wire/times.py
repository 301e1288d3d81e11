"""Times as JSON has them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec

Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""ISO 8601, UTC, with microseconds: always 27 characters."""

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time that is asked for: ISO 8601 with its zone."""


def iso(time: datetime) -> Moment:
    """A time for programs."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def iso_or_none(time: datetime | None) -> Moment | None:
    """The same where there may be none."""
    return None if time is None else iso(time)
