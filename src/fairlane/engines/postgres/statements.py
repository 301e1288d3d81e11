"""The SQL files of this engine, ready to be sent."""

from __future__ import annotations

import re

from fairlane.engines import files

_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)


def load(verb: str) -> dict[str, str]:
    """The statements of `sql/<verb>.sql` by name, without comments, each with its books kept."""
    books = _bare(files.statements(__package__, "accounting")["books"])
    return {
        name: _bare(body).replace("{books}", books)
        for name, body in files.statements(__package__, verb).items()
    }


def _bare(body: str) -> str:
    # A comment above one statement is found at the end of the one before.
    return _COMMENT.sub("", body + "\n").strip().removesuffix(";")
