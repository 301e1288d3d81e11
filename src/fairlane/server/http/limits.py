"""Limits of connections and requests."""

from __future__ import annotations

from typing import Final

import msgspec

RESERVED_FILES: Final = 64
"""Files that are kept free for the store, the log and so on."""


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one server process accepts from its clients. Times are in seconds."""

    header_bytes: int = 64 * 1024
    headers: int = 100
    url_bytes: int = 32 * 1024
    body_bytes: int = 16 * 1024 * 1024
    """The maximum for any request; operations have lower limits."""

    header_seconds: float = 10.0
    """From the first byte of a request (or from connecting) to the end of its headers."""
    body_seconds: float = 30.0
    """From the end of the headers to the end of the body."""
    write_seconds: float = 30.0
    """How long a client may leave a response unread."""
    idle_seconds: float = 60.0
    """How long a connection may stay idle."""
    linger_seconds: float = 2.0
    """How long data of a refused client is discarded, so that it can read the reason."""
    grace_seconds: float = 10.0
    """How long requests may take to finish when the server stops."""

    connections: int = 10_000
    """At the same time; fewer if the process may not open enough files. One address may have three
    quarters of them. Where there are too many, idle ones are closed."""
    requests: int = 10_000
    """At the same time, including those that wait."""
    pipelined: int = 128
    """Requests that a connection may send before the earlier ones are answered."""

    message_bytes: int = 64 * 1024
    """The maximum size of a WebSocket message."""
    ping_seconds: float = 20.0
    """A WebSocket client that does not answer a ping within this time is dropped."""

    def from_one_address(self) -> int:
        """Return how many connections one address may have: some are left for the others."""
        return max(1, self.connections * 3 // 4)

    def refusals(self) -> int:
        """Return how many refused connections may linger, besides those that count: any more are
        dropped without a response."""
        return self.connections // 8 + 8

    def within(self, files: int) -> ConnectionLimits:
        """Return the limits for a process that may open this many files."""
        room = max(1, (files - RESERVED_FILES - 8) * 8 // 9)
        return msgspec.structs.replace(self, connections=min(self.connections, room))
