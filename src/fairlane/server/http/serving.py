"""Serving an application in the loop that runs, until told to stop."""

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
from fairlane.server.http.limits import Limits
from fairlane.server.http.listening import BACKLOG
from fairlane.server.http.protocol import Protocol
from fairlane.server.http.watch import Watch
from fairlane.server.http.websocket import Socket

Told = Callable[[], object]

DEFAULT: Final = Limits()
DATE_SECONDS: Final = 1.0


async def serve(
    app: ASGIApp,
    sockets: Sequence[socket.socket],
    stop: asyncio.Event,
    limits: Limits = DEFAULT,
    *,
    on_ready: Told | None = None,
    on_stop: Told | None = None,
) -> None:
    """Answer requests on these sockets until `stop` is set, and close them.

    Then nobody is let in any more, and requests that run may finish for as long as the grace is.
    `on_stop` is called at once: whoever waits for something should be told to wait no more. When
    this is cancelled, it ends at once. Signals are the caller's.
    """
    async with lifespan(app) as state:
        watch = Watch(limits.within(_files()), state)
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
    """How many files this process may have open."""
    try:
        import resource  # noqa: PLC0415 (not everywhere)
    except ImportError:
        return sys.maxsize
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else most


def _config(app: ASGIApp, watch: Watch) -> uvicorn.Config:
    limits = watch.limits
    return uvicorn.Config(
        cast(Any, app),
        http=cast(type[asyncio.Protocol], partial(Protocol, watch=watch)),
        ws=cast(type[asyncio.Protocol], partial(Socket, limits=limits)),
        ws_max_size=limits.message_bytes,
        ws_ping_interval=limits.ping_seconds,
        ws_ping_timeout=limits.ping_seconds,
        ws_per_message_deflate=False,  # memory for every client, and bombs
        lifespan="off",  # ours raises what goes wrong
        interface="asgi3",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=cast(int, limits.grace_seconds),  # any number does
    )


async def _stop(stop: asyncio.Event, server: _Server, on_stop: Told | None) -> None:
    await stop.wait()
    server.stop()
    if on_stop is not None:
        on_stop()


class _Server(uvicorn.Server):
    """uvicorn's, without its signal handlers, and not looking ten times a second."""

    def __init__(self, config: uvicorn.Config, on_ready: Told | None) -> None:
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
            await self.on_tick(0)  # the date in answers
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), DATE_SECONDS)

    def stop(self, *, at_once: bool = False) -> None:
        """Let nobody in any more. `at_once`: and end the requests that run."""
        self.should_exit = True
        self._stopped.set()
        for connection in list(self.server_state.connections):
            connection.shutdown()  # so that what is answered from now on says that it is the last
        if at_once:
            self.force_exit = True
            for task in self.server_state.tasks:
                task.cancel()

    async def end(self) -> None:
        """Let what was cancelled end, and leave no connection behind."""
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.close()
        await asyncio.sleep(0)
