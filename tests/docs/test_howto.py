"""The how-to pages do what they say: each is carried out from top to bottom (see `kit`), with the
wheel and what the page says it needs, by a user without the rights of root."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import newcomer
from tests.docs.kit import BLOCK, ROOT, folder

DOCS = ROOT / "docs"
PAGES = [*sorted((DOCS / "howto").glob("*.md")), DOCS / "engines.md"]

pytestmark = pytest.mark.timeout(110)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page(page: Path) -> None:
    text = page.read_text()
    python = newcomer.environment(newcomer.requirements_of(text)) / "python"
    with newcomer.home() as home, folder(home, str(python), newcomer.identity()) as here:
        for kind, block in BLOCK.findall(text):
            here.carry_out(kind, block)


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    linked = [page.relative_to(DOCS) for page in PAGES]
    assert [str(page) for page in linked if f"({page})" not in index] == []
    assert len(PAGES) > 10


def test_what_a_page_shows_has_to_appear(tmp_path: Path) -> None:
    with folder(tmp_path) as here:
        here.carry_out("console", "$ echo one two\n$ x=three; echo $x\none …\nthree\n")
        with pytest.raises(AssertionError):
            here.carry_out("console", "$ echo one\ntwo\n")
        with pytest.raises(AssertionError):
            here.carry_out("python", "raise SystemExit(1)")


# -- what stands on the pages and is not run -------------------------------------------------------


def test_the_systemd_unit_starts_a_worker_that_can_be() -> None:
    page = (ROOT / "docs" / "howto" / "production.md").read_text()
    (command,) = re.findall(r"^ExecStart=\S*/fairlane (.*)$", page, re.MULTILINE)
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", page, re.MULTILINE)
    (grace,) = re.findall(r"--grace (\d+)", command)
    assert int(stop) > int(grace) + 15
    shown = subprocess.run(
        [sys.executable, "-m", "fairlane", "worker", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(re.findall(r"--[a-z-]+", command)) <= set(re.findall(r"--[a-z-]+", shown.stdout))


# -- what a page needs, and how long it can take ---------------------------------------------------

PROVIDED = {
    *sys.stdlib_module_names,
    "fairlane",
    "h11",
    "msgspec",
    "shop",
    "starlette",
    "websockets",
}
"""What can be imported where only the package is installed, and the file that most pages make."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_it_needs(page: Path) -> None:
    text = page.read_text()
    commands = re.findall("pip install ([^`]*)`", text)
    code = "".join(block for kind, block in BLOCK.findall(text) if kind == "python")
    imported = re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE)
    own = re.findall(r"^# (\w+)\.py$", code, re.MULTILINE)
    needed = set(imported) - PROVIDED - set(own)
    assert [name for name in needed if not any(name in each for each in commands)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_waits_for_ever(page: Path) -> None:
    text = page.read_text()
    console = "".join(block for kind, block in BLOCK.findall(text) if kind == "console")
    assert not re.search(r"^\$ (until|while) ", console, re.MULTILINE)
    # Without a delay, each pause of curl is twice as long as the one before: minutes in all.
    assert console.count("--retry ") == console.count("--retry-delay 1 ")
