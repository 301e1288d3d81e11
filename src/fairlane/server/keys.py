"""Tokens as requests bring them, looked up in the store and remembered for a moment.

What is revoked stops working within that moment, on every server. Once tokens are set up they are
asked for until the server is started anew: revoking the last one must not open the door.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlane.core.tokens import Token, digest_of
from fairlane.server.cached import Cached

SECONDS: Final = 2.0
REMEMBERED: Final = 10_000
"""Secrets, right or wrong, that are remembered at once."""

Find = Callable[[bytes], "Cached[Token | None]"]


class Keys:
    """Knows which secrets open the door."""

    def __init__(
        self,
        exist: Cached[bool],
        find: Find,
        *,
        required: bool,
    ) -> None:
        self._exist = exist
        self._find = find
        self._required = required
        self._known: dict[bytes, Cached[Token | None]] = {}

    async def required(self) -> bool:
        """Whether nobody comes in without a token."""
        if not self._required:
            self._required = await self._exist.get()
        return self._required

    async def token(self, secret: str) -> Token | None:
        """The token with this secret, if it counts."""
        digest = digest_of(secret)
        known = self._known.get(digest)
        if known is None:
            while len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
            known = self._known[digest] = self._find(digest)
        return await known.get()

    def forget(self, secret: str) -> None:
        """Look at the store again when this secret comes next."""
        self._known.pop(digest_of(secret), None)
