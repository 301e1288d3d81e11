"""Command `up`: a server and a worker in one process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
import msgspec

from fairlane.cli.apps import load_application
from fairlane.cli.errors import UsageError, note
from fairlane.cli.hints import announce_stop, watch_command
from fairlane.cli.logs import log_to_stderr
from fairlane.cli.options import (
    aging_option,
    blobs_option,
    log_format_option,
    log_transitions_option,
    requeue_spread_option,
    retention_option,
)
from fairlane.cli.serving import (
    Serving,
    address_of,
    check_blobs,
    check_store,
    check_tokens,
    config_of,
    listen,
)
from fairlane.cli.settings import Settings, resolve
from fairlane.cli.shutdown import run, stop_on_signals
from fairlane.client.app import Fairlane
from fairlane.core.filters import EVERYTHING
from fairlane.core.ids import new_ids
from fairlane.core.model import NewTask
from fairlane.core.submission import new_task
from fairlane.demo.shop import add_shop
from fairlane.demo.traffic import traffic
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker


@click.command("up")
@click.option("--store", metavar="URL", help="The store. [default: sqlite:///fairlane.db]")
@click.option("--app", metavar="MODULE:APP", help="The application. [default: built-in handlers]")
@click.option("--concurrency", type=int, metavar="N", help="Tasks at once. [default: 10]")
@click.option("--host", metavar="HOST", help="Where to listen. [default: 127.0.0.1]")
@click.option("--port", type=int, metavar="N", help="The port; 0: a free one. [default: 8000]")
@click.option("--demo", is_flag=True, help="Run a made-up shop, which keeps the dashboard busy.")
@aging_option
@retention_option
@requeue_spread_option
@blobs_option
@log_format_option
@log_transitions_option
def up_command(demo: bool, **flags: Any) -> None:
    """Run a server and a worker, with sample tasks if the store is empty.

    Both run in one process. The server has the dashboard.
    """
    settings = resolve(flags)
    if demo and settings.app is not None:
        raise UsageError("The demo is an application of its own: leave out --app, or --demo.")
    app = load_application(settings)
    if demo:
        add_shop(app)
    check_store(app)
    log_to_stderr(settings)
    run(_up(app, settings, demo=demo))


async def _up(app: Fairlane, settings: Settings, *, demo: bool) -> None:
    try:
        check_blobs(app)
        await check_tokens(app, settings)
        sockets = listen(settings)
        if settings.app is None and not demo:
            await _submit_samples(app)
        note(f"Fairlane runs {app.url} at {address_of(sockets)}. Ctrl-C stops it.")
        watch = watch_command(app.url)
        other = f", or run `{watch}` in another terminal" if watch else ""
        note(f"Open it in a browser{other}.")
        await _run(app, settings, sockets, demo=demo)
    finally:
        await app.aclose()


async def _run(
    app: Fairlane, settings: Settings, sockets: Sequence[socket.socket], *, demo: bool
) -> None:
    config = Config(concurrency=settings.concurrency, target=settings.app)
    workers = [Worker(app, each) for each in (_demo_workers(config) if demo else [config])]
    serving = Serving(app, config_of(settings), sockets)
    customers = asyncio.create_task(traffic(app)) if demo else None

    def stop() -> None:
        if customers is not None:
            customers.cancel()
        for worker in workers:
            worker.stop()
        serving.stop()

    with stop_on_signals(announce_stop(workers, config.grace, stop), config.grace):
        await asyncio.gather(*(each.run(signals=False) for each in workers), serving.run())


def _demo_workers(config: Config) -> list[Config]:
    """Return the workers of the demo. Each serves some of the queues."""
    named = partial(msgspec.structs.replace, config)
    return [
        named(
            name="front",
            queues=frozenset({"payments", "mail", "webhooks", "orders", "default"}),
        ),
        named(name="back", queues=frozenset({"media", "stock", "reports"})),
    ]


async def _submit_samples(app: Fairlane) -> None:
    """Submit sample tasks if the store is empty."""
    if not (await app.run(app.backend.ops.total(EVERYTHING))).count:
        tasks = _samples()
        await app.run(app.backend.ops.submit(tasks))
        note(f"{len(tasks)} sample tasks are waiting.")


def _samples() -> list[NewTask]:
    """Return tasks for the built-in handlers that end in different ways."""
    first, then = new_ids(2)
    tags = {"sample": "yes"}
    return [
        new_task("echo", {"say": "hello"}, tags=tags),
        *(new_task("sleep", {"seconds": 3 * n}, priority="low", tags=tags) for n in (1, 2, 3)),
        new_task("sleep", {"seconds": 5}, task_id=first, tags=tags),
        new_task("echo", {"say": "I waited"}, task_id=then, depends_on=[first], tags=tags),
        new_task("echo", {"say": "I am due in a minute"}, delay_seconds=60, tags=tags),
        new_task("sleep", {"seconds": "how long?"}, tags=tags),  # fails: not a number
        new_task("echo", {"say": "I came last and ran first"}, priority="critical", tags=tags),
    ]
