"""How tasks of a type are submitted: by the definition that workers have published.

There may be 10,000 definitions of 40 KiB each, and whoever has a worker's token may publish them.
So one is read when a task of its type comes, and few are kept.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from fairlane.core.definitions import DefinitionPage, Published, Template
from fairlane.core.text import is_name
from fairlane.server.cached import Cached

SECONDS: Final = 2.0
"""How old a definition may be that a server goes by."""
KEPT = 1_000
"""Types whose templates are kept at once."""
PAGE: Final = 25
"""Definitions that are read at once: decoding them must not hold the event loop for long."""


class Templates:
    """The templates of types, each as it was a moment ago."""

    def __init__(
        self,
        find: Callable[[str], Awaitable[Published | None]],
        list_page: Callable[[str | None, int], Awaitable[DefinitionPage]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._list_page = list_page
        self._clock = clock
        self._known: dict[str, Cached[Template]] = {}
        self.types = Cached(self._list_types, SECONDS, clock)
        """The names of all types that are defined, sorted."""

    def current(self, type: str | None) -> Template | None:
        """Return the template of a type if it was read a moment ago: without the cost of a
        coroutine."""
        known = self._known.get(type)  # type: ignore[arg-type]
        return None if known is None else known.current

    async def get(self, type: str) -> Template:
        """Return the template of a type; one without a definition if nobody has published it."""
        if not is_name(type):
            return Template(type)  # the task is refused because of its type
        known = self._known.get(type)
        if known is None:
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[type] = Cached(partial(self._read, type), SECONDS, self._clock)
        return await known.get()

    async def _read(self, type: str) -> Template:
        found = await self._find(type)
        return Template(type, None if found is None else found.definition)

    async def _list_types(self) -> list[str]:
        types: set[str] = set()
        cursor = None
        while True:
            page = await self._list_page(cursor, PAGE)
            types.update(each.definition.type for each in page.definitions)
            cursor = page.next_cursor
            if cursor is None:
                return sorted(types)
