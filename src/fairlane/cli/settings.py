"""Settings of the command line: from flags, then FAIRLANE_* variables, then fairlane.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from fairlane.cli.errors import UsageError
from fairlane.cli.parsing import setting_text
from fairlane.cli.setting_values import (
    FILE,
    keys_in,
    read_aging,
    read_blobs,
    read_breaker,
    read_count,
    read_count_or_none,
    read_keys,
    read_log_format,
    read_names,
    read_port,
    read_requeue_spread,
    read_retention,
    read_seconds,
    read_start_within,
    read_switch,
    read_text,
    read_texts,
    read_token,
    secret_in,
    written_breaker,
    written_settings,
)
from fairlane.core import limits
from fairlane.core.backend import is_server
from fairlane.core.breaker import Breaker
from fairlane.core.sealing import Key
from fairlane.core.store_settings import REQUEUE_SPREAD

PREFIX = "FAIRLANE_"
DEFAULT_STORE = "sqlite:///fairlane.db"


class Settings(NamedTuple):
    """The settings of this run. A `store` or `app` that is None was not given."""

    store: str | None = None
    app: str | None = None
    concurrency: int = 10
    processes: int = 1
    queues: frozenset[str] | None = None
    capabilities: frozenset[str] = frozenset()
    lease: float = limits.LEASE_SECONDS
    grace: float = 30.0
    tasks_per_child: int | None = None
    breaker: Breaker | None = None
    pacemaker: bool = True
    """Whether a process keeps the worker's lease while a handler blocks the interpreter."""
    health_port: int | None = None
    health_host: str = "127.0.0.1"
    name: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    """Server processes."""
    allow_hosts: frozenset[str] | None = None
    allow_origins: frozenset[str] = frozenset()
    per_minute: int | None = None
    per_hour: int | None = None
    lanes_per_hour: int = limits.NEW_LANES
    start_within: float = limits.START_SECONDS
    """How long an HTTP worker may hold a task unstarted, if it reports starts; 0 for any time."""
    log_format: str = "text"
    log_transitions: bool = False
    remake: bool = True
    """Whether a store that was emptied is made again."""
    refuse_low: int = 10_000
    refuse_normal: int = 50_000
    refuse_all: int = 100_000
    """The number of queued tasks from which on submissions are refused; 0 for never."""
    compress_results: int | None = None
    """The size in bytes above which results are stored compressed."""
    encryption_keys: tuple[Key, ...] = ()
    encryption_key_file: str | None = None
    token: str | None = None
    token_file: str | None = None
    blobs: str | None = None
    """Where payloads above 256 KiB are kept."""
    aging: Mapping[str, float | None] = MappingProxyType({})
    retention: Mapping[str, float | None] = MappingProxyType({})
    """What a server or a worker sets in the store when it starts, in seconds by name."""
    requeue_spread: float | None = None
    """What it sets besides: over how many seconds the tasks of dead workers come back."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys that encrypt payloads and results, from a setting or from a file."""
        if self.encryption_key_file is None:
            return self.encryption_keys
        if self.encryption_keys:
            raise UsageError("Give either encryption_keys or encryption_key_file, not both.")
        return keys_in(Path(self.encryption_key_file))

    @property
    def server_token(self) -> str | None:
        """The access token if the store is a server, from a setting or from a file."""
        if self.store is None or not is_server(self.store):
            return None
        if self.token_file is None:
            return self.token
        if self.token is not None:
            raise UsageError("Give either token or token_file, not both.")
        return read_token(secret_in(Path(self.token_file), "token"), self.token_file)

    @property
    def store_settings(self) -> dict[str, float | None]:
        """The settings of the store that a server or a worker sets."""
        spread = self.requeue_spread
        rest = {} if spread is None else {REQUEUE_SPREAD: spread}
        return {**self.aging, **self.retention, **rest}

    @property
    def payload_bytes(self) -> int:
        """How large a payload may be."""
        return limits.PAYLOAD_BYTES if self.blobs is None else limits.BLOB_BYTES

    @property
    def store_url(self) -> str:
        """The store's URL. The default is a file in the working folder."""
        return self.store or DEFAULT_STORE

    def environment(self) -> dict[str, str]:
        """Return the settings as variables, for processes with the same settings.

        Secrets are left out: those processes read them where this one did.
        """
        values = {
            "store": self.store,
            "app": self.app,
            "concurrency": str(self.concurrency),
            "processes": str(self.processes),
            "queues": None if self.queues is None else ",".join(sorted(self.queues)),
            "capabilities": ",".join(sorted(self.capabilities)) or None,
            "lease": str(self.lease),
            "grace": str(self.grace),
            "tasks_per_child": None if self.tasks_per_child is None else str(self.tasks_per_child),
            "breaker": None if self.breaker is None else written_breaker(self.breaker),
            "health_port": None if self.health_port is None else str(self.health_port),
            "health_host": self.health_host,
            "name": self.name,
            "host": self.host,
            "port": str(self.port),
            "allow_hosts": ",".join(sorted(self.allow_hosts or ())) or None,
            "allow_origins": ",".join(sorted(self.allow_origins)) or None,
            "compress_results": (
                None if self.compress_results is None else str(self.compress_results)
            ),
            "per_minute": None if self.per_minute is None else str(self.per_minute),
            "per_hour": None if self.per_hour is None else str(self.per_hour),
            "lanes_per_hour": str(self.lanes_per_hour),
            "start_within": str(self.start_within),
            "blobs": self.blobs,
            "log_format": self.log_format,
            "log_transitions": "1" if self.log_transitions else None,
            "pacemaker": None if self.pacemaker else "0",
            "remake": None if self.remake else "0",
            "refuse_low": str(self.refuse_low),
            "refuse_normal": str(self.refuse_normal),
            "refuse_all": str(self.refuse_all),
            "aging": written_settings(self.aging),
            "retention": written_settings(self.retention),
            "requeue_spread": (
                None if self.requeue_spread is None else setting_text(self.requeue_spread)
            ),
        }
        return {PREFIX + name.upper(): value for name, value in values.items() if value is not None}


