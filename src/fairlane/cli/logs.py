"""What long-running commands log, as text or as JSON."""

from __future__ import annotations

import logging

from fairlane.cli.errors import scrubbed
from fairlane.cli.settings import Settings
from fairlane.telemetry import transitions
from fairlane.telemetry.logs import JsonFormatter


def log_to_stderr(settings: Settings, *, supervised: bool = False) -> None:
    """The program's own messages go to stderr, unless the application set up logging itself."""
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
    """Messages may quote what a store said, and that may quote its URL."""

    def __init__(self, *, supervised: bool) -> None:
        process = " [%(process)d]" if supervised else ""
        super().__init__(f"%(asctime)s{process} %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return scrubbed(super().format(record))
