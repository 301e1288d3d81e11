"""Set up the log of long-running commands, as text or as JSON."""

from __future__ import annotations

import logging

from fairlane.cli.errors import scrubbed
from fairlane.cli.settings import Settings
from fairlane.telemetry import transitions
from fairlane.telemetry.logs import JsonFormatter


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
    """Lines of text, without secrets: an error of a store may contain its URL."""

    def __init__(self, *, supervised: bool) -> None:
        process = " [%(process)d]" if supervised else ""
        super().__init__(f"%(asctime)s{process} %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return scrubbed(super().format(record))
