"""Log records as JSON, one object on one line."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from fairlane.core.text import concealed, storable

FIELDS: Final = "fairlane_fields"
"""Where a record carries the fields of its message: `extra={FIELDS: {…}}`. A field "message"
replaces the message."""
FINISHED: Final = "fairlane_finished"
"""Where a record that stands for several carries their finished lines."""
MOST: Final = 8_192
"""The most characters of one text."""
MOST_TRACE: Final = 32_768
"""The most characters of a traceback."""
SECRET: Final = 1_024
"""The most characters of a secret."""


def stamp(seconds: float) -> str:
    """Return a time as lines show it, of seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def encode(line: Mapping[str, object]) -> str:
    """Return an object as JSON in ASCII."""
    encoded = msgspec.json.encode(line).decode()
    if not encoded.isascii():  # rare, and msgspec has no option for it
        encoded = json.dumps(line, ensure_ascii=True, separators=(",", ":"))
    return encoded.replace("\x7f", "\\u007f")


def cut(text: str, most: int, clean: Callable[[str], str]) -> str:
    """Return a text of at most `most` characters, without secrets."""
    # Cut first: no pattern has to search megabytes. But not to size: a secret that was cut short
    # would not be recognised.
    return storable(clean(text[: most + SECRET]), most)


def trace_of(record: logging.LogRecord, clean: Callable[[str], str]) -> str:
    """Return the traceback of a record, or nothing. A record of a child process has it as text."""
    trace = record.exc_text or ""
    if record.exc_info:
        trace = logging.Formatter().formatException(record.exc_info)
    return cut(trace[-MOST_TRACE:], MOST_TRACE, clean)  # the end of a traceback says most


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line, in ASCII.

    ASCII has no U+2028, which some programs read as the end of a line, and once it is escaped
    nothing that controls a terminal. `clean` removes secrets from texts.
    """

    def __init__(self, clean: Callable[[str], str] = concealed) -> None:
        super().__init__()
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        finished = getattr(record, FINISHED, None)
        return finished if isinstance(finished, str) else encode(self.line(record))

    def line(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the object, without secrets."""
        line: dict[str, Any] = {
            "time": stamp(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": self._text(record.getMessage(), MOST),
            "process": record.process,
        }
        fields = getattr(record, FIELDS, None)
        if isinstance(fields, Mapping):
            line |= {name: self._value(value) for name, value in fields.items()}
        trace = trace_of(record, self._clean)
        if trace:
            line["exception"] = trace
        return line

    def _value(self, value: object) -> object:
        return self._text(value, MOST) if isinstance(value, str) else value

    def _text(self, text: str, most: int) -> str:
        return cut(text, most, self._clean)
