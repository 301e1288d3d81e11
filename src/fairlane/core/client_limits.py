"""How much each client may do: sliding windows, counted in the store for all servers together.

A window is cut into parts. What was counted in a part counts until the whole part has left the
window: a client never gets more than the limit within any window, and waits at most one part
longer than it would have to.

A server reserves more than a request needs for a client that asks often: a share. It hands out the
share without asking the store, until the part ends in which it was reserved, and gives back what
was not used when it asks next.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, rewrites, write_or_forget
from fairlane.core.flow import Flow
from fairlane.core.priority import MICROSECONDS

PARTS = 12
"""Of a window."""
SHARES = 8
"""A share is at most this part of the room that is left, so that other servers find room too."""

_KIND = "client"

Counts = dict[int, dict[int, int]]
"""What was counted: by the seconds of the window, then by the number of the part."""


class Rate(msgspec.Struct, frozen=True):
    """At most so many within any `seconds`."""

    most: int
    seconds: int

    @property
    def part(self) -> int:
        """The length of a part in microseconds."""
        return self.seconds * MICROSECONDS // PARTS


class Want(msgspec.Struct, frozen=True):
    """What a server asks for one client: `amount` or nothing, and up to `share` if there is room.

    `unused` of what was reserved at `reserved_at` (the store's microseconds) is given back.
    """

    client: str
    amount: int
    share: int = 0
    unused: int = 0
    reserved_at: int = 0


class Share(msgspec.Struct, frozen=True):
    """What a client got: `granted` until a time, or nothing.

    `refused_by` is the limit that was reached, and `wait` the seconds until there is room for the
    amount if nothing else is counted.
    """

    granted: int
    at: int
    until: int
    refused_by: Rate | None = None
    wait: float = 0.0


@rewrites
def reserve(self: Documents, rates: Sequence[Rate], wants: Sequence[Want]) -> Flow[list[Share]]:
    clients = list(dict.fromkeys(want.client for want in wants))
    now, stored = yield from self.read_documents(_KIND, clients)
    found = dict(zip(clients, stored, strict=True))
    counts = {client: _counts_of(document) for client, document in found.items()}
    changed = {client for client in clients if _is_ahead(counts[client], rates, now)}
    shares = [take(counts[want.client], rates, want, now) for want in wants]
    longest = max(rate.seconds + rate.part // MICROSECONDS + 1 for rate in rates)
    for want, share in zip(wants, shares, strict=True):
        if share.granted or want.unused:
            changed.add(want.client)
    puts = [
        Document(
            client,
            msgspec.json.encode(counts[client]),
            at=now,
            expires_at=now + longest * MICROSECONDS,
            version=document.version if (document := found[client]) else 0,
        )
        for client in sorted(changed)
    ]
    if any(not each.version for each in puts):
        yield from self.expire_documents(_KIND, limits.BATCH)
    if puts:
        yield from write_or_forget(self, _KIND, puts, limits.CLIENTS)
    return shares


def _counts_of(document: Document | None) -> Counts:
    return {} if document is None else _decoder.decode(document.value)


_decoder = msgspec.json.Decoder(Counts)


def take(counts: Counts, rates: Sequence[Rate], want: Want, now: int) -> Share:
    """Count what a client gets, and return it. If it is refused, nothing is counted."""
    for rate in rates:
        parts = _live_parts(counts.get(rate.seconds, {}), rate, now)
        reserved_in = want.reserved_at // rate.part
        if want.unused and reserved_in in parts:
            parts[reserved_in] = max(0, parts[reserved_in] - want.unused)
        counts[rate.seconds] = parts
    until = min((now // rate.part + 1) * rate.part for rate in rates)
    room, tightest = min(
        ((rate.most - sum(counts[rate.seconds].values()), rate) for rate in rates),
        key=lambda each: each[0],
    )
    if want.amount > room:
        wait = max(_wait(counts[rate.seconds], rate, want.amount, now) for rate in rates)
        return Share(0, now, until, tightest, wait)
    granted = max(want.amount, min(want.share, room // SHARES))
    for rate in rates:
        parts = counts[rate.seconds]
        current = now // rate.part
        parts[current] = parts.get(current, 0) + granted
    return Share(granted, now, until)


def _is_ahead(counts: Counts, rates: Sequence[Rate], now: int) -> bool:
    """Return whether something was counted in the future: the clock was set back since."""
    return any(part > now // rate.part for rate in rates for part in counts.get(rate.seconds, ()))


def _live_parts(parts: dict[int, int], rate: Rate, now: int) -> dict[int, int]:
    """Return the parts that a window which ends now touches."""
    current = now // rate.part
    live: dict[int, int] = {}
    for part, count in parts.items():
        part = min(part, current)  # one of the future counts as of now
        if part >= current - PARTS and count:
            live[part] = live.get(part, 0) + count
    return live


def _wait(parts: dict[int, int], rate: Rate, amount: int, now: int) -> float:
    """Return the seconds until enough parts have left the window."""
    excess = sum(parts.values()) + amount - rate.most
    leaves_at = now
    for part in sorted(parts):
        if excess <= 0:
            break
        excess -= parts[part]
        leaves_at = (part + PARTS + 1) * rate.part
    if excess > 0:  # the amount alone is more than the limit
        return float(rate.seconds)
    return (leaves_at - now) / MICROSECONDS
