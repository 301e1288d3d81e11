"""The server as an ASGI application: the route table, mounted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import Receive, Scope, Send

from fairlane.client.app import Fairlane
from fairlane.server.config import ServerConfig
from fairlane.server.endpoint import Endpoint, Nowhere
from fairlane.server.gate import Gate
from fairlane.server.operations import Operation
from fairlane.server.routes import OPERATIONS
from fairlane.server.services import Services
from fairlane.server.sockets import LiveSocket


class _Paths(Router):
    """Starlette's router, which tries one route after the other, behind a look at the paths without
    parameters: those are asked for most."""

    def __init__(self, routes: Sequence[BaseRoute], **options: Any) -> None:
        super().__init__(routes, **options)
        self._plain = {
            route.path: route.app
            for route in routes
            if isinstance(route, Route) and not route.param_convertors
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope.get("root_path"):  # which paths would begin with
            plain = self._plain.get(scope["path"])
            if plain is not None:
                await plain(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


class Site(NamedTuple):
    """An ASGI application, and what its operations share."""

    asgi: Router
    services: Services


def site(app: Fairlane, config: ServerConfig | None = None) -> Site:
    """The server over an application's store."""
    services = Services(app, ServerConfig() if config is None else config)
    gate = Gate(services.config, services.keys)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        services.start()
        try:
            yield
        finally:
            await services.stop()

    asgi = _Paths(
        [*_routes(services, gate, OPERATIONS), WebSocketRoute("/ws", LiveSocket(services, gate))],
        redirect_slashes=False,
        default=Nowhere(gate),
        lifespan=lifespan,
    )
    return Site(asgi, services)


def create_app(app: Fairlane, config: ServerConfig | None = None) -> Router:
    """An ASGI application over this one's store; serve it, or mount it into another.

    It starts with its first request, and stops with its lifespan: see `lifespan`.
    """
    return site(app, config).asgi


def lifespan(asgi: Router) -> AbstractAsyncContextManager[object]:
    """The lifespan of an application from `create_app` that is mounted into another one: enter it
    in that one's own."""
    return asgi.lifespan_context(asgi)


def _routes(services: Services, gate: Gate, operations: Sequence[Operation]) -> list[BaseRoute]:
    """A route for each path; in the order of the table, which has what is asked most first."""
    paths: dict[str, list[Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, []).append(operation)
    return [_route(path, Endpoint(services, gate, group)) for path, group in paths.items()]


def _route(path: str, endpoint: Endpoint) -> Route:
    route = Route(path, endpoint)
    # Starlette's own pattern ends with a $, which has a path with a line feed behind it match too.
    route.path_regex = re.compile(route.path_regex.pattern.removesuffix("$") + r"\Z")
    return route
