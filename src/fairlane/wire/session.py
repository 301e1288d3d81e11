"""Who is signed in."""

from __future__ import annotations

import msgspec

from fairlane.core.tokens import Scope


class Session(msgspec.Struct, frozen=True):
    """Who is signed in. `required`: there is no way in without."""

    required: bool
    name: str | None
    scopes: list[Scope]
