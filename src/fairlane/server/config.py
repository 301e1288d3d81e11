"""What a server may be told."""

from __future__ import annotations

import msgspec

from fairlane.core.priority import Band


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """When submissions are refused to keep the rest going. None turns a grade off.

    From so many queued tasks on, submissions are refused: those of `low` priority, then all below
    high, then all but those of tokens that are exempt.
    """

    low: int | None = 10_000
    normal: int | None = 50_000
    all: int | None = 100_000
    per_minute: int | None = None
    per_hour: int | None = None
    """Submissions of one client (token, or address without tokens)."""

    def grades(self) -> tuple[tuple[int | None, frozenset[Band]], ...]:
        """Thresholds, highest first, and what is refused from there on."""
        return (
            (self.all, frozenset(Band)),
            (self.normal, frozenset({Band.LOW, Band.MEDIUM})),
            (self.low, frozenset({Band.LOW})),
        )


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How one server process serves. Times are seconds."""

    tokens_required: bool = False
    """Refuse whoever has no token, even while none are set up: for addresses beyond loopback."""
    hosts: frozenset[str] | None = None
    """Host names it answers to. None: those of loopback, or any when tokens are required."""
    origins: frozenset[str] = frozenset()
    """Where its own pages are, if a proxy changes the host name: `https://admin.example.com`."""
    admission: Admission = Admission()
    longest_wait: float = 60.0
    """The most that a request may wait for a result or for tasks."""
    listeners: int = 1_000
    """How many clients may listen to live events at the same time."""
    maintenance: bool = True
