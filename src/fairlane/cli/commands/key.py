"""Keys for encryption at rest."""

from __future__ import annotations

import click

from fairlane.core.sealing import new_key


@click.command("key")
def key_command() -> None:
    """Make a key to encrypt payloads and results with.

    It is printed and kept nowhere: put it where only Fairlane's processes can read it, into
    FAIRLANE_ENCRYPTION_KEYS or a file that FAIRLANE_ENCRYPTION_KEY_FILE names.
    """
    click.echo(new_key().text)
