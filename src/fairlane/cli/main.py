"""The `fairlane` command. Commands are imported when they are asked for, so that help is quick."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click

from fairlane import __version__
from fairlane.cli.errors import report


class Entry(NamedTuple):
    """Where a command lives, and what the overview says of it."""

    module: str
    help: str


SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Work": {
        "up": Entry("up", "Run everything in one, with a few sample tasks if the store is empty."),
        "server": Entry("server", "Serve the REST API, the worker protocol and the dashboard."),
        "worker": Entry("worker", "Run tasks until told to stop."),
        "submit": Entry("submit", "Submit a task, or a file of them."),
    },
    "Tasks": {
        "status": Entry("tasks", "Show everything about a task."),
        "list": Entry("tasks", "List tasks, the newest first."),
        "why": Entry("tasks", "Say why a waiting task waits."),
        "cancel": Entry("changes", "Cancel tasks, by id or by filter."),
        "retry": Entry("changes", "Make tasks ready again that failed, died or were cancelled."),
        "delete": Entry("changes", "Delete tasks that have ended."),
        "dlq": Entry("dlq", "Look into the dead letters, replay or purge them."),
    },
    "Flow": {
        "pause": Entry("limits", "Stop claims of a queue, a type or everything."),
        "resume": Entry("limits", "Let claims go on."),
        "limit": Entry("limits", "Show or set rates, concurrency and circuit breakers."),
        "workers": Entry("workers", "List the workers."),
        "drain": Entry("workers", "Let a worker finish what it runs, and leave."),
    },
    "Store": {
        "stats": Entry("stats", "Show depths, ages, workers and throughput."),
        "top": Entry("top", "Watch the store live."),
        "events": Entry("events", "Show what happened lately, or as it happens."),
        "audit": Entry("audit", "Show who changed what, the newest first."),
        "token": Entry("token", "Make, list, replace and revoke access tokens."),
        "migrate": Entry("migrate", "Make the store ready for this version of Fairlane."),
        "key": Entry("key", "Make a key to encrypt payloads and results with."),
        "doctor": Entry("doctor", "Check the store and its settings; exit code 1 if unwell."),
    },
}
ENTRIES = {name: entry for entries in SECTIONS.values() for name, entry in entries.items()}


class Root(click.Group):
    """Finds commands by name, and lets no error out but as a sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"fairlane.cli.commands.{entry.module}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        longest = max(map(len, ENTRIES))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(longest), entry.help) for name, entry in entries.items()]
                )

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        kwargs["standalone_mode"] = False
        try:
            done = super().main(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (every way out is decided in one place)
            sys.exit(report(error))
        # Click answers with a number where a command, or --help, asked for an exit code.
        sys.exit(done if isinstance(done, int) else 0)


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Settings come from flags, then FAIRLANE_STORE and the like, then fairlane.toml.",
)
@click.version_option(__version__, package_name="fairlane", message="fairlane %(version)s")
def fairlane() -> None:
    """A task queue with priority lanes that never starve."""


def main() -> NoReturn:
    """The program."""
    fairlane.main(prog_name="fairlane")
