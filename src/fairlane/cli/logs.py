"""Set up the log of long-running commands, as text or as JSON."""

from __future__ import annotations

import logging

from fairlane.cli.errors import scrubbed
from fairlane.cli.escapes import printable, printable_lines
from fairlane.cli.settings import Settings
from fairlane.telemetry import transitions
from fairlane.telemetry.logs import MOST, JsonFormatter, cut, trace_of


def log_to_stderr(settings: Settings, *, supervised: bool = False) -> None:
    """Log to stderr, unless the application has set up logging itself."""
    if settings.log_transitions:
        transitions.enable()
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter(scrubbed) if settings.log_format == "json" else _Lines(supervised=supervised)
    )
    logging.getLogger().addHandler(handler)
    logging.getLogger("fairlane").setLevel(logging.INFO)


class _Lines(logging.Formatter):
    """Lines of text, without secrets: an error of a store may contain its URL.

    A record is one line, and one for each line of its traceback, which are indented: what a handler
    logs or raises cannot pass for another record, and cannot control a terminal.
    """

    def __init__(self, *, supervised: bool) -> None:
        process = " [%(process)d]" if supervised else ""
        super().__init__(f"%(asctime)s{process} %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.message = printable(cut(record.getMessage(), MOST, scrubbed))
        record.asctime = self.formatTime(record)
        trace = printable_lines(trace_of(record, scrubbed))
        return "\n  ".join([self.formatMessage(record), *trace])
