"""The tasks of this process that wait for work, in any event loop."""

from __future__ import annotations

import asyncio
import threading


class Waiters:
    """Events to set when there may be work. `wake` can be called from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._events: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def add(self, event: asyncio.Event) -> tuple[asyncio.AbstractEventLoop, asyncio.Event]:
        """Add an event of the running loop; return the entry to remove later."""
        entry = (asyncio.get_running_loop(), event)
        with self._guard:
            self._events.add(entry)
        return entry

    def remove(self, entry: tuple[asyncio.AbstractEventLoop, asyncio.Event]) -> None:
        """Remove an entry that `add` returned."""
        with self._guard:
            self._events.discard(entry)

    def wake(self) -> None:
        """Set all events, each in its loop."""
        with self._guard:
            events = list(self._events)
        for loop, event in events:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)
