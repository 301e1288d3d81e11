"""Command `worker`: run tasks."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairlane.cli.apps import load_application
from fairlane.cli.errors import note
from fairlane.cli.hints import announce_stop
from fairlane.cli.logs import log_to_stderr
from fairlane.cli.options import (
    aging_option,
    blobs_option,
    compress_results_option,
    log_format_option,
    log_transitions_option,
    requeue_spread_option,
    retention_option,
)
from fairlane.cli.settings import PREFIX, Settings, resolve
from fairlane.cli.shutdown import KILLING_SECONDS, LEAVING_SECONDS, run, stop_on_signals
from fairlane.cli.supervised import LEFT, READY, follow_supervisor, give_sign
from fairlane.cli.supervisor import Supervisor
from fairlane.client.app import Fairlane
from fairlane.core.errors import StoreUnavailable
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker


@click.command("worker")
@click.option(
    "--store", "--server", metavar="URL", help="The store, or a server. [default: the app's own]"
)
@click.option("--app", metavar="MODULE:APP", help="The application. [default: built-in handlers]")
@click.option("--concurrency", type=int, metavar="N", help="Tasks at once. [default: 10]")
@click.option("--processes", type=int, metavar="N", help="Worker processes. [default: 1]")
@click.option("--queues", metavar="A,B", help="Only these queues. [default: all]")
@click.option("--capabilities", metavar="X,Y", help="The capabilities of this worker.")
@click.option(
    "--lease", metavar="S", help="Seconds without heartbeat until it is dead. [default: 30]"
)
@click.option("--grace", metavar="S", help="Seconds to finish tasks when stopped. [default: 30]")
@click.option("--tasks-per-child", type=int, metavar="N", help="Replace a child after N tasks.")
@click.option("--name", metavar="NAME", help="What the worker's id begins with.")
@click.option(
    "--breaker",
    metavar="N,T,C",
    help="After N failures within T seconds of a type that completes elsewhere, take no tasks for "
    "C seconds.",
)
@click.option(
    "--pacemaker/--no-pacemaker",
    default=None,
    help="A small process keeps the lease while a handler blocks the interpreter. [default: yes]",
)
@click.option("--health-port", metavar="N", help="Answer GET /health here, for liveness probes.")
@click.option("--health-host", metavar="ADDR", help="The address for it. [default: 127.0.0.1]")
@aging_option
@retention_option
@requeue_spread_option
@blobs_option
@compress_results_option
@log_format_option
@log_transitions_option
@click.option("--reload", is_flag=True, help="Restart when a .py file in this folder changes.")
@click.option("--supervised", is_flag=True, hidden=True)
def worker_command(reload: bool, supervised: bool, **flags: Any) -> None:
    """Run tasks until stopped.

    SIGTERM or Ctrl-C: it takes no more tasks, lets running ones finish, and leaves. A second
    signal: it leaves at once, and running tasks go back to their queues.
    """
    settings = resolve(flags)
    config = Config(  # raises InvalidWorker
        concurrency=settings.concurrency,
        queues=settings.queues,
        capabilities=settings.capabilities,
        lease=settings.lease,
        grace=settings.grace,
        target=settings.app,
        tasks_per_child=settings.tasks_per_child,
        name=settings.name,
        breaker=settings.breaker,
        pacemaker=settings.pacemaker,
        health_port=settings.health_port,
        health_host=settings.health_host,
    )
    if settings.processes > 1 or reload:
        log_to_stderr(settings)
        sys.exit(asyncio.run(_supervise(settings, reload=reload)))
    if supervised:
        follow_supervisor()
    app = load_application(settings)
    log_to_stderr(settings, supervised=supervised)
    run(work(app, config, supervised=supervised))


async def _supervise(settings: Settings, *, reload: bool) -> int:
    # Through the environment: all users can read a command line, and a URL may have a password.
    environ = {**os.environ, **settings.environment(), PREFIX + "PROCESSES": "1"}
    command = [sys.executable, "-m", "fairlane", "worker", "--supervised"]
    watched = Path.cwd() if reload else None
    patience = settings.grace + LEAVING_SECONDS + KILLING_SECONDS
    supervisor = Supervisor(command, environ, settings.processes, watched, patience=patience)
    return await supervisor.run()


async def work(app: Fairlane, config: Config, *, supervised: bool = False) -> None:
    """Run a worker until it is stopped. `supervised`: give the supervisor signs."""
    try:
        try:
            # Raise errors that waiting would not cure before waiting for anything.
            await app.run(app.backend.ops.verify())
        except StoreUnavailable as error:
            note(f"{error.message} The worker waits for it.")
        worker = Worker(app, config, partial(give_sign, READY) if supervised else None)
        stop = worker.stop
        if not supervised:  # the supervisor says it once for all
            stop = announce_stop([worker], config.grace, stop)
        with stop_on_signals(stop, config.grace):
            await worker.run(signals=False)
        if supervised:
            give_sign(LEFT)
    finally:
        await app.aclose()
