"""Everything in one."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from fairlane.cli.apps import application
from fairlane.cli.ending import run, stopped_by_signals
from fairlane.cli.logs import log_to_stderr
from fairlane.cli.options import log_format_option, log_transitions_option
from fairlane.cli.samples import samples
from fairlane.cli.serving import Serving, address_of, check_store, check_tokens, config_of
from fairlane.cli.settings import Settings, resolve
from fairlane.cli.trouble import note
from fairlane.client.app import Fairlane
from fairlane.core.filters import EVERYTHING
from fairlane.server.http.listening import bind
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker


@click.command("up")
@click.option("--store", metavar="URL", help="The store. [default: sqlite:///fairlane.db]")
@click.option("--app", metavar="MODULE:APP", help="The application. [default: built-in handlers]")
@click.option("--concurrency", type=int, metavar="N", help="Tasks at once. [default: 10]")
@click.option("--host", metavar="HOST", help="Where to listen. [default: 127.0.0.1]")
@click.option("--port", type=int, metavar="N", help="The port; 0: a free one. [default: 8000]")
@log_format_option
@log_transitions_option
def up_command(**flags: Any) -> None:
    """Run everything in one, with a few sample tasks if the store is empty.

    A server and a worker, in one process.
    """
    settings = resolve(flags)
    config = Config(concurrency=settings.concurrency, target=settings.app)
    app = application(settings)
    check_store(app)
    log_to_stderr(settings)
    run(_up(app, config, settings))


async def _up(app: Fairlane, config: Config, settings: Settings) -> None:
    try:
        await check_tokens(app, settings)
        sockets = bind(settings.host, settings.port)
        if settings.app is None:
            await _fill(app)
        note(f"Fairlane runs {app.url} at {address_of(sockets)}. Ctrl-C stops it.")
        note("Look around from another terminal: `fairlane top`, `fairlane list`.")
        worker = Worker(app, config)
        serving = Serving(app, config_of(settings), sockets)

        def stop() -> None:
            worker.stop()
            serving.stop()

        with stopped_by_signals(stop, config.grace):
            await asyncio.gather(worker.run(signals=False), serving.run())
    finally:
        await app.aclose()


async def _fill(app: Fairlane) -> None:
    """Put a few tasks into a store that is empty."""
    if not (await app.run(app.backend.ops.total(EVERYTHING))).count:
        tasks = samples()
        await app.run(app.backend.ops.submit(tasks))
        note(f"{len(tasks)} sample tasks are waiting.")
