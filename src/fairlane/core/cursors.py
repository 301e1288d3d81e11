"""Cursors of lists that go by id: where an earlier list ended, and which list that was."""

from __future__ import annotations

from fairlane.core.errors import InvalidCursor
from fairlane.core.ids import dashed


def cursor_of(mark: str, item_id: str) -> str:
    """The cursor that goes on after this item. `mark`, a character, tells lists apart."""
    return mark + item_id.replace("-", "")


def item_of(mark: str, cursor: str | None) -> str | None:
    """The item that a cursor goes on after, None to begin with the first."""
    if cursor is None:
        return None
    digits = cursor[1:] if isinstance(cursor, str) else ""
    if len(digits) != 32 or cursor[0] != mark or set(digits) - set("0123456789abcdef"):
        raise InvalidCursor
    return dashed(digits)
