"""The files of the dashboard, ready to be served.

Their addresses contain a digest of all files, so that browsers can cache them for ever, and modules
can import each other by plain relative paths.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).parent / "static"
SHELL: Final = "index.html"
KINDS: Final[Mapping[str, bytes]] = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
"""What is served; other files there (licences, types) are for readers of the source."""

IMPORT: Final = re.compile(
    r"""(?:^|[;}])(?:import|export)\b[^;"']*?\bfrom\s*["'](\.[^"']+)["']""", re.M
)
"""A static import. Modules that are loaded on demand are imported in another way."""


class Asset(msgspec.Struct, frozen=True):
    """A file, plain and compressed."""

    kind: bytes
    body: bytes
    compressed: bytes


class Assets(msgspec.Struct, frozen=True):
    """The page, and the files that it loads, by their path below `assets/{version}/`."""

    version: str
    shell: Asset
    files: Mapping[str, Asset]


@cache
def assets() -> Assets:
    """Read all files, once."""
    found = {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in KINDS
    }
    template = found.pop(SHELL)
    version = _digest({SHELL: template, **found})
    return Assets(
        version,
        _asset(SHELL, _shell(template.decode(), version, found).encode()),
        {name: _asset(name, body) for name, body in found.items()},
    )


def _digest(files: Mapping[str, bytes]) -> str:
    digest = sha256()
    for name, body in files.items():
        digest.update(f"{name}\0{len(body)}\0".encode())
        digest.update(body)
    return digest.hexdigest()[:16]


def _shell(template: str, version: str, files: Mapping[str, bytes]) -> str:
    """Return the page with a preload of every module that it needs at first.

    Otherwise a browser would discover them one by one.
    """
    base = f"assets/{version}"
    modules = sorted(_imported("main.js", files))
    preloads = "\n    ".join(f'<link rel="modulepreload" href="{base}/{name}">' for name in modules)
    return template.replace("<!-- modules -->", preloads).replace("{assets}", base)


def _imported(name: str, files: Mapping[str, bytes]) -> set[str]:
    """Return the names of a module and of all that it imports statically, directly or not."""
    found = {name}
    waiting = [name]
    while waiting:
        folder = PurePosixPath(waiting.pop())
        for path in IMPORT.findall(files[folder.as_posix()].decode()):
            named = normpath(folder.parent / path)
            if named not in found:
                found.add(named)
                waiting.append(named)
    return found


def _asset(name: str, body: bytes) -> Asset:
    return Asset(KINDS[Path(name).suffix], body, gzip.compress(body, mtime=0))
