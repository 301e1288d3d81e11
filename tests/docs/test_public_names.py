"""What pages show to users is public: their code imports nothing from inside the package."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
PUBLIC = {
    "fairlane",
    "fairlane.errors",
    "fairlane.server",  # mounted into another application
    "fairlane.tasklib",
    "fairlane.testing",  # a pytest plugin
    "fairlane.tq",
}
FOR_CONTRIBUTORS = {"architecture.md", "glossary.md"}
"""These and the decisions describe the inside."""

IMPORT = re.compile(r"^\s*(?:from|import) (fairlane(?:\.\w+)*)", re.MULTILINE)
INSIDE = re.compile(r"\bfairlane(?:\.[a-z_]\w*){2,}")


def private_imports(text: str) -> list[str]:
    return [name for name in IMPORT.findall(text) if name not in PUBLIC]


def inner_names(text: str) -> list[str]:
    """Names of more than one dot. (Those of loggers have one: `fairlane.worker`.)"""
    return [name for name in INSIDE.findall(text) if ".".join(name.split(".")[:2]) not in PUBLIC]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_what_is_public_can_be_imported(name: str) -> None:
    assert import_module(name).__name__ == name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_imports_what_is_public(page: Path) -> None:
    text = page.read_text()
    assert private_imports(text) == []
    if page.name not in FOR_CONTRIBUTORS and page.parent.name != "decisions":
        assert inner_names(text) == []


def test_what_is_inside_is_found() -> None:
    text = """
        from fairlane.client.testing import MemoryApp
        from fairlane import errors
        import fairlane.worker
        The logger `fairlane.worker`, the class `fairlane.core.errors.StoreFull`.
    """
    assert private_imports(text) == ["fairlane.client.testing", "fairlane.worker"]
    assert inner_names(text) == ["fairlane.client.testing", "fairlane.core.errors"]
