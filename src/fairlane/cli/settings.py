"""Settings of the command line: from flags, then FAIRLANE_* variables, then fairlane.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from fairlane.cli.errors import UsageError
from fairlane.cli.parsing import breaker_of, pairs_of, setting_text, settings_of
from fairlane.core import limits
from fairlane.core.backend import is_server
from fairlane.core.breaker import Breaker
from fairlane.core.breaker import checked as checked_breaker
from fairlane.core.errors import InvalidBlobStore, InvalidKey, InvalidLimit
from fairlane.core.sealing import Key, keys_of
from fairlane.core.store_settings import AGING, RETENTION
from fairlane.core.text import NAME_RULE, is_name, is_plain, shown

FILE = "fairlane.toml"
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
    start_within: float = limits.START_SECONDS
    """How long an HTTP worker may hold a task unstarted, if it reports starts; 0 for any time."""
    log_format: str = "text"
    log_transitions: bool = False
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

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys that encrypt payloads and results, from a setting or from a file."""
        if self.encryption_key_file is None:
            return self.encryption_keys
        if self.encryption_keys:
            raise UsageError("Give either encryption_keys or encryption_key_file, not both.")
        return _keys_in(Path(self.encryption_key_file))

    @property
    def server_token(self) -> str | None:
        """The access token if the store is a server, from a setting or from a file."""
        if self.store is None or not is_server(self.store):
            return None
        if self.token_file is None:
            return self.token
        if self.token is not None:
            raise UsageError("Give either token or token_file, not both.")
        return _token(_secret_in(Path(self.token_file), "token"), self.token_file)

    @property
    def store_settings(self) -> dict[str, float | None]:
        """The settings of the store that a server or a worker sets."""
        return {**self.aging, **self.retention}

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
            "breaker": None if self.breaker is None else _written_breaker(self.breaker),
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
            "start_within": str(self.start_within),
            "blobs": self.blobs,
            "log_format": self.log_format,
            "log_transitions": "1" if self.log_transitions else None,
            "refuse_low": str(self.refuse_low),
            "refuse_normal": str(self.refuse_normal),
            "refuse_all": str(self.refuse_all),
            "aging": _written(self.aging),
            "retention": _written(self.retention),
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
    for name, read in _READERS.items():
        variable = PREFIX + name.upper()
        given = (flags or {}).get(name)
        if given is not None:
            found[name] = read(given, "--" + name.replace("_", "-"))
        elif environ.get(variable):
            found[name] = read(environ[variable], variable)
        elif name in written:
            found[name] = read(written[name], f"{name} in {FILE}")
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


def _text(value: object, source: str) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise UsageError(f"{source} is a text. Got {shown(value)}.")


def _count(value: object, source: str) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value[:20])
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise UsageError(f"{source} is a whole number, 1 or more. Got {shown(value)}.")


def _count_or_none(value: object, source: str) -> int:
    """Read a number; 0 means none, which environment variables cannot express otherwise."""
    return 0 if value in (0, "0") and value is not False else _count(value, source)


