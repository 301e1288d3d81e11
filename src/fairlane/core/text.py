"""Texts that callers give: what a name may look like, and how a value is shown back to them."""

from __future__ import annotations

import re
from typing import Final, TypeGuard

from fairlane.core import limits

_NAME: Final = re.compile(rf"[A-Za-z0-9_.:\-]{{1,{limits.NAME_LENGTH}}}\Z")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

NAME_RULE: Final = f"1 to {limits.NAME_LENGTH} characters out of A-Z a-z 0-9 _ . : - only"


SECRET_PREFIX: Final = "fl_"
"""What the secrets of tokens begin with, so that they are noticed where they do not belong."""
_SECRET: Final = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_\-]{{16,}}")


def is_name(value: object) -> TypeGuard[str]:
    """Return whether this can name a type, a queue, a capability or a worker."""
    return isinstance(value, str) and _NAME.match(value) is not None


def is_plain(value: object, most: int = limits.NAME_LENGTH) -> TypeGuard[str]:
    """Return whether this is a short text that every engine can store."""
    return isinstance(value, str) and len(value) <= most and not _UNPRINTABLE.search(value)


def is_secret(text: str) -> bool:
    """Return whether this may be the secret of a token."""
    return len(text) <= limits.NAME_LENGTH and _SECRET.fullmatch(text) is not None


def storable(text: str, most: int) -> str:
    """Return the text, cut to `characters`, in a form that every engine can store as UTF-8."""
    # Lone surrogates have no such form: show them as escapes rather than fail to record a failure.
    text = text[:most].encode("utf-8", "backslashreplace").decode("utf-8") + text[most : most + 1]
    return text if len(text) <= most else text[: most - 1] + "…"


def as_sentence(text: str) -> str:
    """Return the text with a full stop, unless it ends a sentence: another one can follow."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def concealed(text: str) -> str:
    """Return the text without secrets of tokens in it."""
    return _SECRET.sub(f"{SECRET_PREFIX}***", text) if SECRET_PREFIX in text else text


def shown(value: object) -> str:
    """Return a value as an error message quotes it: short, and harmless wherever it is printed."""
    try:
        text = concealed(ascii(value))
    except ValueError:  # an integer of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= 80 else text[:80] + "…"
