"""Reading the journal for clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fairlane.core.journal import place_of
from fairlane.server.store_guard import StoreGuard
from fairlane.server.stream.items import Item, items_of
from fairlane.wire.events import tasks_with_progress
from fairlane.wire.runs import ProgressView, encode_progress

AT_ONCE: Final = 200
"""About how many events are read at once; a journal entry is never split."""
TASKS_AT_ONCE: Final = 20
"""Tasks whose progress is read at once: each may have a large payload."""


class Stretch(NamedTuple):
    """A part of the journal, and the cursor to continue from. `full`: there is probably more."""

    items: list[Item]
    cursor: str
    reset: bool
    full: bool


class Reader:
    """Reads the journal."""

    def __init__(self, store: StoreGuard) -> None:
        self._store = store

    async def tail(self) -> str:
        """Return the cursor of the journal's end."""
        return await self._store.run(self._store.ops.tail())

    async def read(
        self, after: str | None, limit: int = AT_ONCE, *, progress: bool = True
    ) -> Stretch:
        """Return what happened after a cursor. Raises InvalidCursor."""
        found = await self._store.run(self._store.ops.events(after, limit))
        reports = await self._reports(tasks_with_progress(found.events)) if progress else {}
        items = items_of(found.events, after, reports)
        return Stretch(items, found.cursor, found.reset, len(found.events) >= limit)

    async def resume(self, after: str, limit: int = AT_ONCE) -> Stretch:
        """Return what happened after a cursor of a client, which may be from before the store was
        recreated. Raises InvalidCursor."""
        stretch = await self.read(after, limit)
        if stretch.items or stretch.cursor != after:
            return stretch
        if place_of(after) <= place_of(await self.tail()):
            return stretch
        return (await self.read(None, limit))._replace(reset=True)

    async def _reports(self, task_ids: Sequence[str]) -> dict[str, ProgressView]:
        """Return the last progress reports of tasks, which are not in the journal."""
        reports: dict[str, ProgressView] = {}
        for start in range(0, len(task_ids), TASKS_AT_ONCE):
            part = task_ids[start : start + TASKS_AT_ONCE]
            for task in await self._store.run(self._store.ops.heads(part)):
                shown = None if task is None else encode_progress(task.progress)
                if task is not None and shown is not None:
                    reports[task.task_id] = shown
        return reports
