"""The files of the dashboard, as a browser gets them.

Their addresses carry a digest of them all, so that a browser may keep them for good, and modules
can name each other by plain relative paths.
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
"""What is handed out; all else in there (licences) is for those who read the sources."""

IMPORT: Final = re.compile(
    r"""(?:^|[;}])(?:import|export)\b[^;"']*?\bfrom\s*["'](\.[^"']+)["']""", re.M
)
"""How modules name others. Those that are loaded only when they are needed are named otherwise."""


class Asset(msgspec.Struct, frozen=True):
    """A file, as it is and compressed."""

    kind: bytes
    body: bytes
    compressed: bytes


class Assets(msgspec.Struct, frozen=True):
    """The page, and all that it loads by their paths below `assets/{version}/`."""

    version: str
    shell: Asset
    files: Mapping[str, Asset]


@cache
def assets() -> Assets:
    """All files, read once."""
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
    """The page, which names the modules of its frame at once: a browser would learn of them one by
    one."""
    base = f"assets/{version}"
    modules = sorted(_imported("main.js", files))
    preloads = "\n    ".join(f'<link rel="modulepreload" href="{base}/{name}">' for name in modules)
    return template.replace("<!-- modules -->", preloads).replace("{assets}", base)


def _imported(name: str, files: Mapping[str, bytes]) -> set[str]:
    """A module and all that it does not run without, by their names."""
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
