"""What the formatter of the dashboard's sources leaves to us."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fairlane.dashboard.assets import FOLDER

LONGEST_LINE = 110


def sources(suffix: str) -> Iterator[tuple[Path, str]]:
    """Our own files; what is vendored stays as it was published."""
    for path in sorted(FOLDER.rglob(f"*{suffix}")):
        if path.parent.name != "vendor":
            yield path.relative_to(FOLDER), path.read_text(encoding="utf-8")


def test_lines_are_short() -> None:
    """The formatter leaves templates alone: to htm, a line break is no space."""
    long = [
        f"{path}:{number}"
        for suffix in (".js", ".css")
        for path, text in sources(suffix)
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert long == []
