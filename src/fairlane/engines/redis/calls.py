"""What the operations of this engine ask of its driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlane.engines.redis.scripts import Script

Argument = bytes | str | int | float


class Run(NamedTuple):
    """A script on one store."""

    script: Script
    prefix: str
    arguments: Sequence[Argument]


class Command(NamedTuple):
    """A plain command."""

    words: Sequence[Argument]
