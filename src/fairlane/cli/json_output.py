"""What `--json` prints: snake_case keys that stay as they are, times in ISO 8601 UTC.

What the HTTP API shows as well looks the same there: see `fairlane.wire`. Here is the rest.
"""

from __future__ import annotations

from typing import Any

import click
import msgspec

from fairlane.cli.escapes import harmless_json
from fairlane.core.audit import Audit
from fairlane.core.model import Event
from fairlane.core.priority import shown_as
from fairlane.core.tokens import Token
from fairlane.wire.times import iso, iso_or_none


def emit(document: Any) -> None:
    """Print a document."""
    click.echo(_encoded(document, indent=2))


def emit_line(document: Any) -> None:
    """Print a document on a line of its own, at once: for streams of them."""
    click.echo(_encoded(document, indent=-1))


def _encoded(document: Any, indent: int) -> str:
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=indent)
    return harmless_json(encoded.decode("utf-8"))


def token(found: Token) -> dict[str, Any]:
    """An access token: what it is for, never its digest."""
    return {
        "token_id": found.token_id,
        "name": found.name,
        "kind": found.kind,
        "scopes": sorted(found.scopes),
        "created_at": iso(found.created_at),
        "expires_at": iso_or_none(found.expires_at),
        "parent_id": found.parent_id,
        "exempt": found.exempt,
    }


def audit(found: Audit) -> dict[str, Any]:
    """An entry of the audit log."""
    return {
        "entry_id": found.entry_id,
        "timestamp": iso(found.at),
        "actor": found.actor,
        "action": found.action,
        "subject": found.subject,
        "detail": msgspec.Raw(found.detail.encode()),
        "address": found.address,
    }


def event(found: Event) -> dict[str, Any]:
    """A transition."""
    return {
        "cursor": found.cursor,
        "event": found.verb,
        "timestamp": iso(found.at),
        "task_id": found.task_id,
        "type": found.type,
        "queue": found.queue,
        "priority": None if found.level is None else shown_as(found.level),
        "attempt": found.attempt,
        "worker_id": found.worker_id,
        "seconds": found.seconds,
    }
