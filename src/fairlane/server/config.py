"""Settings of a server."""

from __future__ import annotations

import msgspec

from fairlane.core import limits
from fairlane.core.client_limits import Rate
from fairlane.core.priority import Band


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """When submissions are refused, so that the rest get served. None turns a threshold off.

    The numbers are waiting tasks (scheduled, queued and retrying): above `low`, submissions of low
    priority are refused; above `normal`, all below high; above `all`, all but those of exempt
    tokens.
    """

    low: int | None = 10_000
    normal: int | None = 50_000
    all: int | None = 100_000
    per_minute: int | None = None
    per_hour: int | None = None
    """Submissions of one client: a token, or an address where there are no tokens. They are counted
    in the store, for all server processes together."""
    lanes_per_hour: int | None = limits.NEW_LANES
    """New combinations of queue, type and capabilities in submissions of one client: the subject of
    a token without `admin`. They are counted in the same way."""

    def lane_rates(self) -> list[Rate]:
        """Return the limits of new lanes of one client."""
        return [] if self.lanes_per_hour is None else [Rate(self.lanes_per_hour, 3600)]

    def rates(self) -> list[Rate]:
        """Return the limits of one client."""
        given = [(self.per_minute, 60), (self.per_hour, 3600)]
        return [Rate(most, seconds) for most, seconds in given if most is not None]

    def grades(self) -> tuple[tuple[int | None, frozenset[Band]], ...]:
        """Return the thresholds, highest first, and the bands that each refuses."""
        return (
            (self.all, frozenset(Band)),
            (self.normal, frozenset({Band.LOW, Band.MEDIUM})),
            (self.low, frozenset({Band.LOW})),
        )


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one server process. Times are in seconds."""

    tokens_required: bool = False
    """Refuse requests without a token, even while no tokens exist: for addresses other than
    loopback."""
    hosts: frozenset[str] | None = None
    """Host names that it answers to. None: those of loopback, or any if tokens are required."""
    origins: frozenset[str] = frozenset()
    """Origins of its own pages, if a proxy changes the host name: `https://admin.example.com`."""
    admission: Admission = Admission()
    longest_wait: float = 60.0
    """How long a request may wait for a result or for tasks."""
    start_within: float | None = limits.START_SECONDS
    """How long a task may wait for the `start` of a worker that reports starts. None: any time."""
    listeners: int = 1_000
    """How many clients may listen to live events at the same time."""
    maintenance: bool = True
