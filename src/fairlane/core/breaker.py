"""The circuit breaker: a type that keeps failing is not started for a while.

closed ── enough failures within a time ──▶ open ── cool-down over ──▶ half-open
   ▲                                         ▲                            │
   └──────────────── a success ──────────────┼────────────────────────────┤
                                             └───────── a failure ────────┘

Half-open is not stored: a circuit whose cool-down is over lets one task of its type through at a
time (see `lanes.allowance`), and the first that ends decides.
"""

from __future__ import annotations

import msgspec

from fairlane.core import limits
from fairlane.core.clocks import ahead
from fairlane.core.errors import InvalidLimit
from fairlane.core.machine import Move, Verb
from fairlane.core.priority import MICROSECONDS
from fairlane.core.text import shown


class Breaker(msgspec.Struct, frozen=True, array_like=True):
    """After `failures` within `within` seconds no task starts for `cooldown` seconds."""

    failures: int
    within: float
    cooldown: float


class Circuit(msgspec.Struct, frozen=True, array_like=True):
    """The recent failures of a type, and until when it is not started.

    `open_until` is None while the circuit is closed.
    """

    failures: tuple[int, ...] = ()
    open_until: int | None = None


CLOSED = Circuit()


def verdict(move: Move) -> bool | None:
    """Return whether a run counts as a success (True), a failure (False) or neither (None)."""
    if move.verb is Verb.COMPLETE:
        return True
    return False if move.run in _FAILURES else None


_FAILURES = frozenset({"failed", "timed_out", "lost"})


def opened_at(open_until: int, breaker: Breaker) -> int:
    """Return when a circuit opened that is open until a time."""
    return open_until - int(breaker.cooldown * MICROSECONDS)


def cools(open_until: int, breaker: Breaker, now: int) -> bool:
    """Return whether the cool-down of a circuit that opened is not over yet.

    If it opened while the clock was ahead, nobody knows how much of it is left: it is over.
    """
    return now < open_until and not ahead(opened_at(open_until, breaker), now)


def after(circuit: Circuit, breaker: Breaker, good: int, bad: int, now: int) -> Circuit:
    """Return the circuit after `good` successes and `bad` failures that ended at `now`."""
    cooldown = int(breaker.cooldown * MICROSECONDS)
    if circuit.open_until is not None:
        if cools(circuit.open_until, breaker, now) or not good + bad:
            return circuit  # what ends now began before it opened
        return Circuit(open_until=now + cooldown) if bad else CLOSED
    since = now - int(breaker.within * MICROSECONDS)
    recent = tuple(at for at in circuit.failures if at > since and not ahead(at, now))
    failures = recent + (now,) * bad
    if len(failures) >= breaker.failures:
        return Circuit(open_until=now + cooldown)
    return Circuit(failures)


def checked(breaker: object) -> Breaker:
    """Return the breaker. Raises InvalidLimit if it cannot be set."""
    if (
        isinstance(breaker, Breaker)
        and _whole(breaker.failures)
        and 1 <= breaker.failures <= limits.BREAKER_FAILURES
        and all(
            isinstance(seconds, int | float)
            and not isinstance(seconds, bool)
            and 0 < seconds <= limits.BREAKER_SECONDS
            for seconds in (breaker.within, breaker.cooldown)
        )
    ):
        return Breaker(breaker.failures, float(breaker.within), float(breaker.cooldown))
    raise InvalidLimit(
        f"A circuit breaker opens after 1 to {limits.BREAKER_FAILURES:,} failures within a time "
        f"and for a time above 0 and at most {limits.BREAKER_SECONDS:,.0f} seconds. "
        f"Got {shown(breaker)}."
    )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
