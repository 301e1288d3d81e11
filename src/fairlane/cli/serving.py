"""Set up the HTTP server for the commands `server` and `up`."""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import socket
from collections.abc import Sequence
from functools import partial

from fairlane.cli.errors import CommandFailed, UsageError, note
from fairlane.cli.hints import port_advice
from fairlane.cli.settings import Settings
from fairlane.client.app import Fairlane
from fairlane.core.backend import is_server
from fairlane.core.errors import StoreUnavailable
from fairlane.core.ids import new_id
from fairlane.maintenance import BlobSweeper
from fairlane.server.app import site
from fairlane.server.auth import LOOPBACK
from fairlane.server.config import Admission, ServerConfig
from fairlane.server.http.listening import AddressUnavailable, bind, shown
from fairlane.server.http.serving import serve
from fairlane.server.mounting import prepare

PATIENCE = 2.0
"""How many seconds a start waits for a store that is unavailable. (Requests wait less.)"""
GARBAGE = 5_000
"""New objects after which Python looks for garbage. At its own 700 it does so several times for
every 50 requests that are under way, and finds what is still in use."""


def is_local(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_exposed(settings: Settings) -> bool:
    """Return whether other machines can reach the server, directly or through a proxy."""
    names = [settings.host, *(settings.allow_hosts or ())]
    return not all(is_local(name.strip("[]")) for name in names)


def config_of(settings: Settings) -> ServerConfig:
    """Return the server's configuration."""
    hosts = settings.allow_hosts
    return ServerConfig(
        tokens_required=is_exposed(settings),
        hosts=None if hosts is None else hosts | LOOPBACK,
        origins=settings.allow_origins,
        admission=Admission(
            low=settings.refuse_low or None,
            normal=settings.refuse_normal or None,
            all=settings.refuse_all or None,
            per_minute=settings.per_minute,
            per_hour=settings.per_hour,
            lanes_per_hour=settings.lanes_per_hour or None,
        ),
        start_within=settings.start_within or None,
    )


def check_store(app: Fairlane) -> None:
    """Raise UsageError if the store is itself a server."""
    if is_server(app.url):
        raise UsageError("A server has a store of its own: name that, not another server.")


def check_blobs(app: Fairlane) -> None:
    """Raise StoreError if blobs cannot be read here: a library is missing, or a setting."""
    app.payload_blobs()


async def check_tokens(app: Fairlane, settings: Settings) -> None:
    """Raise CommandFailed if other machines can reach the server and it has no tokens."""
    if not is_exposed(settings):
        return
    try:
        tokens = await app.run(app.backend.ops.tokens())
    except StoreUnavailable as error:
        note(f"{error.message} Until it is available, nobody is let in.")
        return
    if not tokens:
        named = settings.host if not is_local(settings.host) else "A server with --allow-hosts"
        raise CommandFailed(
            f"{named} can be reached from other machines, and no tokens are set up: make one with "
            "`fairlane token create`, or listen on 127.0.0.1 alone."
        )


def listen(settings: Settings) -> list[socket.socket]:
    """Listen where the settings say. If the port is taken, the error says how to choose another."""
    try:
        return bind(settings.host, settings.port)
    except AddressUnavailable as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE:
            raise CommandFailed(
                f"Another program listens on {shown(settings.host, settings.port)}: stop it, or "
                f"choose another port with {port_advice(settings.port)}."
            ) from error
        raise


def address_of(sockets: Sequence[socket.socket]) -> str:
    """Return the URL of the server."""
    host, port = sockets[0].getsockname()[:2]
    return f"http://{shown(host, port)}"


class Serving:
    """A server. The first `stop` lets requests finish, the second stops it at once."""

    def __init__(
        self, app: Fairlane, config: ServerConfig, sockets: Sequence[socket.socket]
    ) -> None:
        self._app = app
        self._site = site(app.backend, config, partial(prepare, app))
        self._sockets = sockets
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until stopped."""
        asgi, services = self._site
        self._task = asyncio.current_task()
        gc.freeze()  # these objects stay for ever: collections during requests can skip them
        gc.set_threshold(GARBAGE)
        sweeping = None
        if self._app.blobs is not None:
            sweeping = asyncio.create_task(BlobSweeper(self._app, new_id()).run())
        try:
            await serve(asgi, self._sockets, self._stop, on_stop=services.stopping.set)
        except asyncio.CancelledError:
            if not self._stop.is_set():
                raise
        finally:
            if sweeping is not None:
                sweeping.cancel()
                await asyncio.gather(sweeping, return_exceptions=True)

    def stop(self) -> None:
        """Stop."""
        if self._stop.is_set() and self._task is not None:
            self._task.cancel()
        self._stop.set()
