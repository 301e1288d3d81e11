"""How many keys a Redis has: most queues keep one for each result."""

from __future__ import annotations

from redis import Redis


def count(url: str, pattern: str) -> int:
    with Redis.from_url(url) as client:
        return sum(1 for _ in client.scan_iter(pattern, count=10_000))
