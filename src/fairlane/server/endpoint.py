"""One path of the API: finds the operation, checks who calls it, runs it, sends the response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from fairlane.server.audit import record
from fairlane.server.auth import Authenticator
from fairlane.server.bound_services import within
from fairlane.server.errors import MethodNotAllowed, NotFound, response_to
from fairlane.server.operations import Call, Operation
from fairlane.server.requests import (
    BodyReader,
    ClientGone,
    Receive,
    Scope,
    headers_of,
    query_of,
    wait_until_gone,
)
from fairlane.server.responses import Response, Send
from fairlane.server.services import Services


class Endpoint:
    """An ASGI application for the operations of one path."""

    def __init__(
        self, services: Services, auth: Authenticator, operations: Sequence[Operation]
    ) -> None:
        self._services = services
        self._auth = auth
        self._operations: Mapping[str, Operation] = {each.method: each for each in operations}
        self._readers = {
            each.method: BodyReader(each.body, each.most, optional=each.optional_body)
            for each in operations
            if each.body is not None
        }
        self._invalid = operations[0].invalid
        methods = sorted({*self._operations, *(["HEAD"] if "GET" in self._operations else [])})
        self._allowed = ", ".join(methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._services.start()
        try:
            response = await self._respond(scope, receive)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 (all errors become responses in one place)
            response = response_to(error, self._invalid)
        await response.send(send, bodiless=scope["method"] == "HEAD")

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = self._operations.get(method)
        headers = headers_of(scope)
        if operation is None:
            await self._auth.authenticate(scope["method"], headers, None)
            allow = ((b"allow", self._allowed.encode()),)
            raise MethodNotAllowed(f"This address takes {self._allowed}.", headers=allow)
        identity = await self._auth.authenticate(
            scope["method"], headers, operation.scopes, operation.bound, operation.besides
        )
        query = None if operation.query is None else query_of(scope, operation.query)
        reader = self._readers.get(method)
        call = Call(
            body=None if reader is None else await reader.read(headers, receive),
            query=query,
            path=scope.get("path_params", {}),
            identity=identity,
            headers=headers,
            address=(scope.get("client") or ("",))[0],
            secure=scope.get("scheme") == "https",
            root=scope.get("root_path", ""),
            left=partial(wait_until_gone, receive),
        )
        bounds = identity.bounds
        services = self._services if bounds is None else within(self._services, bounds)
        response = await operation.handler(services, call)
        if operation.action is not None and response.changed:
            await record(self._services, operation.action, call)
        return response


class UnknownPath:
    """An ASGI application for every path that is not in the table."""

    def __init__(self, auth: Authenticator) -> None:
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error: Exception = NotFound()
        try:
            # An unknown caller must not learn which paths exist.
            await self._auth.authenticate(scope.get("method"), headers_of(scope), None)
        except Exception as refused:  # noqa: BLE001 (all errors become responses in one place)
            error = refused
        if scope["type"] == "websocket":
            await receive()  # the wish to connect
            await response_to(error).refuse_socket(scope, send)
        else:
            await response_to(error).send(send, bodiless=scope["method"] == "HEAD")
