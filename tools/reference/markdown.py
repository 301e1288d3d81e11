"""The few parts of Markdown that the generated pages use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

NOTE: Final = "<!-- Written by `make docs` from the code; do not edit. -->"


def page(title: str, *parts: str) -> str:
    """Return a whole page: a title, and parts with an empty line between them."""
    return "\n\n".join([NOTE, f"# {title}", *parts]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def code(text: object) -> str:
    """Return text as it is typed; nothing for an empty one."""
    return f"`{text}`" if str(text) else ""


def sentence(docstring: str | None) -> str:
    """Return a docstring on one line."""
    return " ".join((docstring or "").split())


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
