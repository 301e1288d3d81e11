"""Find and check the application and the tasks that a worker or its child process runs."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any

from fairlane.client.app import Fairlane
from fairlane.client.importing import import_failure
from fairlane.core.encryption import Encryption
from fairlane.core.errors import EncryptionRequired, InvalidWorker
from fairlane.core.flow import Op
from fairlane.core.text import shown
from fairlane.runtime.task import TaskFunction

Tasks = Mapping[str, TaskFunction[..., Any]]


def load(target: str) -> Fairlane:
    """Import the application at `module:attribute`. Raises InvalidWorker."""
    module, _, attribute = target.partition(":")
    if not module or not attribute:
        raise InvalidWorker(f"An application's address is module:attribute. Got {shown(target)}.")
    try:
        app = attrgetter(attribute)(import_module(module))
        if isinstance(app, Fairlane):
            app.discover()
    except Exception as error:
        raise InvalidWorker(import_failure(f"The application {target}", error)) from error
    if not isinstance(app, Fairlane):
        raise InvalidWorker(f"{target} is not a Fairlane application.")
    return app


def select_tasks(app: Fairlane, types: frozenset[str] | None) -> Tasks:
    """Return the application's tasks of these types (None: all). Raises InvalidWorker."""
    app.discover()
    if types is None:
        return app.tasks
    missing = types - app.tasks.keys()
    if missing:
        raise InvalidWorker(
            f"The application has no task {', '.join(map(shown, sorted(missing)))}: the types of a "
            "worker are names of its tasks."
        )
    return {name: app.tasks[name] for name in types}


async def check_keys(app: Fairlane, run: Callable[[Op[Encryption]], Awaitable[Encryption]]) -> None:
    """Raise EncryptionRequired if no result could be stored. A server has keys of its own."""
    if app.backend.driver.remote or app.encryption_keys:
        return
    if await run(app.backend.ops.encryption()) is Encryption.REQUIRED:
        raise EncryptionRequired


def check_processes(tasks: Tasks, target: str | None) -> None:
    """Raise InvalidWorker if a task that needs a child process could not run in one."""
    apart = [task for task in tasks.values() if task.terms.isolation == "process"]
    if not apart:
        return
    if sys.platform != "linux" and any(task.terms.memory_limit for task in apart):
        raise InvalidWorker("memory_limit needs Linux.")
    wanted = {task.name for task in apart}
    names = ", ".join(sorted(wanted))
    if target is None:
        raise InvalidWorker(
            f"{names}: a child process must import the application. Name it with "
            'Config(target="module:app") or `fairlane worker --app module:app`.'
        )
    missing = wanted - load(target).tasks.keys()
    if missing:
        raise InvalidWorker(
            f"The application {target} has no task {', '.join(sorted(missing))} when it is "
            'imported: define tasks at import time, not under `if __name__ == "__main__"`.'
        )
