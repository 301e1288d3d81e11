"""`/api/v1/dlq`: tasks whose retries are used up."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fairlane.core.audit import Action
from fairlane.server.answers import Answer
from fairlane.server.changes import level, replayed, swept
from fairlane.server.failure_group import FailureGroup
from fairlane.server.operations import ADMIN, READ, Call, Operation
from fairlane.server.services import Services
from fairlane.server.tasks import page
from fairlane.wire.changes import ReplayedView, SweptView
from fairlane.wire.figures import AnalysisView, analysis_of
from fairlane.wire.filters import DEAD, DeadListQuery, DeadPurgeQuery, DeadReplay, ReplayTerms
from fairlane.wire.tasks import TaskPage, page_of


async def listed(services: Services, call: Call[None, DeadListQuery]) -> Answer:
    """Dead letters, the newest first."""
    query = call.query
    if isinstance(query.failure, str):
        group = FailureGroup(services, query.chosen(), query.failure)
        return Answer(page_of(await group.page(query.limit, query.cursor)))
    return await page(services, query.chosen(), query.limit, query.cursor)


async def purge(services: Services, call: Call[None, DeadPurgeQuery]) -> Answer:
    """Delete dead letters for good."""
    query, ops = call.query, services.ops
    if isinstance(query.failure, str):
        group = FailureGroup(services, query.chosen(), query.failure)
        return await group.changed(query.cursor, partial(ops.delete, among=DEAD))
    return await swept(services, query.chosen(), query.cursor, ops.delete_where)


async def analysis(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """Dead letters in groups of alike failures."""
    return Answer(analysis_of(await services.run(services.ops.dlq_analysis())))


async def replay_many(services: Services, call: Call[DeadReplay, None]) -> Answer:
    """Make dead letters ready again."""
    body, ops = call.body, services.ops
    how: dict[str, Any] = {"reset_retry_count": body.reset_retry_count, "level": level(body)}
    if isinstance(body.failure, str):
        group = FailureGroup(services, body.chosen(), body.failure)
        return await group.changed(body.cursor, partial(ops.replay, among=DEAD, **how))
    return await swept(services, body.chosen(), body.cursor, partial(ops.replay_where, **how))


async def replay(services: Services, call: Call[ReplayTerms, None]) -> Answer:
    """Make a dead letter ready again."""
    return await replayed(services, call.path["task_id"], call.body, DEAD)


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/dlq",
        handler=listed,
        summary="List dead letters",
        scopes=READ,
        query=DeadListQuery,
        returns=TaskPage,
    ),
    Operation(
        method="DELETE",
        path="/api/v1/dlq",
        handler=purge,
        summary="Delete dead letters",
        scopes=ADMIN,
        query=DeadPurgeQuery,
        returns=SweptView,
        action=Action.DELETE,
    ),
    Operation(
        method="GET",
        path="/api/v1/dlq/analysis",
        handler=analysis,
        summary="Group dead letters by failure",
        scopes=READ,
        returns=AnalysisView,
    ),
    Operation(
        method="POST",
        path="/api/v1/dlq/replay",
        handler=replay_many,
        summary="Replay many dead letters",
        scopes=ADMIN,
        body=DeadReplay,
        returns=SweptView,
        action=Action.REPLAY,
    ),
    Operation(
        method="POST",
        path="/api/v1/dlq/{task_id}/replay",
        handler=replay,
        summary="Replay a dead letter",
        scopes=ADMIN,
        body=ReplayTerms,
        optional_body=True,
        returns=ReplayedView,
        action=Action.REPLAY,
    ),
]
