"""How long a failed task waits before it runs again."""

from __future__ import annotations

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidRetries
from fairlane.core.text import shown

SLOW_DOWN = frozenset({"RATE_LIMIT", "TEMPORARY_UNAVAILABLE"})
"""Codes of errors by which the other side asks for fewer requests: the delay doubles."""


class RetryPolicy(msgspec.Struct, frozen=True, array_like=True):
    """Exponential backoff: `base * factor ** retries`, at most `cap`, give or take `jitter`.

    It is stored with the task, so that a server or the maintenance can decide without the
    application's code. Encoded as a short array for that reason.
    """

    base: float = 1.0
    factor: float = 2.0
    cap: float = 300.0
    jitter: float = 0.1

    def delay(self, retries: int, jitter: float) -> float:
        """Return the seconds to wait after `retries` earlier failures; `jitter` is in [0, 1)."""
        try:
            pause = min(self.base * self.factor**retries, self.cap)
        except OverflowError:
            pause = self.cap if self.base else 0.0
        return pause * (1.0 + self.jitter * (2.0 * jitter - 1.0))


DEFAULT = RetryPolicy()


def checked(policy: RetryPolicy) -> RetryPolicy:
    """Return the policy. Raises InvalidRetries if a number is out of range."""
    if (
        isinstance(policy, RetryPolicy)
        and all(
            isinstance(number, int | float) and not isinstance(number, bool)
            for number in (policy.base, policy.factor, policy.cap, policy.jitter)
        )
        and 0 <= policy.base <= limits.DELAY_SECONDS
        and 1 <= policy.factor <= limits.RETRIES
        and 0 <= policy.cap <= limits.DELAY_SECONDS
        and 0 <= policy.jitter <= 1
    ):
        return policy
    raise InvalidRetries(
        f"A retry policy has base and cap from 0 to {limits.DELAY_SECONDS:,.0f} seconds, a factor "
        f"from 1 to {limits.RETRIES:,} and a jitter from 0 to 1. Got {shown(policy)}."
    )


def check_pause(policy: RetryPolicy, max_retries: int) -> None:
    """Raise InvalidRetries if a task that always fails could run again and again without a pause.

    The server applies this to callers who do not operate the queue: one task must not keep workers,
    and whomever its handler calls, busy for a thousand runs in a row.
    """
    if max_retries <= limits.FAST_RETRIES:
        return
    if policy.delay(limits.FAST_RETRIES, 0.5) < limits.RETRY_PAUSE_SECONDS:
        raise InvalidRetries(
            f"A task that is retried more than {limits.FAST_RETRIES} times waits for "
            f"{limits.RETRY_PAUSE_SECONDS:g} s at least before a retry: raise the base or the "
            "cap of its retry policy, lower max_retries, or use a token with the scope admin."
        )
