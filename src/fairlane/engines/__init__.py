"""Open an engine by its URL.

sqlite:///tasks.db        a file, relative to the working folder (four slashes: absolute)
sqlite://                 in memory, until the process ends
postgresql://user@host/db
redis://host:6379/0       also rediss:// (TLS) and unix:///path/to.sock
redis+sentinel://host:26379,host:26379/service/0      also rediss+sentinel:// (TLS)
http://host:8000          a Fairlane server, which owns the store; also https://
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from fairlane.core.backend import Backend, is_server
from fairlane.core.compression import compression_limit
from fairlane.core.errors import InvalidStoreURL, NotSupported
from fairlane.core.extras import import_extra
from fairlane.core.sealing import Key, keys_of
from fairlane.engines.sqlite.engine import connect as connect_sqlite

if TYPE_CHECKING:
    from fairlane.engines.sealing.driver import Keyring

_EXTRAS = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "redis": "redis",
    "rediss": "redis",
    "redis+sentinel": "redis",
    "rediss+sentinel": "redis",
    "redis+cluster": "redis",
    "rediss+cluster": "redis",
    "unix": "redis",
    "http": "http",
    "https": "http",
}


def open(
    url: str,
    *,
    encryption_keys: str | Iterable[str | Key] = (),
    compress_results: int | None = None,
    token: str | None = None,
    **options: Any,
) -> Backend:
    """Return a backend for this URL. The first operation connects.

    With `encryption_keys` the backend encrypts payloads, results and schedules with the first key,
    and decrypts with any of them. With `compress_results` results of more than so many bytes are
    stored compressed; every backend expands them. Further options: `patience` (seconds to retry
    while the store is unavailable) on every engine; `synchronous` on SQLite; `prefix` on Redis;
    `token` and `ca_file` for a server.
    """
    keys = keys_of(encryption_keys)
    if is_server(url):
        options["token"] = token
    elif token is not None:
        raise InvalidStoreURL("A token is only for a server, http:// or https://.")
    backend = _connect(url, options)
    ops, driver = backend.ops, backend.driver
    if driver.remote and (keys or compress_results is not None):
        raise NotSupported(
            "A server encrypts and compresses what it stores: give the keys to the server, and "
            "compress_results too. Omit them here."
        )
    if keys:
        sealing = _sealing("operations")
        ops = sealing.sealing_operations(ops, keys)
    if compress_results is not None:
        above = compression_limit(compress_results)
        # Around the encryption: what is encrypted cannot be compressed.
        name = "fairlane.engines.compression.operations"
        compression = import_extra(name, "compression", "The library for compression")
        ops = compression.compressing_operations(ops, above)
    return Backend(ops, driver)


def keyring(keys: Sequence[Key]) -> Keyring:
    """Return what encrypts and decrypts blobs that are not in the store."""
    ring: Keyring = _sealing("driver").Keyring(keys)
    return ring


def _sealing(name: str) -> ModuleType:
    name = f"fairlane.engines.sealing.{name}"
    return import_extra(name, "encryption", "The library for encryption")


def _connect(url: str, options: dict[str, Any]) -> Backend:
    scheme = url.partition(":")[0].lower()  # urlsplit cannot parse all URLs of Redis
    if scheme == "sqlite":
        return connect_sqlite(_sqlite_path(url), **options)
    extra = _EXTRAS.get(scheme)
    if extra is None:
        # Show only the scheme: the rest may contain a password.
        raise InvalidStoreURL(f"{InvalidStoreURL.__doc__} Got {ascii(scheme)[:80]}.")
    name = f"fairlane.engines.{extra}.engine"
    engine = import_extra(name, extra, f"The driver for {scheme}://")
    backend: Backend = engine.connect(url, **options)
    return backend


def _sqlite_path(url: str) -> Path | None:
    """Return the path of sqlite:///relative or sqlite:////absolute (as in SQLAlchemy), or None."""
    try:
        parts = urlsplit(url)
    except ValueError:  # an incomplete IPv6 address, for example
        raise InvalidStoreURL(_SQLITE_RULE) from None
    path = unquote(parts.path).removeprefix("/")
    in_memory = path in {"", ":memory:"}
    is_file = bool(Path(path).name) and "\0" not in path
    if parts.netloc or parts.query or parts.fragment or not (in_memory or is_file):
        # Do not quote the URL: it may contain a password if the user meant another engine.
        raise InvalidStoreURL(_SQLITE_RULE)
    return None if in_memory else Path(path)


_SQLITE_RULE = (
    "A SQLite URL is sqlite:///relative/path.db, sqlite:////absolute/path.db or sqlite:// for "
    "memory, without a host or options."
)
