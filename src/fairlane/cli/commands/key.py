"""Command `key`: keys for encryption at rest."""

from __future__ import annotations

import click

from fairlane.core.sealing import new_key


@click.command("key")
def key_command() -> None:
    """Create a key that encrypts payloads and results.

    The key is printed and not stored. Put it where only Fairlane's processes can read it: into
    FAIRLANE_ENCRYPTION_KEYS, or into a file that FAIRLANE_ENCRYPTION_KEY_FILE names.
    """
    click.echo(new_key().text)
