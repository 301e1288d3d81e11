"""What the pages about the code name, exists: files, functions, routes, layers."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from fairlane.server.routes import OPERATIONS

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.*/-]*/[\w.*/-]*|[\w*-]+\.(?:py|sql|lua|js|toml|md)")
DOTTED = re.compile(r"[a-z_]+(?:\.[A-Za-z_]+)+")
ROUTE = re.compile(r"(GET|POST|PATCH|PUT|DELETE) (/\S*)")
PAGES = [
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/glossary.md",
    "docs/guarantees.md",
    "docs/security.md",
    "docs/upgrading.md",
    "docs/decisions/0016-moves.md",
    "docs/decisions/0017-fewer-doors.md",
]


def unknown_names(text: str) -> list[str]:
    return [name for name in NAME.findall(CODE.sub("", text)) if not _is_known(name)]


def _is_known(name: str) -> bool:
    route = ROUTE.fullmatch(name)
    if route is not None:
        return any((each.method, each.path) == route.groups() for each in OPERATIONS)
    if PATH.fullmatch(name) and not name.startswith("/"):
        path = name.rstrip("/")
        return name == "fairlane.toml" or any(ROOT.glob(path)) or any((ROOT / "src").rglob(path))
    return not DOTTED.fullmatch(name) or _resolves(name.removeprefix("fairlane."))


def _resolves(name: str) -> bool:
    """Return whether a dotted name below `fairlane` is a module, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(["fairlane", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


@pytest.mark.parametrize("page", PAGES)
def test_names_exist(page: str) -> None:
    assert unknown_names((ROOT / page).read_text()) == []


def test_a_wrong_name_is_found() -> None:
    text = "`core/machine.py` `core/gone.py` `core.machine.decide` `core.machine.gone` "
    text += "`gone.decide` `engines/` `POST /api/v1/tasks` `POST /api/v1/gone` `queued`\n"
    text += "```\n`core/gone.py`\n```\n"
    assert unknown_names(text) == [
        "core/gone.py",
        "core.machine.gone",
        "gone.decide",
        "POST /api/v1/gone",
    ]


def test_the_layers_are_those_that_are_checked() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    (shown,) = re.findall(r"^```layers\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract, *_) = settings["tool"]["importlinter"]["contracts"]
    there = {path.stem for path in (ROOT / "src" / "fairlane").iterdir()}
    checked = [
        [name for name in re.findall(r"\w+", layer) if name in there and name != "__main__"]
        for layer in contract["layers"]
    ]
    assert [line.split(" | ") for line in shown.splitlines()] == [line for line in checked if line]


def test_the_glossary_is_in_order() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text()
    words = [word.lower() for word in re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)]
    assert len(words) > 50
    assert words == sorted(words)