def resolve(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Return the settings from flags (None: not given), environment, and the file in a folder."""
    environ = os.environ if environ is None else environ
    written = _from_file((Path() if folder is None else folder) / FILE)
    found: dict[str, Any] = {}
    from_file: set[str] = set()
    for name, read in _READERS.items():
        variable = PREFIX + name.upper()
        given = (flags or {}).get(name)
        if given is not None:
            found[name] = read(given, "--" + name.replace("_", "-"))
        elif environ.get(variable):
            found[name] = read(environ[variable], variable)
        elif name in written:
            found[name] = read(written[name], f"{name} in {FILE}")
            from_file.add(name)
    tokens = {"token", "token_file"} & found.keys()
    # Of a token file, only the name stands in the file: it may be any file of the user's.
    written_tokens = {"token"} & from_file
    if "store" in from_file and is_server(found["store"]) and tokens - written_tokens:
        # Whoever wrote the file into this folder is not sent the user's token.
        raise UsageError(
            f"Tokens of the environment and in files are not sent to the store that {FILE} names, "
            f"because others may have written it: give the store as --store or {PREFIX}STORE."
        )
    return Settings(**found)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{FILE} cannot be read: {error}.") from None
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{FILE} is not valid TOML: {error}.") from None
    unknown = sorted(set(written) - set(_READERS))
    if unknown:
        raise UsageError(
            f"{FILE} has settings that do not exist: {', '.join(unknown)}. "
            f"There are {', '.join(_READERS)}."
        )
    return written


_READERS: dict[str, Callable[[object, str], Any]] = {
    "store": read_text,
    "app": read_text,
    "concurrency": read_count,
    "processes": read_count,
    "queues": read_names,
    "capabilities": read_names,
    "lease": read_seconds,
    "grace": read_seconds,
    "tasks_per_child": read_count,
    "breaker": read_breaker,
    "health_port": read_port,
    "health_host": read_text,
    "name": read_text,
    "host": read_text,
    "port": read_port,
    "workers": read_count,
    "allow_hosts": read_texts,
    "allow_origins": read_texts,
    "compress_results": read_count,
    "per_minute": read_count,
    "per_hour": read_count,
    "lanes_per_hour": read_count_or_none,
    "start_within": read_start_within,
    "log_format": read_log_format,
    "log_transitions": read_switch,
    "pacemaker": read_switch,
    "remake": read_switch,
    "refuse_low": read_count_or_none,
    "refuse_normal": read_count_or_none,
    "refuse_all": read_count_or_none,
    "encryption_keys": read_keys,
    "encryption_key_file": read_text,
    "token": read_token,
    "token_file": read_text,
    "blobs": read_blobs,
    "aging": read_aging,
    "retention": read_retention,
    "requeue_spread": read_requeue_spread,
}
