"""Durations: a number of seconds, or a timedelta, wherever somebody says how long."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")

Seconds = float | timedelta
"""How long something takes."""


def in_seconds(value: T | timedelta) -> T | float:
    """Return a timedelta in seconds, and anything else as it is: the caller checks it."""
    return value.total_seconds() if isinstance(value, timedelta) else value
