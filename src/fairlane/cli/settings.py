"""Where settings come from, in one place: flags, then FAIRLANE_* variables, then fairlane.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fairlane.cli.trouble import Wrong
from fairlane.core.text import NAME_RULE, is_name, shown

FILE = "fairlane.toml"
PREFIX = "FAIRLANE_"
DEFAULT_STORE = "sqlite:///fairlane.db"


class Settings(NamedTuple):
    """What holds for this run. None, for store and app: nobody said."""

    store: str | None = None
    app: str | None = None
    concurrency: int = 10
    processes: int = 1
    queues: frozenset[str] | None = None
    capabilities: frozenset[str] = frozenset()

    @property
    def store_url(self) -> str:
        """The store, or the file in the working folder if nobody said."""
        return self.store or DEFAULT_STORE

    def environment(self) -> dict[str, str]:
        """The same as variables, for processes that are to work alike."""
        values = {
            "store": self.store,
            "app": self.app,
            "concurrency": str(self.concurrency),
            "processes": str(self.processes),
            "queues": None if self.queues is None else ",".join(sorted(self.queues)),
            "capabilities": ",".join(sorted(self.capabilities)) or None,
        }
        return {PREFIX + name.upper(): value for name, value in values.items() if value is not None}


def resolve(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """What flags (None: not given), the environment and the file in the folder make together."""
    environ = os.environ if environ is None else environ
    written = _from_file((Path() if folder is None else folder) / FILE)
    found: dict[str, Any] = {}
    for name, read in _READERS.items():
        variable = PREFIX + name.upper()
        given = (flags or {}).get(name)
        if given is not None:
            found[name] = read(given, "--" + name)
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
        raise Wrong(f"{FILE} cannot be read: {error}.") from None
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Wrong(f"{FILE} is not valid TOML: {error}.") from None
    unknown = sorted(set(written) - set(_READERS))
    if unknown:
        raise Wrong(
            f"{FILE} has settings that do not exist: {', '.join(unknown)}. "
            f"There are {', '.join(_READERS)}."
        )
    return written


def _text(value: object, source: str) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise Wrong(f"{source} is a text. Got {shown(value)}.")


def _count(value: object, source: str) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value[:20])
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise Wrong(f"{source} is a whole number, 1 or more. Got {shown(value)}.")


def _names(value: object, source: str) -> frozenset[str]:
    """a,b or, in the file, ["a", "b"]."""
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    names = frozenset(value) if isinstance(value, Iterable) else frozenset()
    if names and all(is_name(name) for name in names):
        return names
    raise Wrong(
        f"{source} lists names like a,b; each has {NAME_RULE}. "
        f"Got {shown(sorted(map(str, names)) or value)}."
    )


_READERS: dict[str, Callable[[object, str], Any]] = {
    "store": _text,
    "app": _text,
    "concurrency": _count,
    "processes": _count,
    "queues": _names,
    "capabilities": _names,
}
