"""An application for tests: in memory, with a clock to move, and no worker but the test itself."""

from __future__ import annotations

import asyncio

from fairlane.client.app import Fairlane


class MemoryApp(Fairlane):
    """A store in memory whose clock the test moves, and whose tasks the test runs."""

    def __init__(self) -> None:
        super().__init__("sqlite://")

    def advance(self, seconds: float) -> None:
        """Move the store's clock."""
        self.run_sync(self.backend.ops.shift_clock(seconds))

    async def work(self) -> int:
        """Run what is due by now; answers how many runs that took."""
        return await self.runner().work(skip_time=False)

    def work_sync(self) -> int:
        """Blocking twin of `work`."""
        return asyncio.run(self.work())
