"""The server as a part of somebody's web application."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeVar

from starlette.routing import Router

from fairlane.client.app import Fairlane
from fairlane.core.backend import Backend, Driver
from fairlane.core.flow import Op
from fairlane.core.store import Operations
from fairlane.server.app import site
from fairlane.server.config import ServerConfig

T = TypeVar("T")


class _AppBackend(Backend):
    """The store of an application, looked up at each use: `Fairlane.inline` replaces it."""

    def __init__(self, app: Fairlane) -> None:
        self._app = app

    @property
    def ops(self) -> Operations:  # type: ignore[override]
        return self._app.backend.ops

    @property
    def driver(self) -> Driver:  # type: ignore[override]
        return self._app.backend.driver

    @property
    def has_tokens(self) -> bool:
        return self._app.backend.has_tokens

    @has_tokens.setter
    def has_tokens(self, has_tokens: bool) -> None:
        self._app.backend.has_tokens = has_tokens

    async def run(self, op: Op[T]) -> T:
        return await self._app.run(op)


def create_app(app: Fairlane, config: ServerConfig | None = None) -> Router:
    """Return an ASGI application over this one's store; serve it, or mount it into another one.

    It starts with its first request, and stops with its lifespan: see `lifespan`.
    """
    return site(_AppBackend(app), config, partial(prepare, app)).asgi


def lifespan(asgi: Router) -> AbstractAsyncContextManager[object]:
    """Return the lifespan of an application from `create_app`. If that one is mounted into another,
    enter it in the other one's lifespan."""
    return asgi.lifespan_context(asgi)


async def prepare(app: Fairlane) -> None:
    """Migrate or verify an application's store, as its first operation does."""
    await app.run(app.backend.ops.controls())
