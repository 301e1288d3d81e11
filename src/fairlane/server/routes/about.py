"""The description of the API: `/openapi.json` for programs, `/docs` for people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from fairlane.core.errors import StoreError
from fairlane.server import docs_tasks
from fairlane.server.docs_page import PAGE_GUARDS, page
from fairlane.server.openapi import document
from fairlane.server.operations import READ, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services


def describe(table: Sequence[Operation]) -> list[Operation]:
    """Return the operations that describe those of a table."""
    described = cache(lambda: document(table))
    shown = cache(lambda: page(described()))

    async def openapi(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
        """Read the description of the API as OpenAPI 3.1."""
        return Response(described())

    async def docs(services: Services, call: Call[None, None]) -> Response:
        """Read the description of the API as a page, with the tasks that workers have published."""
        tasks = await _tasks(services, call)
        body = shown().before + tasks.encode() + shown().after
        return Response(body, kind=b"text/html; charset=utf-8", guards=PAGE_GUARDS)

    return [
        Operation("GET", "/openapi.json", openapi, READ, READ),
        Operation("GET", "/docs", docs, READ, READ),
    ]


async def _tasks(services: Services, call: Call[None, None]) -> str:
    if call.identity.bounds is not None:
        return docs_tasks.note(docs_tasks.BOUND)
    try:
        types = await services.templates.types.get()
        shown = [await services.templates.get(type) for type in types[: docs_tasks.SHOWN]]
    except StoreError:
        return docs_tasks.note(docs_tasks.AWAY)
    address = docs_tasks.address_of(call.headers, secure=call.secure, root=call.root)
    token = call.identity.token_id is not None
    return docs_tasks.section(shown, len(types), address, token=token)
