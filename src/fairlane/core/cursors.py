"""Cursors of lists that go by id: where an earlier list ended, and which list that was."""

from __future__ import annotations

from fairlane.core.errors import InvalidCursor
from fairlane.core.ids import dashed


def cursor_of(mark: str, item_id: str) -> str:
    """Return a cursor after this item. `mark`, one character, names the kind of list."""
    return mark + item_id.replace("-", "")


def item_of(mark: str, cursor: str | None) -> str | None:
    """Return the item that a cursor stands after; None: begin with the first."""
    if cursor is None:
        return None
    digits = cursor[1:] if isinstance(cursor, str) else ""
    if len(digits) != 32 or cursor[0] != mark or set(digits) - set("0123456789abcdef"):
        raise InvalidCursor
    return dashed(digits)
