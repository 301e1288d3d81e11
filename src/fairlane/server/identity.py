"""Who calls."""

from __future__ import annotations

import msgspec

from fairlane.core.tokens import Scope


class Identity(msgspec.Struct, frozen=True):
    """A token by its name; or anyone, where no tokens are set up."""

    name: str
    token_id: str | None = None
    scopes: frozenset[Scope] = frozenset(Scope)
    exempt: bool = False
    """Not refused by admission control."""


ANYONE = Identity("anyone")
