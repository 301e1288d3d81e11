"""The server as an ASGI application: the route table, mounted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import Receive, Scope, Send

from fairlane.core.backend import Backend
from fairlane.server.auth import Authenticator
from fairlane.server.config import ServerConfig
from fairlane.server.endpoint import Endpoint, UnknownPath
from fairlane.server.operations import Operation
from fairlane.server.routes import OPERATIONS
from fairlane.server.services import Services
from fairlane.server.stream.websocket import LiveSocket


class _Paths(Router):
    """Starlette's router, which tries one route after another, behind a dictionary of the paths
    without parameters: they get most of the requests."""

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


def site(
    backend: Backend,
    config: ServerConfig | None = None,
    prepare: Callable[[], Awaitable[object]] | None = None,
) -> Site:
    """Return the server over a store. `prepare` migrates or verifies the store; it is called before
    the first operation."""
    services = Services(backend, ServerConfig() if config is None else config, prepare)
    auth = Authenticator(services.config, services.tokens)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        services.start()
        try:
            yield
        finally:
            await services.stop()

    socket = LiveSocket(services.hub, auth, services.tokens, services.start)
    asgi = _Paths(
        [*_routes(services, auth, OPERATIONS), WebSocketRoute("/ws", socket)],
        redirect_slashes=False,
        default=UnknownPath(auth),
        lifespan=lifespan,
    )
    return Site(asgi, services)


def _routes(
    services: Services, auth: Authenticator, operations: Sequence[Operation]
) -> list[BaseRoute]:
    """Return a route for each path, in the order of the table: the busiest ones come first."""
    paths: dict[str, list[Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, []).append(operation)
    return [_route(path, Endpoint(services, auth, group)) for path, group in paths.items()]


def _route(path: str, endpoint: Endpoint) -> Route:
    route = Route(path, endpoint)
    # Starlette's pattern ends with a $, which also matches a path that ends with a line feed.
    route.path_regex = re.compile(route.path_regex.pattern.removesuffix("$") + r"\Z")
    return route
