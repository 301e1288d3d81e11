"""Command `audit`: who changed what."""

from __future__ import annotations

import click

from fairlane.cli import json_output
from fairlane.cli.errors import note
from fairlane.cli.options import cursor_option, json_option, limit_option, store_option, utc_option
from fairlane.cli.render import Cell, Column, console, table, when
from fairlane.cli.store import open_store
from fairlane.wire.audit import encode_audit

COLUMNS = (
    Column("when"),
    Column("who", least=12),
    Column("did"),
    Column("to", least=24),
    Column("from", wide=110),
    Column("detail", wide=90, least=10),
)


@click.command("audit")
@limit_option
@cursor_option
@store_option
@utc_option
@json_option
def audit_command(
    limit: int, cursor: str | None, store: str | None, utc: bool, as_json: bool
) -> None:
    """Show who changed what, newest first."""
    with open_store(store) as app:
        page = app.run_sync(app.backend.ops.audit(limit, cursor))
    if as_json:
        json_output.emit(encode_audit(page))
        return
    if not page.entries:
        note("Nothing has been changed yet.")
        return
    rows = [
        (
            Cell(when(entry.at, utc=utc), "dim"),
            entry.actor,
            entry.action,
            entry.subject,
            Cell(entry.address, "dim"),
            Cell("" if entry.detail == "{}" else entry.detail, "dim"),
        )
        for entry in page.entries
    ]
    out = console()
    for line in table(COLUMNS, rows, out.width):
        out.print(line)
    if page.next_cursor is not None:
        note(f"There are more: --cursor {page.next_cursor}")
