"""Escape text from users, so that it cannot control a terminal."""

from __future__ import annotations

import re

# Control characters, lone surrogates, line separators, and marks of writing direction.
_HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Return the text on one line, with everything escaped that could control a terminal."""
    return _HARMFUL.sub(_escape, text)


def printable_lines(text: str) -> list[str]:
    """Return the lines of a text, each escaped."""
    return [printable(line.expandtabs(4)) for line in text.splitlines()]


def harmless_json(encoded: str) -> str:
    """Return JSON with the same escapes, which can only be needed inside its strings."""
    return _HARMFUL.sub(_escape_in_json, encoded)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _escape_in_json(match: re.Match[str]) -> str:
    # Line breaks and tabs are layout; inside strings the encoder has escaped them.
    character = match.group()
    return character if character in "\n\t\r" else f"\\u{ord(character):04x}"
