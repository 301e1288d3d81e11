"""Which pages are written from the code, and by which module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tools.reference import decisions, states

_DOCS: Final = Path(__file__).parents[2] / "docs"

PAGES: Final[Mapping[Path, Callable[[], str]]] = {
    _DOCS / "decisions" / "README.md": decisions.render,
    _DOCS / "reference" / "states.md": states.render,
}
