"""Reading the results that tasks take from their parents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fairlane.client.batching import Batcher
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.merging import ParentResult, too_large, wanted
from fairlane.core.model import Spec, Task

Results = dict[str, ParentResult]
Get = Callable[[Sequence[str]], Awaitable[list[Task | None]]]


class ParentResults:
    """Reads the results for the tasks of one event loop. Tasks that start at the same time share a
    read."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._batcher: Batcher[Sequence[str], Results] = Batcher(self._read, limits.PAGE_READ)

    async def of(self, spec: Spec) -> Results:
        """Return the results that a task takes, by the ids of its parents; none for those that are
        gone. Raises InputsTooLarge."""
        found: Results = {}
        room = limits.INPUT_BYTES
        for ids in pages(wanted(spec)):
            some = await self._batcher.send(ids)
            room -= size_of(some)
            if room < 0:
                raise too_large()
            found |= some
        return found

    async def _read(self, wanted: Sequence[Sequence[str]]) -> list[Results]:
        ids = list(dict.fromkeys(task_id for each in wanted for task_id in each))
        found: Results = {}
        for page in pages(ids):
            found |= await read(self._get, page)
        return [{id: found[id] for id in each if id in found} for each in wanted]

    async def _get(self, task_ids: Sequence[str]) -> list[Task | None]:
        return await self._backend.run(self._backend.ops.get(task_ids))


async def read(get: Get, page: Sequence[str]) -> Results:
    """Return the results of a page of tasks; none for those that are gone."""
    found = await get(page)
    return {task.task_id: ParentResult.of(task) for task in found if task is not None}


def pages(task_ids: Sequence[str]) -> list[Sequence[str]]:
    """Return ids in groups of as many whole tasks as are read at once."""
    most = limits.PAGE_READ
    return [task_ids[at : at + most] for at in range(0, len(task_ids), most)]


def size_of(results: Results) -> int:
    """Return how many bytes results have together."""
    return sum(each.size for each in results.values())
