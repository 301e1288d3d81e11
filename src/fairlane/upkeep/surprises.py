"""Trouble in something that goes on all the same."""

from __future__ import annotations

import logging

from fairlane.core.errors import StoreError


def warn(logger: logging.Logger, what: str, error: Exception) -> None:
    """Say what cannot be done, and why. A store has its troubles; anything else is a surprise, and
    told with where it came from."""
    surprise = None if isinstance(error, StoreError) else error
    logger.warning("%s: %s", what, error, exc_info=surprise)
