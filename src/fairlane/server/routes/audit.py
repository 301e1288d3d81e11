"""`/api/v1/audit`: who changed what."""

from __future__ import annotations

from typing import Final

from fairlane.server.answers import Answer
from fairlane.server.operations import ADMIN, Call, Operation
from fairlane.server.services import Services
from fairlane.wire.audit import AuditList, AuditQuery, entry_of


async def listed(services: Services, call: Call[None, AuditQuery]) -> Answer:
    """Who changed what, the newest first."""
    query = call.query
    page = await services.run(services.ops.audit(query.limit, query.cursor))
    return Answer(AuditList([entry_of(entry) for entry in page.entries], page.next_cursor))


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/audit",
        handler=listed,
        summary="List who changed what",
        scopes=ADMIN,
        query=AuditQuery,
        returns=AuditList,
    ),
]
