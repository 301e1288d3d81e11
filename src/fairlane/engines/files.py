"""Statements and scripts live in files of their own language, one file per verb."""

from __future__ import annotations

import re
from importlib.resources import files

from fairlane.core.states import NOWHERE, State
from fairlane.core.tally import UNTIMED

_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


_NUMBERS = {
    **{state.name: state.code for state in State},
    "NOWHERE": NOWHERE,
    "UNTIMED": UNTIMED,
}
_NUMBER = re.compile(rf"\b({'|'.join(_NUMBERS)})\b")


def with_names(sql: str) -> str:
    """Return a statement with the names of states replaced by the numbers that are stored."""
    return _NUMBER.sub(lambda name: str(_NUMBERS[name[0]]), sql)


def text(package: str, path: str) -> str:
    """A file that ships beside the code of `package`."""
    return files(package).joinpath(path).read_text(encoding="utf-8")


def statements(package: str, verb: str) -> dict[str, str]:
    """The statements of `sql/<verb>.sql`, by the `-- name:` line above each."""
    _, *parts = _NAMED.split(text(package, f"sql/{verb}.sql"))
    return {
        name: with_names(body.strip().removesuffix(";"))
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def migrations(package: str) -> list[str]:
    """The schema's steps in order; the n-th brings a store to version n."""
    steps = sorted(
        (entry for entry in files(package).joinpath("schema").iterdir()),
        key=lambda entry: entry.name,
    )
    return [step.read_text(encoding="utf-8") for step in steps if step.name.endswith(".sql")]
