"""An application for tests: in memory, with a clock that the test moves, and without a worker."""

from __future__ import annotations

import asyncio

from fairlane.client.app import Fairlane


class MemoryApp(Fairlane):
    """An application in memory. The test moves the store's clock and runs the tasks."""

    def __init__(self) -> None:
        super().__init__("sqlite://")

    def advance(self, seconds: float) -> None:
        """Move the store's clock."""
        self.run_sync(self.backend.ops.shift_clock(seconds))

    async def work(self) -> int:
        """Run the tasks that are due by now, and return the number of runs."""
        return await self.runner().work(skip_time=False)

    def work_sync(self) -> int:
        """Blocking twin of `work`."""
        return asyncio.run(self.work())
