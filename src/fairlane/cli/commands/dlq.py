"""Command `dlq`: dead letters, which are tasks without retries left."""

from __future__ import annotations

import click
import msgspec

from fairlane.cli import json_output
from fairlane.cli.bulk_changes import change_filtered
from fairlane.cli.commands.changes import (
    DELETE,
    all_option,
    ids_argument,
    keep_option,
    priority_option,
    replay,
    yes_option,
)
from fairlane.cli.commands.tasks import page_of, show_page
from fairlane.cli.errors import note
from fairlane.cli.options import (
    cursor_option,
    filter_options,
    json_option,
    limit_option,
    need_choice,
    store_option,
    utc_option,
)
from fairlane.cli.render import Cell, Column, console, count, table, when
from fairlane.cli.store import open_store
from fairlane.core.filters import Filter
from fairlane.wire.figures import analysis_of
from fairlane.wire.filters import DEAD

COLUMNS = (
    Column("count", right=True),
    Column("type", least=8),
    Column("code", least=6, wide=70),
    Column("message", least=16),
    Column("last seen", wide=90),
    Column("retriable", right=True, wide=105),
    Column("example", wide=140),
)


@click.group("dlq")
def dlq_command() -> None:
    """List, analyse, replay or purge dead letters."""


@dlq_command.command("list")
@filter_options(states=False)
@limit_option
@cursor_option
@store_option
@utc_option
@json_option
def list_command(
    chosen: Filter, limit: int, cursor: str | None, store: str | None, utc: bool, as_json: bool
) -> None:
    """List dead letters, newest first."""
    with open_store(store) as app:
        page = page_of(app, _dead(chosen), limit, cursor)
    show_page(page, utc=utc, as_json=as_json)


@dlq_command.command("analysis")
@store_option
@utc_option
@json_option
def analysis_command(store: str | None, utc: bool, as_json: bool) -> None:
    """Group dead letters by type, error code and shape of message."""
    with open_store(store) as app:
        found = app.run_sync(app.backend.ops.dlq_analysis())
    if as_json:
        json_output.emit(analysis_of(found))
        return
    if not found.groups:
        note("No dead letters.")
        return
    out = console()
    rows = [
        (
            count(group.count, "red"),
            group.type,
            group.code or "",
            group.shape,
            Cell(when(group.last_seen, utc=utc), "dim"),
            f"{group.retriable_share:.0%}",
            group.example,
        )
        for group in found.groups
    ]
    for line in table(COLUMNS, rows, out.width):
        out.print(line)
    if not found.complete:
        note(f"Only the newest {found.analysed:,} were analysed.")


@dlq_command.command("replay")
@ids_argument
@filter_options(states=False)
@all_option
@priority_option
@keep_option
@yes_option
@store_option
@json_option
def replay_command(
    task_ids: tuple[str, ...],
    chosen: Filter,
    everything: bool,
    new_priority: str | None,
    keep_retry_count: bool,
    yes: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Make dead letters ready again."""
    need_choice(task_ids, chosen, everything=everything)
    replay(
        task_ids,
        _dead(chosen),
        new_priority=new_priority,
        reset=not keep_retry_count,
        yes=yes,
        store=store,
        as_json=as_json,
    )


@dlq_command.command("purge")
@filter_options(states=False)
@all_option
@yes_option
@store_option
@json_option
def purge_command(
    chosen: Filter, everything: bool, yes: bool, store: str | None, as_json: bool
) -> None:
    """Delete dead letters for good."""
    need_choice((), chosen, everything=everything)
    with open_store(store) as app:
        apply = app.backend.ops.delete_where
        change_filtered(app, DELETE, _dead(chosen), apply, yes=yes, as_json=as_json)


def _dead(chosen: Filter) -> Filter:
    return msgspec.structs.replace(chosen, states=DEAD)
