"""What `--json` prints: stable snake_case keys, times in ISO 8601 UTC.

Documents that the HTTP API has as well come from `fairlane.wire`. Here are the others.
"""

from __future__ import annotations

from typing import Any

import click
import msgspec

from fairlane.cli.escapes import harmless_json
from fairlane.core.tokens import Token
from fairlane.wire.times import iso, iso_or_none


def emit(document: Any) -> None:
    """Print a document."""
    click.echo(_encoded(document, indent=2))


def emit_line(document: Any) -> None:
    """Print a document on one line, at once: for streams."""
    click.echo(_encoded(document, indent=-1))


def _encoded(document: Any, indent: int) -> str:
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=indent)
    return harmless_json(encoded.decode("utf-8"))


def token(found: Token) -> dict[str, Any]:
    """Return an access token, without its digest."""
    return {
        "token_id": found.token_id,
        "name": found.name,
        "kind": found.kind,
        "scopes": sorted(found.scopes),
        "created_at": iso(found.created_at),
        "expires_at": iso_or_none(found.expires_at),
        "parent_id": found.parent_id,
        "exempt": found.exempt,
        "subject": found.subject,
        "own": found.own,
        "queues": None if found.queues is None else sorted(found.queues),
        "tags": found.tags,
    }
