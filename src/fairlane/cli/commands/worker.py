"""Running tasks."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fairlane.cli.apps import application
from fairlane.cli.settings import PREFIX, Settings, resolve
from fairlane.cli.supervisor import Supervisor
from fairlane.cli.trouble import note, scrubbed
from fairlane.client.app import Fairlane
from fairlane.core.errors import StoreUnavailable
from fairlane.worker.config import Config
from fairlane.worker.worker import Worker


@click.command("worker")
@click.option("--store", metavar="URL", help="The store. [default: the app's own]")
@click.option("--app", metavar="MODULE:APP", help="The application. [default: built-in handlers]")
@click.option("--concurrency", type=int, metavar="N", help="Tasks at once. [default: 10]")
@click.option("--processes", type=int, metavar="N", help="Worker processes. [default: 1]")
@click.option("--queues", metavar="A,B", help="Only these queues. [default: all]")
@click.option("--capabilities", metavar="X,Y", help="What tasks may ask of this worker.")
@click.option("--reload", is_flag=True, help="Begin anew when a .py file changes here.")
@click.option("--supervised", is_flag=True, hidden=True)
def worker_command(reload: bool, supervised: bool, **flags: Any) -> None:
    """Run tasks until told to stop.

    SIGTERM or Ctrl-C: takes no more tasks, lets what runs finish, leaves. Twice: leaves at once,
    and gives back what runs.
    """
    settings = resolve(flags)
    Config(concurrency=settings.concurrency)  # which refuses what cannot be
    if settings.processes > 1 or reload:
        sys.exit(asyncio.run(_supervise(settings, reload=reload)))
    if supervised:
        _follow_supervisor()
    app = application(settings)
    log_to_stderr(supervised=supervised)
    config = Config(
        concurrency=settings.concurrency,
        queues=settings.queues,
        capabilities=settings.capabilities,
        target=settings.app,
    )
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(work(app, config))


async def _supervise(settings: Settings, *, reload: bool) -> int:
    # Through the environment: a command line, with the password in a URL, is there for all to read.
    environ = {**os.environ, **settings.environment(), PREFIX + "PROCESSES": "1"}
    command = [sys.executable, "-m", "fairlane", "worker", "--supervised"]
    watched = Path.cwd() if reload else None
    return await Supervisor(command, environ, settings.processes, watched).run()


async def work(app: Fairlane, config: Config) -> None:
    """Run a worker until it is told to stop."""
    try:
        try:
            # What is wrong for good is told before anything is waited for.
            await app.run(app.backend.ops.controls())
        except StoreUnavailable as error:
            note(f"{error.message} The worker waits for it.")
        await Worker(app, config).run()
    finally:
        await app.aclose()


def _follow_supervisor() -> None:
    """Stop when the supervisor is gone: then this process's standard input ends."""

    def wait() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="fairlane-supervisor", daemon=True).start()


class _Formatter(logging.Formatter):
    """Messages may quote what a store said, and that may quote its URL."""

    def format(self, record: logging.LogRecord) -> str:
        return scrubbed(super().format(record))


def log_to_stderr(*, supervised: bool = False) -> None:
    """The worker's own messages go to stderr, unless the application set up logging itself."""
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    process = " [%(process)d]" if supervised else ""
    handler.setFormatter(_Formatter(f"%(asctime)s{process} %(levelname)-7s %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger("fairlane").setLevel(logging.INFO)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop
