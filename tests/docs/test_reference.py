"""The generated pages are what the code says: after a change, `make docs` writes them again."""

from pathlib import Path

import pytest

from tools.reference.pages import PAGES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_current(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page](), "run `make docs`"


def test_every_page_of_the_reference_is_generated_and_in_the_index() -> None:
    folder = ROOT / "docs" / "reference"
    index = (ROOT / "docs" / "index.md").read_text()
    assert set(folder.iterdir()) == {page for page in PAGES if page.parent == folder}
    assert [page.name for page in folder.iterdir() if f"(reference/{page.name})" not in index] == []


def test_a_number_has_one_decision() -> None:
    numbers = [path.name[:4] for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md")]
    assert sorted(numbers) == sorted(set(numbers))
