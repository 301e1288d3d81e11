"""How each setting is read from a flag, a variable or the file: `source` names where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fairlane.cli.errors import UsageError
from fairlane.cli.parsing import breaker_of, pairs_of, setting_text, settings_of
from fairlane.core import limits
from fairlane.core.breaker import Breaker
from fairlane.core.breaker import checked as checked_breaker
from fairlane.core.errors import InvalidBlobStore, InvalidKey, InvalidLimit
from fairlane.core.sealing import Key, keys_of
from fairlane.core.store_settings import AGING, REQUEUE_SPREAD, RETENTION
from fairlane.core.text import NAME_RULE, is_name, is_secret, shown

FILE = "fairlane.toml"


def read_text(value: object, source: str) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise UsageError(f"{source} is a text. Got {shown(value)}.")


def read_count(value: object, source: str) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value[:20])
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise UsageError(f"{source} is a whole number, 1 or more. Got {shown(value)}.")


def read_count_or_none(value: object, source: str) -> int:
    """Read a number; 0 means none, which environment variables cannot express otherwise."""
    return 0 if value in (0, "0") and value is not False else read_count(value, source)


def read_seconds(value: object, source: str) -> float:
    """Read seconds. The worker checks their range."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise UsageError(f"{source} is a number of seconds. Got {shown(value)}.")


def read_start_within(value: object, source: str) -> float:
    """Read seconds; 0 means any time."""
    seconds = read_seconds(value, source)
    if 0 <= seconds <= limits.LEASE_SECONDS_LONGEST:
        return seconds
    raise UsageError(
        f"{source} is 0 (off) to {limits.LEASE_SECONDS_LONGEST:,.0f} seconds. Got {shown(value)}."
    )


def read_port(value: object, source: str) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value[:20])
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 65_535:
        return value
    raise UsageError(f"{source} is a port: 0 to 65535, 0 for any free one. Got {shown(value)}.")


def read_breaker(value: object, source: str) -> Breaker:
    try:
        return checked_breaker(breaker_of(read_text(value, source)))
    except (UsageError, InvalidLimit) as error:
        raise UsageError(f"{source}: {error.message}") from None


def written_breaker(breaker: Breaker) -> str:
    return f"{breaker.failures},{breaker.within:g},{breaker.cooldown:g}"


def read_log_format(value: object, source: str) -> str:
    if value in ("text", "json"):
        return str(value)
    raise UsageError(f"{source} is text or json. Got {shown(value)}.")


def read_switch(value: object, source: str) -> bool:
    """Read a switch: 0 or 1 in a variable, false or true in the file."""
    if value in ("0", "1"):
        return value == "1"
    if isinstance(value, bool):
        return value
    raise UsageError(
        f"{source} is 1 for yes or 0 for no, in {FILE} true or false. Got {shown(value)}."
    )


def read_texts(value: object, source: str) -> frozenset[str]:
    """Read a list of texts: a,b or, in the file, ["a", "b"]."""
    texts = _listed(value)
    if texts and all(isinstance(text, str) and text.isprintable() for text in texts):
        return texts
    raise UsageError(f"{source} lists texts like a,b. Got {shown(value)}.")


def _listed(value: object) -> frozenset[str]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    return frozenset(value) if isinstance(value, Iterable) else frozenset()


def read_names(value: object, source: str) -> frozenset[str]:
    """Read a list of names: a,b or, in the file, ["a", "b"]."""
    names = _listed(value)
    if names and all(is_name(name) for name in names):
        return names
    raise UsageError(
        f"{source} lists names like a,b; each has {NAME_RULE}. "
        f"Got {shown(sorted(map(str, names)) or value)}."
    )


def read_keys(value: object, source: str) -> tuple[Key, ...]:
    """Read a secret. Errors do not show it."""
    if not isinstance(value, str | list):
        raise UsageError(f"{source} lists keys like id:base64.")
    try:
        return keys_of(value)
    except InvalidKey as error:
        raise UsageError(f"{source}: {error.message}") from None


def read_aging(value: object, source: str) -> dict[str, float | None]:
    return _store_settings(value, source, AGING)


def read_retention(value: object, source: str) -> dict[str, float | None]:
    return _store_settings(value, source, RETENTION)


def read_requeue_spread(value: object, source: str) -> float | None:
    """Read seconds, or a duration."""
    return _store_settings({REQUEUE_SPREAD: value}, source, [REQUEUE_SPREAD])[REQUEUE_SPREAD]


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


def written_settings(changes: Mapping[str, float | None]) -> str | None:
    pairs = (f"{name}={setting_text(seconds)}" for name, seconds in changes.items())
    return ",".join(pairs) or None


def read_token(value: object, source: str) -> str:
    """Read a secret. Errors do not show it."""
    if isinstance(value, str) and is_secret(value.strip()):
        return value.strip()
    raise UsageError(f"{source} is a token, as `fairlane token create` printed it.")


def read_blobs(value: object, source: str) -> str:
    """Read where blobs are kept. Errors do not show it: it may be a URL with a password."""
    from fairlane.client.blobs import check_url  # noqa: PLC0415 (importing engines takes long)

    text = read_text(value, source)
    try:
        check_url(text)
    except InvalidBlobStore as error:
        raise UsageError(f"{source}: {error.message}") from None
    return text


def secret_in(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The {what} cannot be read: {error}.") from None


def keys_in(path: Path) -> tuple[Key, ...]:
    keys = read_keys(secret_in(path, "encryption keys"), str(path))
    if not keys:
        raise UsageError(f"There are no encryption keys in {path}.")
    return keys
