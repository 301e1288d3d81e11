"""The engines, chosen by URL.

sqlite:///tasks.db        a file, relative to the working folder (four slashes: absolute)
sqlite://                 memory, gone with the process
postgresql://user@host/db
redis://host:6379/0       also rediss:// (TLS) and unix:///path/to.sock
redis+sentinel://host:26379,host:26379/service/0      also rediss+sentinel:// (TLS)
http://host:8000          a Fairlane server, which has the store; also https://
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from fairlane.core.backend import Backend, is_server
from fairlane.core.errors import DriverMissing, InvalidStoreURL, NotSupported
from fairlane.core.sealing import Key, keys_of
from fairlane.engines.sqlite.engine import connect as connect_sqlite

_EXTRAS = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "redis": "redis",
    "rediss": "redis",
    "redis+sentinel": "redis",
    "rediss+sentinel": "redis",
    "unix": "redis",
    "http": "http",
    "https": "http",
}


def open(
    url: str,
    *,
    encryption_keys: str | Iterable[str | Key] = (),
    token: str | None = None,
    **options: Any,
) -> Backend:
    """A backend for this URL. Nothing is connected before its first operation.

    With `encryption_keys` it seals payloads, results and schedules by the first of them, and opens
    what any of them has sealed. Further options: `aging` (an Aging) and `patience` (seconds to wait
    out troubles of the store) on every engine; `synchronous` on SQLite; `prefix` on Redis. A server
    (which has its own `aging`) takes `token` and `ca_file`.
    """
    keys = keys_of(encryption_keys)
    if is_server(url):
        options["token"] = token
    elif token is not None:
        raise InvalidStoreURL("A token is for a server, http:// or https://: a store takes none.")
    backend = _connected(url, options)
    if not keys:
        return backend
    if backend.driver.remote:
        raise NotSupported(
            "What a server stores is encrypted by the server: give it the keys, and leave them "
            "out here."
        )
    sealing = _module("sealing.operations", "encryption", "What encrypts")
    return Backend(sealing.sealing_operations(backend.ops, keys), backend.driver)


def _connected(url: str, options: dict[str, Any]) -> Backend:
    scheme = url.partition(":")[0].lower()  # some have more than urlsplit understands
    if scheme == "sqlite":
        return connect_sqlite(_sqlite_path(url), **options)
    extra = _EXTRAS.get(scheme)
    if extra is None:
        # Only the beginning is told: the rest may hold a password.
        raise InvalidStoreURL(f"{InvalidStoreURL.__doc__} Got {ascii(scheme)[:80]}.")
    engine = _module(f"{extra}.engine", extra, f"The driver for {scheme}://")
    backend: Backend = engine.connect(url, **options)
    return backend


def _module(name: str, extra: str, what: str) -> ModuleType:
    """A module here that needs what an extra brings."""
    try:
        return import_module(f"fairlane.engines.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("fairlane"):
            raise
        raise DriverMissing(f"{what} is not installed: pip install 'fairlane[{extra}]'.") from None


def _sqlite_path(url: str) -> Path | None:
    """sqlite:///relative, sqlite:////absolute, sqlite:// for memory: as SQLAlchemy has it."""
    try:
        parts = urlsplit(url)
    except ValueError:  # half of an IPv6 address, say
        raise InvalidStoreURL(_SQLITE_RULE) from None
    path = unquote(parts.path).removeprefix("/")
    in_memory = path in {"", ":memory:"}
    is_file = bool(Path(path).name) and "\0" not in path
    if parts.netloc or parts.query or parts.fragment or not (in_memory or is_file):
        # Not quoted: whoever mistook the engine may have written a password into it.
        raise InvalidStoreURL(_SQLITE_RULE)
    return None if in_memory else Path(path)


_SQLITE_RULE = (
    "A SQLite URL is sqlite:///relative/path.db, sqlite:////absolute/path.db or sqlite:// for "
    "memory, without a host or options."
)
