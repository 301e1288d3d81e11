"""`/api/v1/dlq`: tasks whose retries are used up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from fairlane.core import limits
from fairlane.core.analysis import failure_of, mark_of
from fairlane.core.audit import Action
from fairlane.core.filters import Filter, Page, cursor_of
from fairlane.core.flow import Op
from fairlane.core.model import Swept, Task
from fairlane.server.operations import ADMIN, READ, SUBMIT, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.server.tasks import get_first, get_page, new_level, replay_task, sweep, sweep_batches
from fairlane.wire.changes import Change, ReplayedView, SweptView
from fairlane.wire.figures import AnalysisView, analysis_of
from fairlane.wire.filters import DEAD, DeadListQuery, DeadPurgeQuery, DeadReplay, ReplayTerms
from fairlane.wire.tasks_read import TaskPage, encode_page


class FailureGroup:
    """The tasks that match a filter and failed in the same way: a group of the analysis.

    Engines cannot search for the shape of a message: they search for the rest of the filter, and
    tasks that failed in another way are left out here.
    """

    def __init__(self, services: Services, chosen: Filter, failure: str) -> None:
        self._services = services
        self._chosen = chosen
        self._failure = failure

    async def page(self, limit: int, cursor: str | None) -> Page:
        """Return a page of up to `limit` tasks. It may be short although there are more."""
        found = await self._find(limits.PAGE, cursor)
        wanted = [task.task_id for task in found.tasks[:limit]]
        tasks = await get_first(self._services, wanted)
        whole = len(tasks) == len(found.tasks)
        next_cursor = found.next_cursor if whole else cursor_of(wanted[len(tasks) - 1])
        return Page([task for task in tasks if task is not None], next_cursor)

    async def change(
        self, cursor: str | None, apply: Callable[[Sequence[str]], Op[Sequence[Change]]]
    ) -> Response:
        """Change the tasks, until all are done or time is up."""

        async def change(cursor: str | None) -> Swept:
            found = await self._find(limits.BATCH, cursor)
            if not found.tasks:
                return Swept(0, 0, found.next_cursor)
            answers = await self._services.run(apply([task.task_id for task in found.tasks]))
            applied = sum(answer.applied for answer in answers)
            return Swept(len(answers), applied, found.next_cursor)

        return await sweep_batches(self._services, cursor, change)

    async def _find(self, number: int, cursor: str | None) -> Page:
        """Return the heads of those of the next `number` tasks that belong to the group."""
        run, ops = self._services.run, self._services.ops
        found = await run(ops.find(self._chosen, number, cursor))
        group: list[Task] = []
        for start in range(0, len(found.task_ids), limits.ANALYSED_READ):
            heads = await run(ops.heads(found.task_ids[start : start + limits.ANALYSED_READ]))
            group += [each for each in heads if each is not None and self._has(each)]
        return Page(group, found.cursor)

    def _has(self, task: Task) -> bool:
        return mark_of(failure_of(task)) == self._failure


async def list_dead(services: Services, call: Call[None, DeadListQuery]) -> Response:
    """List dead letters, newest first."""
    query = call.query
    if isinstance(query.failure, str):
        group = FailureGroup(services, query.chosen(), query.failure)
        return Response(encode_page(await group.page(query.limit, query.cursor)))
    return Response(
        encode_page(await get_page(services, query.chosen(), query.limit, query.cursor))
    )


async def purge(services: Services, call: Call[None, DeadPurgeQuery]) -> Response:
    """Delete dead letters for good."""
    query, ops = call.query, services.ops
    if isinstance(query.failure, str):
        group = FailureGroup(services, query.chosen(), query.failure)
        return await group.change(query.cursor, partial(ops.delete, among=DEAD))
    return await sweep(services, query.chosen(), query.cursor, ops.delete_where)


async def analyse(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Group dead letters by the way they failed."""
    return Response(analysis_of(await services.run(services.ops.dlq_analysis())))


async def replay_many(services: Services, call: Call[DeadReplay, None]) -> Response:
    """Replay dead letters: make them ready to run now."""
    body, ops = call.body, services.ops
    how: dict[str, Any] = {"reset_retry_count": body.reset_retry_count, "level": new_level(body)}
    if isinstance(body.failure, str):
        group = FailureGroup(services, body.chosen(), body.failure)
        return await group.change(body.cursor, partial(ops.replay, among=DEAD, **how))
    return await sweep(services, body.chosen(), body.cursor, partial(ops.replay_where, **how))


async def replay(services: Services, call: Call[ReplayTerms, None]) -> Response:
    """Replay a dead letter: make it ready to run now."""
    return await replay_task(services, call.path["task_id"], call.body, DEAD)


OPERATIONS: Final = [
    Operation("GET", "/api/v1/dlq", list_dead, READ, READ, query=DeadListQuery, returns=TaskPage),
    Operation(
        "DELETE",
        "/api/v1/dlq",
        purge,
        ADMIN,
        query=DeadPurgeQuery,
        returns=SweptView,
        action=Action.DELETE,
    ),
    Operation("GET", "/api/v1/dlq/analysis", analyse, READ, returns=AnalysisView),
    Operation(
        "POST",
        "/api/v1/dlq/replay",
        replay_many,
        ADMIN,
        body=DeadReplay,
        returns=SweptView,
        action=Action.REPLAY,
    ),
    Operation(
        "POST",
        "/api/v1/dlq/{task_id}/replay",
        replay,
        ADMIN,
        SUBMIT,
        body=ReplayTerms,
        optional_body=True,
        returns=ReplayedView,
        action=Action.REPLAY,
    ),
]
