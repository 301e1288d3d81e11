"""How the tasks of the shop pretend to work."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from fairlane import RetryPolicy

QUICK_RETRIES: Final = RetryPolicy(base=2, factor=2, cap=30)
"""Short delays, so that one can watch retries."""


async def busy(least: float, most: float) -> None:
    """Take a while."""
    await asyncio.sleep(random.uniform(least, most))


def happens(share: float) -> bool:
    """Return whether something happens this time that happens now and then."""
    return random.random() < share
