"""Serving an application in the running event loop."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp

from fairlane.server.http.lifespan import lifespan
from fairlane.server.http.limits import ConnectionLimits
from fairlane.server.http.listening import BACKLOG
from fairlane.server.http.protocol import Protocol
from fairlane.server.http.watch import ConnectionWatch
from fairlane.server.http.websocket import Socket

Callback = Callable[[], object]

DEFAULT: Final = ConnectionLimits()
DATE_SECONDS: Final = 1.0


async def serve(
    app: ASGIApp,
    sockets: Sequence[socket.socket],
    stop: asyncio.Event,
    limits: ConnectionLimits = DEFAULT,
    *,
    on_ready: Callback | None = None,
    on_stop: Callback | None = None,
) -> None:
    """Serve requests on these sockets until `stop` is set, and close the sockets.

    Then no connection is accepted, and running requests may finish within the grace period.
    `on_stop` is called at once: it should end requests that wait for something. Cancelling this
    ends everything at once. The caller handles signals.
    """
    async with lifespan(app) as state:
        watch = ConnectionWatch(limits.within(_files()), state)
        server = _Server(_config(app, watch), on_ready)
        watch.start()
        serving = asyncio.create_task(server.serve(list(sockets)))
        stopping = asyncio.create_task(_stop(stop, server, on_stop))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.stop(at_once=True)
            await serving
            raise
        finally:
            stopping.cancel()
            await server.end()
            watch.stop()


def _files() -> int:
    """Return how many files this process may open."""
    try:
        import resource  # noqa: PLC0415 (not everywhere)
    except ImportError:
        return sys.maxsize
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else most


def _config(app: ASGIApp, watch: ConnectionWatch) -> uvicorn.Config:
    limits = watch.limits
    return uvicorn.Config(
        cast(Any, app),
        http=cast(type[asyncio.Protocol], partial(Protocol, watch=watch)),
        ws=cast(type[asyncio.Protocol], partial(Socket, watch=watch)),
        ws_max_size=limits.message_bytes,
        ws_ping_interval=limits.ping_seconds,
        ws_ping_timeout=limits.ping_seconds,
        ws_per_message_deflate=False,  # it costs memory per client, and allows decompression bombs
        lifespan="off",  # ours raises errors
        interface="asgi3",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=cast(int, limits.grace_seconds),  # a float works as well
    )


async def _stop(stop: asyncio.Event, server: _Server, on_stop: Callback | None) -> None:
    await stop.wait()
    server.stop()
    if on_stop is not None:
        on_stop()


class _Server(uvicorn.Server):
    """uvicorn's server, without its signal handlers, and without polling ten times a second."""

    def __init__(self, config: uvicorn.Config, on_ready: Callback | None) -> None:
        super().__init__(config)
        self._stopped = asyncio.Event()
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready()

    async def main_loop(self) -> None:
        while not self.should_exit:
            await self.on_tick(0)  # the Date header
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), DATE_SECONDS)

    def stop(self, *, at_once: bool = False) -> None:
        """Accept no more connections. `at_once`: also cancel running requests."""
        self.should_exit = True
        self._stopped.set()
        for connection in list(self.server_state.connections):
            connection.shutdown()  # so that further responses say that they are the last
        if at_once:
            self.force_exit = True
            for task in self.server_state.tasks:
                task.cancel()

    async def end(self) -> None:
        """Wait for cancelled requests, and close all connections."""
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.close()
        await asyncio.sleep(0)
