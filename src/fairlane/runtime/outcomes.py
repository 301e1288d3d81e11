"""What a handler raises to say how its run ended, where an ordinary exception would not do."""

from __future__ import annotations


class Retry(Exception):
    """The run failed; try again, `after` so many seconds (None: as the retry policy says)."""

    def __init__(
        self, message: str = "The handler asked to be run again.", *, after: float | None = None
    ) -> None:
        super().__init__(message)
        self.after = None if after is None else float(after)


class Fail(Exception):
    """The run failed for good: no retry would help."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = None if code is None else str(code)


class Snooze(Exception):
    """Not now: run again in so many seconds. Costs no attempt."""

    def __init__(self, seconds: float) -> None:
        self.seconds = float(seconds)
        super().__init__(f"snoozed for {self.seconds:g} s")
