"""The audit log: who changed what."""

from __future__ import annotations

import click

from fairlane.cli import shapes
from fairlane.cli.look import Cell, Column, console, table, when
from fairlane.cli.options import cursor_option, json_option, limit_option, store_option, utc_option
from fairlane.cli.session import opened
from fairlane.cli.trouble import note

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
    """Show who changed what, the newest first."""
    with opened(store) as app:
        page = app.run_sync(app.backend.ops.audit(limit, cursor))
    if as_json:
        entries = [shapes.audit(entry) for entry in page.entries]
        shapes.emit({"entries": entries, "next_cursor": page.next_cursor})
        return
    if not page.entries:
        note("Nothing was changed yet.")
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
