"""What the tools that check the dashboard leave to us."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fairlane.dashboard.assets import FOLDER
from tools.api_types import FILE, rendered

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


def test_every_module_is_checked() -> None:
    """`tsc` checks them all, strictly; a line that it must not look at says why."""
    for path, text in sources(".js"):
        assert text.startswith("// @ts-check\n"), path
        assert not re.search(r"@ts-nocheck|@ts-ignore|@ts-expect-error(?! \w)", text), path
        assert not re.search(r"@\w+[^\n]*\{[^\n]*\bany\b[^\n]*\}", text), path


def test_the_types_of_answers_are_those_of_the_openapi_document() -> None:
    assert FILE.read_text(encoding="utf-8") == rendered(), "run `make api-types`"
