"""SQL and Lua live in files of their own language, one file per verb.

An SQL file holds statements, each below a line `-- name: <name>`. Every statement parses as it
stands (`make check` parses them all). Names of states stand for the numbers that are stored. Where
Python changes a statement, comments mark the place:

    /* TEMPLATE: accounting */               Python inserts text here.
    /* BEGIN unique */ ... /* END unique */  Python keeps, removes or replaces this part.

`fill` inserts, removes and replaces; `part` returns a part, to repeat it or to put it into another
statement. Marks that stay are sent to the database, which ignores comments.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from fairlane.core import limits, trail
from fairlane.core.states import NOWHERE, State
from fairlane.core.tally import UNTIMED

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)

_NUMBERS = {
    **{state.name: state.code for state in State},
    "NOWHERE": NOWHERE,
    "UNTIMED": UNTIMED,
    "FIRST_RUNS": limits.FIRST_RUNS,
    "LAST_RUNS": limits.LAST_RUNS,
    "TRAIL_BYTES": trail.BYTES,
    "TRAIL_STATES": trail.STATES,
}
_NUMBER = re.compile(rf"\b({'|'.join(_NUMBERS)})\b")


def text(package: str, path: str) -> str:
    """Return a file that ships beside the code of `package`."""
    return files(package).joinpath(path).read_text(encoding="utf-8")


def split(sql: str) -> dict[str, str]:
    """Return the statements of an SQL file by name."""
    _, *parts = _NAME.split(sql)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def statements(package: str, verb: str) -> dict[str, str]:
    """Return the statements of `sql/<verb>.sql` by name, with numbers for the names of states."""
    return {
        name: with_numbers(body.strip().removesuffix(";"))
        for name, body in split(text(package, f"sql/{verb}.sql")).items()
    }


def with_numbers(sql: str) -> str:
    """Return a statement with the names of states replaced by the numbers that are stored."""
    return _NUMBER.sub(lambda name: str(_NUMBERS[name[0]]), sql)


@cache
def part(sql: str, name: str) -> str:
    """Return what stands between `/* BEGIN name */` and `/* END name */`."""
    _, (found, *_) = _divide(sql, name)
    return found.strip()


def fill(sql: str, **parts: str) -> str:
    """Return a statement with other text in its templates and parts; '' removes a part."""
    for name, text in parts.items():
        outside, _ = _divide(sql, name)
        sql = text.join(outside)
    return sql


def _divide(sql: str, name: str) -> tuple[list[str], list[str]]:
    """Return what stands outside the marks of this name, and what stands inside."""
    begin, end = f"/* BEGIN {name} */", f"/* END {name} */"
    first, *marked = sql.replace(f"/* TEMPLATE: {name} */", begin + end).split(begin)
    if not marked:
        raise ValueError(f"The statement has no part {name}:\n{sql}")
    inside, _, after = zip(*(piece.partition(end) for piece in marked), strict=True)
    return [first, *after], list(inside)


def migrations(package: str) -> list[str]:
    """Return the schema's steps in order; the n-th brings a store to version n."""
    steps = sorted(
        (entry for entry in files(package).joinpath("schema").iterdir()),
        key=lambda entry: entry.name,
    )
    return [step.read_text(encoding="utf-8") for step in steps if step.name.endswith(".sql")]