def _seconds(value: object, source: str) -> float:
    """Read seconds. The worker checks their range."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise UsageError(f"{source} is a number of seconds. Got {shown(value)}.")


def _start_within(value: object, source: str) -> float:
    """Read seconds; 0 means any time."""
    seconds = _seconds(value, source)
    if 0 <= seconds <= limits.LEASE_SECONDS_LONGEST:
        return seconds
    raise UsageError(
        f"{source} is 0 (off) to {limits.LEASE_SECONDS_LONGEST:,.0f} seconds. Got {shown(value)}."
    )


def _port(value: object, source: str) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value[:20])
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 65_535:
        return value
    raise UsageError(f"{source} is a port: 0 to 65535, 0 for any free one. Got {shown(value)}.")


def _breaker(value: object, source: str) -> Breaker:
    try:
        return checked_breaker(breaker_of(_text(value, source)))
    except (UsageError, InvalidLimit) as error:
        raise UsageError(f"{source}: {error.message}") from None


def _written_breaker(breaker: Breaker) -> str:
    return f"{breaker.failures},{breaker.within:g},{breaker.cooldown:g}"


def _log_format(value: object, source: str) -> str:
    if value in ("text", "json"):
        return str(value)
    raise UsageError(f"{source} is text or json. Got {shown(value)}.")


def _switch(value: object, source: str) -> bool:
    """Read a switch: 0 or 1 in a variable, false or true in the file."""
    if value in ("0", "1"):
        return value == "1"
    if isinstance(value, bool):
        return value
    raise UsageError(
        f"{source} is 1 for yes or 0 for no, in {FILE} true or false. Got {shown(value)}."
    )


def _texts(value: object, source: str) -> frozenset[str]:
    """Read a list of texts: a,b or, in the file, ["a", "b"]."""
    texts = _listed(value)
    if texts and all(isinstance(text, str) and text.isprintable() for text in texts):
        return texts
    raise UsageError(f"{source} lists texts like a,b. Got {shown(value)}.")


def _listed(value: object) -> frozenset[str]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    return frozenset(value) if isinstance(value, Iterable) else frozenset()


def _names(value: object, source: str) -> frozenset[str]:
    """Read a list of names: a,b or, in the file, ["a", "b"]."""
    names = _listed(value)
    if names and all(is_name(name) for name in names):
        return names
    raise UsageError(
        f"{source} lists names like a,b; each has {NAME_RULE}. "
        f"Got {shown(sorted(map(str, names)) or value)}."
    )


def _keys(value: object, source: str) -> tuple[Key, ...]:
    """Read a secret. Errors do not show it."""
    if not isinstance(value, str | list):
        raise UsageError(f"{source} lists keys like id:base64.")
    try:
        return keys_of(value)
    except InvalidKey as error:
        raise UsageError(f"{source}: {error.message}") from None


def _aging(value: object, source: str) -> dict[str, float | None]:
    return _store_settings(value, source, AGING)


def _retention(value: object, source: str) -> dict[str, float | None]:
    return _store_settings(value, source, RETENTION)


def _store_settings(value: object, source: str, names: Sequence[str]) -> dict[str, float | None]:
    """Read settings of the store: a=10m,b=never or, in the file, a table."""
    if not isinstance(value, str | Mapping):
        raise UsageError(f"{source} lists settings like {names[0]}=10m. Got {shown(value)}.")
    try:
        found = settings_of(
            pairs_of(part for part in value.split(",") if part.strip())
            if isinstance(value, str)
            else value.items()
        )
    except UsageError as error:
        raise UsageError(f"{source}: {error.message}") from None
    others = sorted(set(found) - set(names))
    if others:
        raise UsageError(f"{source} has {', '.join(names)}. Got {', '.join(map(shown, others))}.")
    return found


def _written(changes: Mapping[str, float | None]) -> str | None:
    pairs = (f"{name}={setting_text(seconds)}" for name, seconds in changes.items())
    return ",".join(pairs) or None


def _token(value: object, source: str) -> str:
    """Read a secret. Errors do not show it."""
    if isinstance(value, str) and is_plain(value.strip()) and value.strip():
        return value.strip()
    raise UsageError(f"{source} is a token, as `fairlane token create` printed it.")


def _blobs(value: object, source: str) -> str:
    """Read where blobs are kept. Errors do not show it: it may be a URL with a password."""
    from fairlane.client.blobs import check_url  # noqa: PLC0415 (importing engines takes long)

    text = _text(value, source)
    try:
        check_url(text)
    except InvalidBlobStore as error:
        raise UsageError(f"{source}: {error.message}") from None
    return text


def _secret_in(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The {what} cannot be read: {error}.") from None


def _keys_in(path: Path) -> tuple[Key, ...]:
    keys = _keys(_secret_in(path, "encryption keys"), str(path))
    if not keys:
        raise UsageError(f"There are no encryption keys in {path}.")
    return keys


_READERS: dict[str, Callable[[object, str], Any]] = {
    "store": _text,
    "app": _text,
    "concurrency": _count,
    "processes": _count,
    "queues": _names,
    "capabilities": _names,
    "lease": _seconds,
    "grace": _seconds,
    "tasks_per_child": _count,
    "breaker": _breaker,
    "health_port": _port,
    "health_host": _text,
    "name": _text,
    "host": _text,
    "port": _port,
    "workers": _count,
    "allow_hosts": _texts,
    "allow_origins": _texts,
    "compress_results": _count,
    "per_minute": _count,
    "per_hour": _count,
    "start_within": _start_within,
    "log_format": _log_format,
    "log_transitions": _switch,
    "refuse_low": _count_or_none,
    "refuse_normal": _count_or_none,
    "refuse_all": _count_or_none,
    "encryption_keys": _keys,
    "encryption_key_file": _text,
    "token": _token,
    "token_file": _text,
    "blobs": _blobs,
    "aging": _aging,
    "retention": _retention,
}
