"""Keeps the schedules that the application's code declares."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fairlane.backoff import jitter, warn
from fairlane.client.app import Fairlane
from fairlane.client.schedule_declarations import declare, declare_again
from fairlane.core import limits
from fairlane.core.errors import AccessDenied, NotSupported
from fairlane.core.flow import Op, perform_async

logger = logging.getLogger("fairlane.worker")

_ADVICE = (
    " The worker goes on without declaring them: give it a token with the scopes worker and submit."
)


class ScheduleKeeper:
    """Declares the schedules of an application in its store, for a worker.

    What its code no longer declares is dropped after a day, so the declaration is repeated.
    """

    def __init__(self, app: Fairlane, pause: float = limits.SCHEDULE_SEEN_SECONDS) -> None:
        self._app = app
        self._pause = pause
        self._declared = False

    async def declare(self, run: Callable[[Op[Any]], Awaitable[Any]]) -> None:
        """Declare them, at first all, and later what nobody has declared otherwise meanwhile."""
        app = self._app
        flow = declare_again if self._declared else declare
        try:
            await perform_async(flow(app.backend.ops, app.name, app.declared.values()), run)
        except (AccessDenied, NotSupported) as error:
            # A token that may declare schedules need not permit to look at them later.
            if app.declared and not self._declared:
                remote = app.backend.driver.remote and isinstance(error, AccessDenied)
                advice = _ADVICE if remote else ""
                logger.warning("Cannot declare the schedules of the code: %s%s", error, advice)
        self._declared = True

    async def run(self) -> None:
        """Repeat the declaration until cancelled."""
        while True:
            await asyncio.sleep(jitter(self._pause))
            try:
                await self.declare(self._app.run)
            except Exception as error:  # noqa: BLE001 (repeated later)
                warn(logger, "Cannot declare the schedules of the code again", error)
