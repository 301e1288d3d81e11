"""Beginning to listen for work, whatever the state of the store."""

from __future__ import annotations

import asyncio
import logging

from fairlane.core.backend import Driver, Wakeup
from fairlane.core.errors import StoreError
from fairlane.upkeep.pauses import Pauses

logger = logging.getLogger("fairlane.upkeep")


async def listening(driver: Driver) -> Wakeup:
    """A subscription to hints; tries until there is one."""
    pauses = Pauses()
    while True:
        try:
            return await driver.listen()
        except StoreError as error:
            logger.warning("Cannot listen for work yet: %s", error)
            await asyncio.sleep(pauses.next())
