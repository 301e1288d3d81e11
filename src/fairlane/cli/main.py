"""The `fairlane` command. Subcommands are imported when they are used, so that help is fast."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from fairlane import __version__
from fairlane.cli.errors import report


class Entry(NamedTuple):
    """The module of a command, and its line in the overview."""

    module: str
    help: str


SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Work": {
        "up": Entry("up", "Run a server and a worker, with sample tasks if the store is empty."),
        "server": Entry("server", "Serve the REST API, the worker protocol and the dashboard."),
        "worker": Entry("worker", "Run tasks until stopped."),
        "submit": Entry("submit", "Submit a task, or a file of tasks."),
        "schedule": Entry("schedule", "Submit tasks again and again: by a cron rule, or every 5m."),
    },
    "Tasks": {
        "status": Entry("tasks", "Show everything about a task."),
        "list": Entry("tasks", "List tasks, newest first."),
        "why": Entry("tasks", "Show why a waiting task waits."),
        "cancel": Entry("changes", "Cancel tasks, by id or by filter."),
        "replay": Entry("changes", "Make failed, dead or cancelled tasks ready again."),
        "delete": Entry("changes", "Delete tasks that have ended."),
        "workflow": Entry(
            "workflow", "List, show, cancel, resume or delete tasks that were stored together."
        ),
        "dlq": Entry("dlq", "List, analyse, replay or purge dead letters."),
    },
    "Limits and workers": {
        "pause": Entry("limits", "Start no more tasks of a queue, of a type, or at all."),
        "resume": Entry("limits", "Start tasks again after a pause."),
        "limit": Entry(
            "limits", "Show or set rates, concurrency, time limits and circuit breakers."
        ),
        "workers": Entry("workers", "List the workers."),
        "drain": Entry("workers", "Let a worker finish its running tasks and leave."),
    },
    "Store": {
        "stats": Entry("stats", "Show depths, ages, workers and throughput."),
        "top": Entry("top", "Watch the store live."),
        "events": Entry("events", "Show the latest transitions, or follow them."),
        "audit": Entry("audit", "Show who changed what, newest first."),
        "definition": Entry(
            "definition",
            "List and drop what workers have published about the types of their tasks.",
        ),
        "token": Entry("token", "Create, list, rotate and revoke access tokens."),
        "settings": Entry(
            "settings",
            "Show or set how tasks age, how long things are kept, and when tasks of dead workers "
            "return.",
        ),
        "encryption": Entry("encryption", "Show or set whether the store accepts plain text."),
        "migrate": Entry("migrate", "Create or migrate the store's schema."),
        "key": Entry("key", "Create a key that encrypts payloads and results."),
        "doctor": Entry("doctor", "Check the store and its settings; exit code 1 on errors."),
    },
}
ALIASES = {"retry": "replay"}
"""Other names of commands."""
ENTRIES = {name: entry for entries in SECTIONS.values() for name, entry in entries.items()}


class Root(click.Group):
    """Finds commands by name, and reports every error as one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        name = ALIASES.get(cmd_name, cmd_name)
        entry = ENTRIES.get(name)
        if entry is None:
            return None
        module = import_module(f"fairlane.cli.commands.{entry.module}")
        command: click.Command = getattr(module, f"{name}_command")
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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands without importing the commands."""
        found = [
            CompletionItem(name, help=entry.help)
            for name, entry in ENTRIES.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        kwargs["standalone_mode"] = False
        try:
            done = super().main(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (every exit code is decided in one place)
            sys.exit(report(error))
        # Click returns a number if a command, or --help, asked for an exit code.
        sys.exit(done if isinstance(done, int) else 0)


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Settings come from flags, then FAIRLANE_* variables, then fairlane.toml.",
)
@click.version_option(__version__, package_name="fairlane", message="fairlane %(version)s")
def fairlane() -> None:
    """A task queue with priority lanes that never starve."""


def main() -> NoReturn:
    """Run the command line."""
    try:
        fairlane.main(prog_name="fairlane")
    except SystemExit as end:
        if threading.active_count() > 1:
            from fairlane.cli.shutdown import end_despite_threads  # noqa: PLC0415 (rarely needed)

            end_despite_threads(end.code if isinstance(end.code, int) else 1)
        raise
