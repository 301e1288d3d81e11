"""How long a failed task waits before it runs again."""

from __future__ import annotations

import math

import msgspec

from fairlane.core.errors import InvalidRetries

RATE_LIMIT = "RATE_LIMIT"
"""An error with this code says that the other side wants us to slow down: the delay doubles."""


class RetryPolicy(msgspec.Struct, frozen=True, array_like=True):
    """Exponential backoff: `base * factor ** retries`, at most `cap`, give or take `jitter`.

    Stored with the task at submission, so that whoever decides later (a server, a reaper) needs
    none of the application's code. Encoded as a short array for that reason.
    """

    base: float = 1.0
    factor: float = 2.0
    cap: float = 300.0
    jitter: float = 0.1

    def delay(self, retries: int, luck: float) -> float:
        """Seconds to wait after a failure that had `retries` before it; `luck` is in [0, 1)."""
        try:
            pause = min(self.base * self.factor**retries, self.cap)
        except OverflowError:
            pause = self.cap
        return pause * (1.0 + self.jitter * (2.0 * luck - 1.0))


DEFAULT = RetryPolicy()


def checked(policy: RetryPolicy) -> RetryPolicy:
    """The policy, if its numbers make sense."""
    numbers = (policy.base, policy.factor, policy.cap, policy.jitter)
    if (
        all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
        and policy.base >= 0
        and policy.factor >= 1
        and policy.cap >= 0
        and 0 <= policy.jitter <= 1
    ):
        return policy
    raise InvalidRetries(
        "A retry policy has base and cap of zero or more seconds, a factor of 1 or more and a "
        f"jitter between 0 and 1. Got {policy}."
    )
