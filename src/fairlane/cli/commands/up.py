"""Everything in one."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from fairlane.cli.apps import application
from fairlane.cli.commands.worker import log_to_stderr, loop_factory, work
from fairlane.cli.samples import samples
from fairlane.cli.settings import resolve
from fairlane.cli.trouble import note
from fairlane.client.app import Fairlane
from fairlane.core.filters import EVERYTHING
from fairlane.worker.config import Config


@click.command("up")
@click.option("--store", metavar="URL", help="The store. [default: sqlite:///fairlane.db]")
@click.option("--app", metavar="MODULE:APP", help="The application. [default: built-in handlers]")
@click.option("--concurrency", type=int, metavar="N", help="Tasks at once. [default: 10]")
def up_command(**flags: Any) -> None:
    """Run everything in one, with a few sample tasks if the store is empty.

    Today that is a worker; the server and its dashboard join it when they are there.
    """
    settings = resolve(flags)
    config = Config(concurrency=settings.concurrency, target=settings.app)
    app = application(settings)
    log_to_stderr()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_up(app, config, with_samples=settings.app is None))


async def _up(app: Fairlane, config: Config, *, with_samples: bool) -> None:
    if with_samples and not (await app.run(app.backend.ops.total(EVERYTHING))).count:
        tasks = samples()
        await app.run(app.backend.ops.submit(tasks))
        note(f"{len(tasks)} sample tasks are waiting in {app.url}.")
    note("Look around from another terminal: `fairlane top`, `fairlane list`. Ctrl-C stops it.")
    await work(app, config)
