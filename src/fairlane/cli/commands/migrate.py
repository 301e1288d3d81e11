"""Command `migrate`: the store's schema."""

from __future__ import annotations

import click

from fairlane.cli import json_output
from fairlane.cli.errors import CommandFailed
from fairlane.cli.options import json_option, store_option
from fairlane.cli.store import open_store


@click.command("migrate")
@store_option
@click.option(
    "--public-view",
    is_flag=True,
    help="Also create the view public.tasks, so that SQL at a plain prompt finds it. PostgreSQL.",
)
@json_option
def migrate_command(store: str | None, public_view: bool, as_json: bool) -> None:
    """Create or migrate the store's schema.

    An empty store gets the schema of this version. An older one is migrated, and keeps its tasks.
    """
    with open_store(store, prepare=True) as app:
        backend = app.backend
        if backend.driver.remote:
            raise CommandFailed(
                "A server migrates its store when it starts: run this with the store's own URL, or "
                "restart the server."
            )
        before = backend.run_sync(backend.ops.version())
        now = backend.run_sync(backend.ops.migrate())
        if public_view:
            backend.run_sync(backend.ops.publish_view())
    if as_json:
        json_output.emit({"previous_version": before, "version": now})
    elif before == now:
        click.echo(f"The store is up to date: schema version {now}.")
    else:
        click.echo(f"The store went from schema version {before} to {now}.")
