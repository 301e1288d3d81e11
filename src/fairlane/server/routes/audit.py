"""`/api/v1/audit`: who changed what."""

from __future__ import annotations

from typing import Final

from fairlane.server.operations import ADMIN, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.wire.audit import AuditList, AuditQuery, encode_audit


async def list_entries(services: Services, call: Call[None, AuditQuery]) -> Response:
    """List who changed what, newest first."""
    query = call.query
    page = await services.run(services.ops.audit(query.limit, query.cursor))
    return Response(encode_audit(page))


OPERATIONS: Final = [
    Operation("GET", "/api/v1/audit", list_entries, ADMIN, query=AuditQuery, returns=AuditList),
]
