"""The SQL files of this engine, ready to be sent."""

from __future__ import annotations

import re

from fairlane.engines import files

_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_ACCOUNTING = "/* TEMPLATE: accounting */"


def load(verb: str) -> dict[str, str]:
    """Return the statements of `sql/<verb>.sql` by name, without `--` comments.

    The template `accounting` is filled with what writes counters and journal.
    """
    accounting = files.part(_read("accounting")["accounting"], "accounting")
    return {name: sql.replace(_ACCOUNTING, accounting) for name, sql in _read(verb).items()}


def _read(verb: str) -> dict[str, str]:
    return {name: _strip(body) for name, body in files.statements(__package__, verb).items()}


def _strip(body: str) -> str:
    # The comment above a statement is at the end of the statement before.
    return _COMMENT.sub("", body + "\n").strip().removesuffix(";")
