"""docs/decisions/README.md: the decisions and their states, from the pages themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tools.reference.markdown import page, table

FOLDER: Final = Path(__file__).parents[2] / "docs" / "decisions"
_HEAD: Final = re.compile(r"# (\d{4}): (.+)\n\nDate: (\d{4}-\d\d-\d\d)\. State: (.+)\.\n")


def render() -> str:
    """Return the page. Raises ValueError if a decision does not begin as the template does."""
    return page(
        "Decisions",
        "Why things are as they are, half a page each. A decision that no longer holds stays, and "
        "its state names the one that replaced it. [The template](0000-template.md) is for the "
        "next one.",
        table(
            ("", "decision", "state", "date"),
            [
                _row(path)
                for path in sorted(FOLDER.glob("[0-9]*.md"))
                if "template" not in path.name
            ],
        ),
    )


def _row(path: Path) -> tuple[str, ...]:
    head = _HEAD.match(path.read_text(encoding="utf-8"))
    if head is None or not path.name.startswith(head[1]):
        raise ValueError(f"{path.name} does not begin as the template does.")
    number, title, date, state = head.groups()
    return (number, f"[{title}]({path.name})", state, date)
