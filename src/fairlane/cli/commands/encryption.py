"""Command `encryption`: whether the store accepts plain text."""

from __future__ import annotations

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.options import json_option, store_option
from fairlane.cli.store import open_store
from fairlane.core.audit import Action
from fairlane.core.encryption import Encryption

_TEXTS = {
    Encryption.UNDECIDED: (
        "undecided: plain text is accepted until a process opens the store with encryption keys."
    ),
    Encryption.REQUIRED: (
        "required: processes without encryption keys cannot store payloads and results."
    ),
    Encryption.OPTIONAL: (
        "optional: processes with encryption keys encrypt, and plain text is accepted too."
    ),
}


@click.command("encryption")
@click.argument(
    "wanted",
    metavar="[required|optional]",
    required=False,
    type=click.Choice([Encryption.REQUIRED.value, Encryption.OPTIONAL.value]),
)
@store_option
@json_option
def encryption_command(wanted: str | None, store: str | None, as_json: bool) -> None:
    """Show or set whether the store accepts plain text.

    A store requires encryption as soon as a process opens it with keys. optional lets processes
    without keys store payloads and results again; no process undoes that. Use it until all
    processes have their keys, or before you take the keys away.
    """
    with open_store(store) as app:
        # Not as the application: with keys, that would itself let the store require encryption.
        backend = app.backend
        backend.run_sync(backend.ops.verify())
        if wanted is None:
            found = backend.run_sync(backend.ops.encryption())
        else:
            found = backend.run_sync(backend.ops.set_encryption(Encryption(wanted)))
            record(app, Action.SET_ENCRYPTION, encryption=wanted)
    if as_json:
        json_output.emit({"encryption": found.value})
    else:
        click.echo(_TEXTS[found])
