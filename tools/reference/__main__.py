"""Write the generated pages: `python -m tools.reference`."""

from tools.reference.pages import PAGES

for path, render in PAGES.items():
    path.parent.mkdir(exist_ok=True)
    path.write_text(render(), encoding="utf-8")
