"""Command `server`: serve over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any

import click

from fairlane.cli.apps import load_named
from fairlane.cli.errors import note
from fairlane.cli.logs import log_to_stderr
from fairlane.cli.options import (
    aging_option,
    blobs_option,
    compress_results_option,
    log_format_option,
    requeue_spread_option,
    retention_option,
)
from fairlane.cli.serving import (
    PATIENCE,
    Serving,
    address_of,
    check_blobs,
    check_store,
    check_tokens,
    config_of,
    listen,
)
from fairlane.cli.settings import Settings, resolve
from fairlane.cli.shutdown import KILLING_SECONDS, LEAVING_SECONDS, run, stop_on_signals
from fairlane.cli.supervised import LEFT, READY, follow_supervisor, give_sign
from fairlane.cli.supervisor import Supervisor
from fairlane.client.app import Fairlane
from fairlane.core.errors import StoreUnavailable
from fairlane.server.http.limits import ConnectionLimits
from fairlane.server.http.listening import inherited


@click.command("server")
@click.option("--store", metavar="URL", help="The store. [default: sqlite:///fairlane.db]")
@click.option("--app", metavar="MODULE:APP", help="An application, for the store that it names.")
@click.option("--host", metavar="HOST", help="Where to listen. [default: 127.0.0.1]")
@click.option("--port", type=int, metavar="N", help="The port; 0: a free one. [default: 8000]")
@click.option("--workers", type=int, metavar="N", help="Server processes. [default: 1]")
@click.option("--allow-hosts", metavar="A,B", help="Accepted host names; * for any.")
@click.option("--allow-origins", metavar="URL,…", help="Accepted origins, behind a proxy.")
@click.option("--per-minute", type=int, metavar="N", help="Submissions per client and minute.")
@click.option("--per-hour", type=int, metavar="N", help="Submissions per client and hour.")
@click.option(
    "--lanes-per-hour",
    type=int,
    metavar="N",
    help="New types, queues and capabilities per client and hour; 0: any. [default: 1000]",
)
@click.option(
    "--refuse-low",
    type=int,
    metavar="N",
    help="Refuse low priority from N queued tasks on; 0: off.",
)
@click.option(
    "--refuse-normal", type=int, metavar="N", help="Refuse all below high from N queued tasks on."
)
@click.option(
    "--refuse-all",
    type=int,
    metavar="N",
    help="Refuse all but exempt tokens from N queued tasks on.",
)
@click.option(
    "--start-within",
    type=float,
    metavar="SECONDS",
    help="For HTTP workers that report starts: the time from poll to start; 0: any. [default: 30]",
)
@aging_option
@retention_option
@requeue_spread_option
@blobs_option
@compress_results_option
@log_format_option
@click.option("--descriptors", hidden=True, help="Listening sockets of the supervisor.")
def server_command(descriptors: str | None, **flags: Any) -> None:
    """Serve the REST API, the worker protocol and the dashboard.

    Other machines can reach it only if there are tokens: see `fairlane token create`.
    """
    settings = resolve(flags)
    supervised = descriptors is not None
    log_to_stderr(settings, supervised=supervised)
    app = _application(settings)
    check_store(app)
    if descriptors is not None:
        follow_supervisor()
        sockets = [inherited(int(number)) for number in descriptors.split(",")]
        give_sign(READY)
        run(_serve(app, settings, sockets, supervised=True))
        return
    run(_check(app, settings))
    sockets = listen(settings)
    note(f"Fairlane serves {app.url} at {address_of(sockets)}. Ctrl-C stops it.")
    if settings.workers > 1:
        sys.exit(asyncio.run(_supervise(settings, sockets)))
    run(_serve(app, settings, sockets))


def _application(settings: Settings) -> Fairlane:
    if settings.app is not None:
        return load_named(settings.app, settings)
    app = Fairlane(
        settings.store_url,
        patience=PATIENCE,
        encryption_keys=settings.keys,
        blobs=settings.blobs,
        compress_results=settings.compress_results,
        remake=settings.remake,
    )
    app.store_settings = settings.store_settings
    return app


async def _check(app: Fairlane, settings: Settings) -> None:
    """Raise errors that waiting would not cure before anything is served."""
    try:
        await app.run(app.backend.ops.controls())
    except StoreUnavailable as error:
        note(f"{error.message} The server waits for it.")
    try:
        check_blobs(app)
        await check_tokens(app, settings)
    finally:
        await app.aclose()


async def _serve(
    app: Fairlane,
    settings: Settings,
    sockets: Sequence[socket.socket],
    *,
    supervised: bool = False,
) -> None:
    serving = Serving(app, config_of(settings), sockets)
    try:
        with stop_on_signals(serving.stop, ConnectionLimits().grace_seconds):
            await serving.run()
        if supervised:
            give_sign(LEFT)
    finally:
        await app.aclose()


async def _supervise(settings: Settings, sockets: Sequence[socket.socket]) -> int:
    # Through the environment: all users can read a command line, and a URL may have a password.
    environ = {**os.environ, **settings.environment()}
    descriptors = [each.fileno() for each in sockets]
    listed = ",".join(map(str, descriptors))
    command = [sys.executable, "-m", "fairlane", "server", "--descriptors", listed]
    supervisor = Supervisor(
        command,
        environ,
        settings.workers,
        kind="server",
        descriptors=descriptors,
        patience=ConnectionLimits().grace_seconds + LEAVING_SECONDS + KILLING_SECONDS,
    )
    return await supervisor.run()
