"""The SQL files of this engine, ready to be sent."""

from __future__ import annotations

import re

from fairlane.core.tally import BUCKETS_IN_MICROSECONDS
from fairlane.engines import files

_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_ACCOUNTING = "/* TEMPLATE: accounting */"
_BUCKETS = "/* TEMPLATE: buckets */"


def load(verb: str) -> dict[str, str]:
    """Return the statements of `sql/<verb>.sql` by name, without `--` comments.

    The template `accounting` is filled with what writes counters and journal, and `buckets` with
    the bounds of the histogram.
    """
    accounting = files.part(_read("accounting")["accounting"], "accounting")
    buckets = ", ".join(map(str, BUCKETS_IN_MICROSECONDS))
    return {
        name: sql.replace(_ACCOUNTING, accounting).replace(_BUCKETS, buckets)
        for name, sql in _read(verb).items()
    }


def _read(verb: str) -> dict[str, str]:
    return {name: _strip(body) for name, body in files.statements(__package__, verb).items()}


def _strip(body: str) -> str:
    # The comment above a statement is at the end of the statement before.
    return _COMMENT.sub("", body + "\n").strip().removesuffix(";")
