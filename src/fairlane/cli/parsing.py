"""Parse times, durations, tags and JSON from the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from fairlane.cli.errors import UsageError
from fairlane.core import limits
from fairlane.core.breaker import Breaker
from fairlane.core.errors import InvalidInput
from fairlane.core.store_settings import DEFAULT
from fairlane.core.text import shown

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|min|h|d)?\Z")
_UNITS = {"ms": 0.001, None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def duration(text: str) -> float:
    """Parse a duration: seconds, or a number with a unit (90, 10m, 1.5h, 2d)."""
    seconds = seconds_of(text)
    if seconds is None:
        raise click.BadParameter(f"{shown(text)} is not a duration like 90, 10m, 1.5h or 2d.")
    return seconds


def breaker_of(text: str) -> Breaker:
    """Parse a circuit breaker: failures, within, cool-down."""
    failures, *times = (part.strip() for part in text.split(","))
    seconds = [seconds_of(part) for part in times]
    if len(seconds) != 2 or None in seconds or not failures.isdecimal():
        raise UsageError(
            "A circuit breaker is given as failures,within,cool-down, for example 5,60,30. "
            f"Got {shown(text)}."
        )
    return Breaker(int(failures[:9]), seconds[0] or 0.0, seconds[1] or 0.0)


def instant(text: str) -> datetime:
    """Parse a time with its zone: 2026-01-31T12:00Z."""
    time = time_of(text)
    if time is None:
        raise click.BadParameter(
            f"{shown(text)} is not a time like 2026-01-31T12:00Z, with Z or an offset."
        )
    return time


def past(text: str) -> datetime:
    """Parse a time with its zone, or a duration before now: 15m, 2h, 3d."""
    ago = seconds_of(text)
    if ago is not None and ago <= limits.DELAY_SECONDS:
        return datetime.now(UTC) - timedelta(seconds=ago)
    time = time_of(text)
    if time is None:
        raise click.BadParameter(
            f"{shown(text)} is neither a time like 2026-01-31T12:00Z, with Z or an offset, "
            "nor a time ago like 15m, 2h or 3d."
        )
    return time


def seconds_of(text: str) -> float | None:
    """Return the seconds of a duration, or None if the text is not one."""
    found = _DURATION.match(text.strip())
    return None if found is None else float(found[1]) * _UNITS[found[2]]


def time_of(text: str) -> datetime | None:
    """Return a time with a zone, or None if the text is not one."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return None if time.utcoffset() is None else time


def setting_of(value: object) -> float | None:
    """Return the seconds of a setting of the store: a number, a duration, or `never` (None)."""
    if value == "never":
        return None
    seconds = seconds_of(value) if isinstance(value, str) else value
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        return float(seconds)
    raise UsageError(
        f"A setting is a duration like 90, 10m, 1.5h or 2d, or never. Got {shown(value)}."
    )


def setting_text(seconds: float | None) -> str:
    """Return a setting as it can be written: 90s, 10m, 2d or never."""
    if seconds is None:
        return "never"
    for unit in ("d", "h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:.0f}{unit}"
    return f"{seconds:.15g}s"


def settings_of(given: Iterable[tuple[str, object]]) -> dict[str, float | None]:
    """Return changes to settings of the store. Raises UsageError if the store would refuse them."""
    changes = {name.strip().replace("-", "_"): setting_of(value) for name, value in given}
    try:
        DEFAULT.with_changes(changes)
    except InvalidInput as error:
        raise UsageError(error.message) from None
    return changes


def pairs_of(texts: Iterable[str]) -> list[tuple[str, object]]:
    """Return the pairs of texts like completed=30d."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals:
            raise UsageError(f"A setting is given as name=time, completed=30d. Got {shown(name)}.")
    return [(name, value.strip()) for name, _, value in pairs]


def tags_of(pairs: Iterable[str]) -> dict[str, str]:
    """Return tags from texts like name=value."""
    tags: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"A tag is given as name=value. Got {shown(pair)}.")
        tags[name] = value
    return tags


def read_bytes(path: str) -> bytes:
    """Return the content of a file, or of standard input for a dash."""
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from None


def payload_of(text: str | None) -> bytes:
    """Return a payload that is given as JSON, as @file, or as a dash for standard input."""
    if text is None:
        return b"{}"
    if text == "-":
        return read_bytes(text)
    if text.startswith("@"):
        return read_bytes(text[1:])
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # bytes on the command line that are not UTF-8
        raise UsageError("The payload is not valid UTF-8.") from None
