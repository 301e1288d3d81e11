"""Exceptions with which a handler chooses the outcome of its run."""

from __future__ import annotations

from fairlane.core.durations import Seconds, in_seconds


class Retry(Exception):
    """The run failed: retry it `after` this time (None: as the retry policy says)."""

    def __init__(
        self, message: str = "The handler asked to be run again.", *, after: Seconds | None = None
    ) -> None:
        super().__init__(message)
        self.after = None if after is None else float(in_seconds(after))


class Fail(Exception):
    """The run failed for good: do not retry it."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = None if code is None else str(code)


class Snooze(Exception):
    """Run the task again in `seconds`. This does not count as a retry."""

    def __init__(self, seconds: Seconds) -> None:
        self.seconds = float(in_seconds(seconds))
        super().__init__(f"snoozed for {self.seconds:g} s")
