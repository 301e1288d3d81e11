"""An application for tests: in memory, with a clock that the test moves, and without a worker."""

from __future__ import annotations

from fairlane.client.app import Fairlane
from fairlane.client.memory_store import MemoryStore
from fairlane.core.schedules import NewSchedule


class MemoryApp(Fairlane):
    """An application in memory, for a test that defines tasks of its own.

    It has what `Fairlane` and `MemoryStore` have. The tasks of your own application are tested with
    `Fairlane.in_memory`.
    """

    def __init__(self) -> None:
        super().__init__("sqlite://")
        store = MemoryStore(self)
        self.advance = store.advance
        self.work, self.work_sync = store.work, store.work_sync
        self.submitted = store.submitted
        self.assert_submitted = store.assert_submitted
        self.assert_not_submitted = store.assert_not_submitted

    def declare(self, schedule: NewSchedule) -> None:
        """Add a schedule. It is in the store at once: there is no worker that declares it."""
        super().declare(schedule)
        self._declare_schedules()
