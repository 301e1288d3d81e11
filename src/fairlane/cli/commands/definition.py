"""Command `definition`: what workers have published about the types of their tasks."""

from __future__ import annotations

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.errors import CommandFailed, note
from fairlane.cli.options import cursor_option, json_option, store_option, utc_option
from fairlane.cli.render import Cell, Column, console, table, when
from fairlane.cli.store import open_store
from fairlane.core.audit import Action
from fairlane.core.definitions import Published
from fairlane.core.text import NAME_RULE, is_name, shown
from fairlane.wire.definitions import DefinitionList, view_of

_COLUMNS = (
    Column("type"),
    Column("queue", least=6),
    Column("version", right=True),
    Column("published", wide=75),
    Column("source", least=10, wide=95),
)


@click.group("definition")
def definition_command() -> None:
    """List and drop what workers have published about the types of their tasks."""


@definition_command.command("list")
@cursor_option
@store_option
@utc_option
@json_option
def list_command(cursor: str | None, store: str | None, utc: bool, as_json: bool) -> None:
    """List definitions, those first that have stayed the same for longest."""
    with open_store(store) as app:
        page = app.run_sync(app.backend.ops.definition_page(cursor))
    if as_json:
        json_output.emit(DefinitionList(tuple(map(view_of, page.definitions)), page.next_cursor))
        return
    if not page.definitions:
        note("No definitions: workers publish them when they start.")
        return
    out = console()
    for line in table(_COLUMNS, (_row(each, utc=utc) for each in page.definitions), out.width):
        out.print(line)
    if page.next_cursor is not None:
        note(f"There are more: --cursor {page.next_cursor}")


@definition_command.command("drop")
@click.argument("type", metavar="TYPE")
@store_option
def drop_command(type: str, store: str | None) -> None:
    """Delete the definition of a type: its tasks are submitted with the usual defaults.

    It comes back when a worker that has the type starts.
    """
    if not is_name(type):
        raise CommandFailed(f"A type has {NAME_RULE}. Got {shown(type)}.")
    with open_store(store) as app:
        dropped = app.run_sync(app.backend.ops.drop_definition(type))
        if dropped:
            record(app, Action.DROP_DEFINITION, type)
    if not dropped:
        raise CommandFailed(f"There is no definition of {type}: see `fairlane definition list`.")
    click.echo(f"The definition of {type} is gone.")


def _row(published: Published, *, utc: bool) -> tuple[Cell | str, ...]:
    definition = published.definition
    return (
        definition.type,
        definition.queue if isinstance(definition.queue, str) else "",
        str(published.version),
        Cell(when(published.published_at, utc=utc), "dim"),
        definition.source,
    )
