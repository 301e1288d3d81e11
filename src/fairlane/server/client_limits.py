"""Submissions per client: limits that hold for all server processes of a store together.

This process reserves shares in the store (see `core.client_limits`) and hands them out. A store
that is away gives no shares. That closes the door to nobody who could get in: what is submitted
goes to the same store.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from fairlane.client.batching import Batcher
from fairlane.core import limits
from fairlane.core.client_limits import Rate, Share, Want
from fairlane.core.priority import MICROSECONDS
from fairlane.server.errors import TooManyRequests

REFUSED_SECONDS: Final = 1.0
"""A client that was refused is refused for this time without asking the store again."""

Reserve = Callable[[Sequence[Want]], Coroutine[Any, Any, list[Share]]]


class ClientLimits:
    """Admits what clients submit, or refuses it with the time to retry."""

    def __init__(
        self,
        rates: Sequence[Rate],
        reserve: Reserve,
        clock: Callable[[], float] = time.monotonic,
        refusal: type[TooManyRequests] = TooManyRequests,
    ) -> None:
        self.limited = bool(rates)
        """If not, nothing needs to be counted."""
        self._most = min((rate.most for rate in rates), default=0)
        self._clock = clock
        self._refusal = refusal
        self._reservations: Batcher[Want, Share] = Batcher(reserve, limits.BATCH)
        self._clients: dict[str, _Client] = {}

    async def take(self, client: str, amount: int) -> None:
        """Count an amount for a client. Raises TooManyRequests, and then counts nothing."""
        if not self.limited:
            return
        # Move the client to the end: the one that was idle for longest is dropped first.
        standing = self._clients.pop(client, None) or _Client()
        self._clients[client] = standing
        if len(self._clients) > limits.CLIENTS:
            del self._clients[next(iter(self._clients))]
        asked_at = self._clock()
        if standing.take(amount, asked_at):
            return
        self._check(standing, amount, asked_at)
        want = standing.want(client, amount, asked_at, self._most)
        try:
            share = await self._reservations.send(want)
        finally:
            standing.asking -= 1
        standing.receive(share, amount, asked_at)
        self._check(standing, amount, asked_at)

    def _check(self, standing: _Client, amount: int, now: float) -> None:
        """Raise the refusal if this amount was refused a moment ago."""
        refused = standing.refusal_of(amount, now)
        if refused is None:
            return
        rate, wait = refused
        raise self._refusal(
            f"{self._refusal().message} At most {rate.most:,} in {rate.seconds:,} s are accepted.",
            headers=((b"retry-after", str(wait).encode()),),
        )


class _Client:
    """What this process has reserved for one client. Times are those of the process's clock."""

    __slots__ = (
        *("_ends_at", "_left", "_refused", "_refused_at", "_reserved_at", "_size", "_smallest"),
        *("_until", "asking"),
    )

    def __init__(self) -> None:
        self.asking = 0
        """Requests to the store that are under way."""
        self._left = 0
        self._until = float("-inf")
        self._reserved_at = self._ends_at = 0
        """The share's times by the store's clock."""
        self._size = 1
        """How much more than needed is asked for next, counted from 1."""
        self._refused: Share | None = None
        self._refused_at = float("-inf")
        self._smallest = 0
        """The amount that was refused: a smaller one may be accepted."""

    def take(self, amount: int, now: float) -> bool:
        """Take an amount from the share, if there is enough of it."""
        if self._left < amount or now >= self._until:
            return False
        self._left -= amount
        return True

    def want(self, client: str, amount: int, now: float, most: int) -> Want:
        """Ask for another share, and give back what is left."""
        self.asking += 1
        if self.asking > 1:  # one share at a time
            return Want(client, amount)
        used_up = now < self._until
        self._size = min(self._size * 2, max(1, most)) if used_up else max(1, self._size // 2)
        unused, self._left = self._left, 0
        return Want(client, amount, amount - 1 + self._size, unused, self._reserved_at)

    def receive(self, share: Share, amount: int, asked_at: float) -> None:
        """Keep a share, of which this amount is used."""
        if share.refused_by is not None:
            self._refused, self._refused_at, self._smallest = share, asked_at, amount
            return
        self._refused = None
        # The store looked at its clock after it was asked, so the share ends no later than this.
        until = asked_at + (share.until - share.at) / MICROSECONDS
        spare = share.granted - amount
        if share.until == self._ends_at:
            self._left += spare
            self._until = min(self._until, until)
        elif spare or self._left == 0:
            self._left, self._until = spare, until
            self._reserved_at, self._ends_at = share.at, share.until

    def refusal_of(self, amount: int, now: float) -> tuple[Rate, int] | None:
        """Return the limit that refused this amount a moment ago, and the seconds to wait."""
        refused = self._refused
        if refused is None or refused.refused_by is None or amount < self._smallest:
            return None
        passed = now - self._refused_at
        if passed >= min(refused.wait, REFUSED_SECONDS) and passed > 0:
            return None
        return refused.refused_by, max(1, math.ceil(refused.wait - passed))
