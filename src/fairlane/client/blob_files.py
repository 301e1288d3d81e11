"""Blobs as files: one file for each, in 256 folders."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fairlane.core.errors import BlobsUnavailable, InvalidBlobStore
from fairlane.core.ids import new_id

MARKER = "fairlane-blobs"
"""A file that tells a folder with blobs from a mount point without its file system."""
OWNER = "fairlane-owner"
_PARTIAL = ".partial-"


class FileBlobs:
    """A `BlobStore` in a folder, which may be shared by several machines and users."""

    kind = "file"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, key: str, content: bytes) -> None:
        path = self._path(key)
        mode = self._make_folder()
        if not (self.folder / MARKER).exists():
            _write(self.folder / MARKER, b"Payloads of Fairlane's tasks. Keep this file.\n", mode)
        with suppress(FileExistsError):
            path.parent.mkdir()
            path.parent.chmod(mode)
        _write(path, content, mode)

    def get(self, key: str) -> bytes | None:
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError:
            if (self.folder / MARKER).exists():
                return None
            raise BlobsUnavailable(
                f"There are no blobs in {self.folder}: it is not the folder that was written to, "
                "or its file system is not mounted."
            ) from None

    def delete(self, key: str, older_than: float) -> None:
        path = self._path(key)
        with suppress(FileNotFoundError):
            if _age(path.stat()) > older_than:
                path.unlink()

    def keys(self, older_than: float) -> Iterator[str]:
        folders = sorted(self.folder.glob("??")) if self.folder.exists() else []
        for folder in folders:
            for path in folder.iterdir():
                with suppress(FileNotFoundError):
                    if _age(path.stat()) <= older_than:
                        continue
                    if path.name.startswith(_PARTIAL):  # of a process that died while it wrote
                        path.unlink()
                    else:
                        yield path.name

    def adopt(self, owner: str) -> str:
        path = self.folder / OWNER
        mode = self._make_folder()
        with suppress(FileExistsError):
            _write(path, owner.encode(), mode, replace=False)
        return path.read_text(encoding="ascii")

    def _make_folder(self) -> int:
        """Make the folder if need be. Return its mode, which is that of all that is in it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return stat.S_IMODE(self.folder.stat().st_mode)

    def _path(self, key: str) -> Path:
        return self.folder / key[-2:] / key


def folder_of(url: str) -> Path:
    """Return the folder of file:///absolute/path. Raises InvalidBlobStore."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidBlobStore from None
    path = unquote(parts.path)
    if (
        parts.scheme.lower() != "file"
        or parts.netloc not in {"", "localhost"}
        or parts.query
        or parts.fragment
        or not path.startswith("/")
        or not path.strip("/")
        or "\0" in path
    ):
        # Do not quote the URL: it may contain a password if the user meant another service.
        raise InvalidBlobStore
    return Path(path)


def _write(path: Path, content: bytes, mode: int, *, replace: bool = True) -> None:
    """Write a file that is there as a whole or not at all, and survives a power failure.

    Those who may read and write its folder, whose mode this is, may do so with the file. Raises
    FileExistsError unless it may `replace` a file.
    """
    partial = path.with_name(_PARTIAL + new_id())
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            os.fchmod(file.fileno(), mode & 0o666)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            partial.replace(path)
        else:
            path.hardlink_to(partial)
    finally:
        partial.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _age(found: os.stat_result) -> float:
    return time.time() - found.st_mtime
