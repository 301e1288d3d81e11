"""Tasks that failed alike: one group of the dead letters' analysis.

No engine knows shapes of messages. What else was chosen (the type, say) is found by the engine, and
those that failed otherwise are left out here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlane.core import limits
from fairlane.core.analysis import failure_of, mark_of
from fairlane.core.filters import Filter, Page, cursor_of
from fairlane.core.flow import Op
from fairlane.core.model import Swept
from fairlane.server.answers import Answer
from fairlane.server.changes import batched
from fairlane.server.services import Services
from fairlane.wire.changes import Change


class FailureGroup:
    """Those of the tasks that a filter admits that failed in one way."""

    def __init__(self, services: Services, chosen: Filter, failure: str) -> None:
        self._services = services
        self._chosen = chosen
        self._failure = failure

    async def page(self, limit: int, cursor: str | None) -> Page:
        """Up to so many of them. Like any page it may be short although there is more."""
        found = await self._among(limits.PAGE, cursor)
        if len(found.tasks) <= limit:
            return found
        tasks = found.tasks[:limit]
        return Page(tasks, cursor_of(tasks[-1].task_id))

    async def changed(
        self, cursor: str | None, apply: Callable[[Sequence[str]], Op[Sequence[Change]]]
    ) -> Answer:
        """Change them, for as long as a request may take."""

        async def change(cursor: str | None) -> Swept:
            found = await self._among(limits.BATCH, cursor)
            if not found.tasks:
                return Swept(0, 0, found.next_cursor)
            answers = await self._services.run(apply([task.task_id for task in found.tasks]))
            applied = sum(answer.applied for answer in answers)
            return Swept(len(answers), applied, found.next_cursor)

        return await batched(self._services, cursor, change)

    async def _among(self, number: int, cursor: str | None) -> Page:
        """Those of them that are among the next so many tasks."""
        found = await self._services.run(self._services.ops.page(self._chosen, number, cursor))
        alike = [task for task in found.tasks if mark_of(failure_of(task)) == self._failure]
        return Page(alike, found.next_cursor)
