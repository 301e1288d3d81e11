"""How much a connection may ask of a server."""

from __future__ import annotations

from typing import Final

import msgspec

RESERVED_FILES: Final = 64
"""For the store, the log and the like."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one server process takes from its clients. Times are seconds."""

    header_bytes: int = 64 * 1024
    headers: int = 100
    url_bytes: int = 32 * 1024
    body_bytes: int = 16 * 1024 * 1024
    """The most that any request may bring; operations refuse what is too much for them."""

    header_seconds: float = 10.0
    """From the first byte of a request (or from connecting) to the end of its headers."""
    body_seconds: float = 30.0
    """From the end of the headers to the end of the body."""
    write_seconds: float = 30.0
    """How long a client may leave an answer unread."""
    idle_seconds: float = 60.0
    """How long a connection may stay without a request."""
    linger_seconds: float = 2.0
    """How long what a refused client still sends is thrown away, so that it can read why."""
    grace_seconds: float = 10.0
    """How long requests may take to finish once the server is to stop."""

    connections: int = 10_000
    """At the same time; fewer if the process may not open so many files."""
    requests: int = 10_000
    """At the same time, those that wait for something included."""
    pipelined: int = 128
    """Requests that one connection may send ahead, while an earlier one is answered."""

    message_bytes: int = 64 * 1024
    """What a WebSocket client may send at once; the next one is read when this one was."""
    ping_seconds: float = 20.0
    """A WebSocket client that does not answer a ping for so long is gone."""

    def dropped_above(self) -> int:
        """So many connections are not even told that they are too many."""
        return self.connections + self.connections // 8 + 8

    def within(self, files: int) -> Limits:
        """The same for a process that may have so many files open."""
        room = max(1, (files - RESERVED_FILES - 8) * 8 // 9)
        return msgspec.structs.replace(self, connections=min(self.connections, room))
