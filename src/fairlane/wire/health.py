"""Whether a server lives, and whether it can do its work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from fairlane.core.backend import Durability


class Alive(msgspec.Struct, frozen=True):
    """The server answers."""

    status: Literal["ok"] = "ok"


class DurabilityView(msgspec.Struct, frozen=True):
    """What the store's own settings promise; `warnings` say how tasks can get lost."""

    engine: str
    settings: Mapping[str, str]
    warnings: tuple[str, ...]


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The store answers as well."""

    status: Literal["ready"] = "ready"
    version: str
    durability: DurabilityView


def ready_of(version: str, durability: Durability) -> Ready:
    """A server whose store answers."""
    shown = DurabilityView(durability.engine, durability.settings, durability.warnings)
    return Ready(version=version, durability=shown)
