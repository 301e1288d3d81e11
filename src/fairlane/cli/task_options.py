"""Options that say what a task is like, for commands that submit tasks or schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.errors import UsageError
from fairlane.cli.parsing import duration, seconds_of, tags_of
from fairlane.core.definitions import Template
from fairlane.core.errors import AccessDenied
from fairlane.core.priority import priority_of
from fairlane.core.text import shown

if TYPE_CHECKING:
    from fairlane.cli.task_files import Templates
    from fairlane.client.app import Fairlane

priority_option = click.option(
    "--priority", metavar="P", help="critical, high, medium, low, or 0 to 10."
)
queue_option = click.option("--queue", metavar="NAME", help="The queue. [default: default]")
delay_option = click.option(
    "--delay", type=duration, metavar="TIME", help="Run it after 90 (seconds), 10m, 1.5h, 2d."
)
retries_option = click.option(
    "--max-retries", type=int, metavar="N", help="How often it is retried."
)
timeout_option = click.option(
    "--timeout", metavar="TIME", help="How long a run may take: 90, 10m, or none."
)
tag_option = click.option("--tag", multiple=True, metavar="K=V", help="A tag. May be repeated.")
capability_option = click.option(
    "--capability", multiple=True, metavar="NAME", help="A capability that a worker must have."
)
as_is_option = click.option(
    "--as-is",
    is_flag=True,
    help="Leave out the defaults and the check that workers have published for the type.",
)


def options_of(
    priority: str | None,
    queue: str | None,
    delay: float | None,
    max_retries: int | None,
    timeout: str | None,
    tag: tuple[str, ...],
    capability: tuple[str, ...],
) -> dict[str, Any]:
    """Return the options that were given, with the names of `new_task`."""
    options: dict[str, Any] = {
        "priority": None if priority is None else priority_of(priority),
        "queue": queue,
        "delay_seconds": delay,
        "max_retries": max_retries,
        "tags": tags_of(tag) or None,
        "required_capabilities": capability or None,
    }
    options = {name: value for name, value in options.items() if value is not None}
    if timeout is not None:
        options["timeout_seconds"] = None if timeout == "none" else _seconds(timeout)
    return options


def _seconds(timeout: str) -> float:
    seconds = seconds_of(timeout)
    if seconds is None:
        raise UsageError(f"--timeout is a duration like 90 or 10m, or none. Got {shown(timeout)}.")
    return seconds


def templates_of(app: Fairlane, type: str | None = None) -> Templates:
    """Return how tasks of a type are submitted, or of all types that workers have published."""
    ops = app.backend.ops
    try:
        if type is None:
            found = app.run_sync(ops.definitions())
        else:
            one = app.run_sync(ops.definition(type))
            found = [] if one is None else [one]
    except AccessDenied:  # the token may submit tasks, but not read what is known about types
        found = []
    return {each.definition.type: Template(each.definition.type, each.definition) for each in found}
