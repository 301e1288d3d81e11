"""The description of the API: `/openapi.json` for programs, `/docs` for people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

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

    async def docs(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
        """Read the description of the API as a page."""
        return Response(shown(), kind=b"text/html; charset=utf-8", guards=PAGE_GUARDS)

    return [
        Operation("GET", "/openapi.json", openapi, READ, READ),
        Operation("GET", "/docs", docs, READ, READ),
    ]
