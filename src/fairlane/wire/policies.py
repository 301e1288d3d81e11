"""Retry policies in JSON."""

from __future__ import annotations

import msgspec

from fairlane.core.retry import DEFAULT, RetryPolicy
from fairlane.wire.values import Delay, Factor, Share


class RetryView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failed run is retried after `base_seconds` × `factor` ^ retries, at most `cap_seconds`,
    plus or minus `jitter`."""

    base_seconds: Delay = DEFAULT.base
    factor: Factor = DEFAULT.factor
    cap_seconds: Delay = DEFAULT.cap
    jitter: Share = DEFAULT.jitter

    @classmethod
    def of(cls, policy: RetryPolicy) -> RetryView:
        """Return a policy as JSON shows it."""
        return cls(
            base_seconds=policy.base,
            factor=policy.factor,
            cap_seconds=policy.cap,
            jitter=policy.jitter,
        )

    def policy(self) -> RetryPolicy:
        """Return the policy for the core."""
        return RetryPolicy(self.base_seconds, self.factor, self.cap_seconds, self.jitter)
