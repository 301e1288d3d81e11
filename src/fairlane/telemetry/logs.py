"""Log records as JSON: one event, one line, whatever is in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from fairlane.core.text import concealed, storable

FIELDS: Final = "fairlane_fields"
"""Where a record carries what its message says, field by field: `extra={FIELDS: {…}}`. A field
"message" takes the message's place."""
FINISHED: Final = "fairlane_finished"
"""Where a record that stands for several carries their lines, as `JsonFormatter` writes them."""
MOST: Final = 8_192
"""Characters of one text."""
MOST_TRACE: Final = 32_768
"""Characters of a traceback."""
SECRET: Final = 1_024
"""Characters that a secret may have."""


def stamp(seconds: float) -> str:
    """A time as it is told, of seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


class JsonFormatter(logging.Formatter):
    """A record as an object on one line, in ASCII: no character in it does anything to whoever
    reads it, be it a terminal or a program that takes U+2028 for the end of a line.

    `clean` takes secrets out of texts.
    """

    def __init__(self, clean: Callable[[str], str] = concealed) -> None:
        super().__init__()
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        finished = getattr(record, FINISHED, None)
        if isinstance(finished, str):
            return finished
        told: dict[str, Any] = {
            "time": stamp(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": self._text(record.getMessage(), MOST),
            "process": record.process,
        }
        fields = getattr(record, FIELDS, None)
        if isinstance(fields, Mapping):
            told |= {name: self._value(value) for name, value in fields.items()}
        if record.exc_info:
            # The end of a traceback says most.
            trace = self.formatException(record.exc_info)[-MOST_TRACE:]
            told["exception"] = self._text(trace, MOST_TRACE)
        return json.dumps(told, ensure_ascii=True, separators=(",", ":")).replace("\x7f", "\\u007f")

    def _value(self, value: object) -> object:
        return self._text(value, MOST) if isinstance(value, str) else value

    def _text(self, text: str, most: int) -> str:
        # Cut first: no pattern need look through megabytes. But not to size: a secret of which only
        # the beginning is left would not be known for one.
        return storable(self._clean(text[: most + SECRET]), most)
