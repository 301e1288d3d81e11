"""The engines, chosen by URL.

sqlite:///tasks.db        a file, relative to the working folder (four slashes: absolute)
sqlite://                 memory, gone with the process
postgresql://user@host/db
redis://host:6379/0       also rediss:// (TLS) and unix:///path/to.sock
redis+sentinel://host:26379,host:26379/service/0      also rediss+sentinel:// (TLS)
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fairlane.core.backend import Backend
from fairlane.core.errors import DriverMissing, InvalidStoreURL
from fairlane.engines.sqlite.engine import connect as connect_sqlite

_EXTRAS = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "redis": "redis",
    "rediss": "redis",
    "redis+sentinel": "redis",
    "rediss+sentinel": "redis",
    "unix": "redis",
}


def open(url: str, **options: Any) -> Backend:
    """A backend for this URL. Nothing is connected before its first operation.

    Options: `aging` (an Aging) and `patience` (seconds to wait out troubles of the store) on every
    engine; `synchronous` on SQLite; `prefix` on Redis.
    """
    scheme = url.partition(":")[0].lower()  # some have more than urlsplit understands
    if scheme == "sqlite":
        return connect_sqlite(_sqlite_path(url), **options)
    extra = _EXTRAS.get(scheme)
    if extra is None:
        # Only the beginning is told: the rest may hold a password.
        raise InvalidStoreURL(f"{InvalidStoreURL.__doc__} Got {ascii(scheme)[:80]}.")
    try:
        engine = import_module(f"fairlane.engines.{extra}.engine")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("fairlane"):
            raise
        raise DriverMissing(
            f"The driver for {scheme}:// is not installed: pip install 'fairlane[{extra}]'."
        ) from None
    backend: Backend = engine.connect(url, **options)
    return backend


def _sqlite_path(url: str) -> Path | None:
    """sqlite:///relative, sqlite:////absolute, sqlite:// for memory: as SQLAlchemy has it."""
    parts = urlsplit(url)
    if parts.netloc or parts.query or parts.fragment:
        raise InvalidStoreURL(
            "A SQLite URL is sqlite:///relative/path.db, sqlite:////absolute/path.db or sqlite:// "
            f"for memory. Got {url!r}."
        )
    path = unquote(parts.path).removeprefix("/")
    return None if path in {"", ":memory:"} else Path(path)
