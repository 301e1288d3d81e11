"""One path of the API: finds the operation, lets it be called by who may, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from fairlane.server.answers import Answer, Send
from fairlane.server.auditing import record
from fairlane.server.errors import NotFound, WrongMethod, answer_to
from fairlane.server.gate import Gate
from fairlane.server.operations import Call, Operation
from fairlane.server.requests import BodyReader, Gone, Receive, Scope, headers_of, left, query_of
from fairlane.server.services import Services


class Endpoint:
    """An ASGI application for the operations of one path."""

    def __init__(self, services: Services, gate: Gate, operations: Sequence[Operation]) -> None:
        self._services = services
        self._gate = gate
        self._operations: Mapping[str, Operation] = {each.method: each for each in operations}
        self._readers = {
            each.method: BodyReader(each) for each in operations if each.body is not None
        }
        self._invalid = operations[0].invalid
        methods = sorted({*self._operations, *(["HEAD"] if "GET" in self._operations else [])})
        self._allowed = ", ".join(methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._services.start()
        try:
            answer = await self._answer(scope, receive)
        except Gone:
            return
        except Exception as error:  # noqa: BLE001 (every way out is decided in one place)
            answer = answer_to(error, self._invalid)
        await answer.send(send, bodiless=scope["method"] == "HEAD")

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = self._operations.get(method)
        headers = headers_of(scope)
        scopes = None if operation is None else operation.scopes
        identity = await self._gate.admitted(scope, headers, scopes)
        if operation is None:
            allow = ((b"allow", self._allowed.encode()),)
            raise WrongMethod(f"This address takes {self._allowed}.", headers=allow)
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
            left=partial(left, receive),
        )
        answer = await operation.handler(self._services, call)
        if operation.action is not None:
            await record(self._services, operation.action, call)
        return answer


class Nowhere:
    """An ASGI application for every path that is not in the table."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
            return
        refusal: Exception = NotFound()
        try:
            # Strangers are not told what is there and what is not.
            await self._gate.admitted(scope, headers_of(scope), None)
        except Exception as error:  # noqa: BLE001 (every way out is decided in one place)
            refusal = error
        answer = answer_to(refusal)
        await answer.send(send, bodiless=scope["method"] == "HEAD")
