"""Which pages are written from the code, and by which module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tools.reference import decisions, errors, events, http, metrics, python, settings, states

_DOCS: Final = Path(__file__).parents[2] / "docs"

PAGES: Final[Mapping[Path, Callable[[], str]]] = {
    _DOCS / "decisions" / "README.md": decisions.render,
    _DOCS / "reference" / "errors.md": errors.render,
    _DOCS / "reference" / "events.md": events.render,
    _DOCS / "reference" / "http.md": http.render,
    _DOCS / "reference" / "metrics.md": metrics.render,
    _DOCS / "reference" / "python.md": python.render,
    _DOCS / "reference" / "settings.md": settings.render,
    _DOCS / "reference" / "states.md": states.render,
}
