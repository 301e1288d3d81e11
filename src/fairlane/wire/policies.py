"""Retry policies as JSON has them."""

from __future__ import annotations

import msgspec

from fairlane.core.retry import DEFAULT, RetryPolicy
from fairlane.wire.values import Delay, Factor, Share


class RetryView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failed run is tried again after `base_seconds` × `factor` ^ retries, at most `cap_seconds`,
    give or take `jitter`."""

    base_seconds: Delay = DEFAULT.base
    factor: Factor = DEFAULT.factor
    cap_seconds: Delay = DEFAULT.cap
    jitter: Share = DEFAULT.jitter

    @classmethod
    def of(cls, policy: RetryPolicy) -> RetryView:
        """A policy as others see it."""
        return cls(
            base_seconds=policy.base,
            factor=policy.factor,
            cap_seconds=policy.cap,
            jitter=policy.jitter,
        )

    def policy(self) -> RetryPolicy:
        """The same in the core's words."""
        return RetryPolicy(self.base_seconds, self.factor, self.cap_seconds, self.jitter)
