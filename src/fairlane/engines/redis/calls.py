"""Requests of this engine's operations to its driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlane.engines.redis.scripts import Script

Argument = bytes | str | int | float


class Run(NamedTuple):
    """Run a script on one store."""

    script: Script
    prefix: str
    arguments: Sequence[Argument]


class Command(NamedTuple):
    """Run a plain command."""

    words: Sequence[Argument]
