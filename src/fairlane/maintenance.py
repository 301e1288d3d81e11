"""Maintenance: due tasks, dead workers, time limits, workflows, retention, lanes, samples, clock.

Every worker and server is a candidate; a lease in the store elects one of them. All of it can be
repeated and the store checks it again, so two that both believe to be elected do no harm.

Schedules are fired beside it (see `scheduler`), so that no tick waits for what takes longer.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.backoff import jitter
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.clocks import Watch
from fairlane.core.errors import InvalidBlobStore, StoreError
from fairlane.core.ids import new_id
from fairlane.core.model import Verdict
from fairlane.core.settlement import reaped
from fairlane.scheduler import Scheduler
from fairlane.telemetry.failures import FailureLog

if TYPE_CHECKING:
    from fairlane.client.app import Fairlane

logger = logging.getLogger("fairlane.maintenance")

ROLE = "maintenance"
BLOBS_ROLE = "blobs"
REAP_SECONDS = 2.5
"""The interval of checks: two of them find a dead worker, and five seconds are promised."""
REAP_SECONDS_LEAST = 0.1
DUE_SECONDS = 1.0
"""The longest interval at which due and expired tasks are moved."""
PRUNE_SECONDS = 60.0
SWEEP_PAUSE_SECONDS = 0.05
TERM_ROUNDS = 3
BRING_BACK_SHARE = 0.5
"""The part of a round's time that correcting times may take."""


def boot_id() -> str:
    """Return what all processes share whose monotonic clocks can be compared."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return new_id()  # another system: this process alone


BOOT = boot_id()


def pace_of(lease: float) -> float:
    """Return the interval of checks for workers with this lease."""
    return min(max(lease / 12, REAP_SECONDS_LEAST), REAP_SECONDS)


class Maintenance:
    """A candidate for maintenance."""

    def __init__(
        self,
        backend: Backend,
        candidate: str,
        clock: Callable[[], float] = time.monotonic,
        pace: float = REAP_SECONDS,
        boot: str = BOOT,
    ) -> None:
        self._backend = backend
        self._candidate = candidate
        self._clock = clock
        self._pace = pace
        self._boot = boot
        self._failures = FailureLog()
        self._corrected_since: int | None = None
        self._correcting: str | None = ""
        self._suspects: set[str] = set()
        self._looked_at = float("-inf")
        self._prune_at = float("-inf")
        self._leads_until = float("-inf")
        self._scheduler = Scheduler(backend, pace, clock)

    async def run(self) -> None:
        """Stand for election, and do the work while elected, until cancelled. Fire schedules."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._scheduler.run())
            group.create_task(self._watch_workflows())
            group.create_task(self._stand())

    async def _stand(self) -> None:
        while True:
            pause = jitter(self._pace, 0.2)
            try:
                if await self._elected():
                    await self.round()
                    await self._move_due(self._clock() + pause)
                    continue
            except StoreError as error:
                logger.warning("Maintenance waits for the store: %s", error)
            except Exception:
                logger.exception("Maintenance failed, and will be repeated")
            await asyncio.sleep(pause)

    async def _elected(self) -> bool:
        term = TERM_ROUNDS * self._pace
        until = self._clock() + term  # which ends for this process first
        elected = await self._backend.run(self._backend.ops.elect(ROLE, self._candidate, term))
        self._leads_until = until if elected else float("-inf")
        self._scheduler.lead(self._leads_until)
        return elected

    async def round(self) -> None:
        """Do everything that is due."""
        watch = await self._watch()
        await self._bring_back(watch)
        await self._bury(watch)
        await self._reap(watch)
        self._failures.summarise()
        await self._backend.run(self._backend.ops.sample())
        if self._clock() >= self._prune_at and not watch.spares and not await self._prune():
            await self._drop_lanes()
            await self._trim_audit()
            self._prune_at = self._clock() + jitter(PRUNE_SECONDS)

    async def _watch(self) -> Watch:
        watch = await self._backend.run(self._backend.ops.watch_clock(self._boot, self._clock))
        if watch.step:
            logger.warning(
                "The store's clock was set %s by %.1f s: leases and time limits count from now",
                "forward" if watch.step > 0 else "back",
                abs(watch.step),
            )
        return watch

    async def _bring_back(self, watch: Watch) -> None:
        """Correct times that lie ahead of now, once after each step and each unwatched time."""
        if watch.since != self._corrected_since:
            self._corrected_since = watch.since
            self._correcting = "" if watch.fresh or watch.behind else None
        ops, run = self._backend.ops, self._backend.run
        until = self._clock() + self._pace * BRING_BACK_SHARE
        while self._correcting is not None:  # in parts, so that others can write in between
            self._correcting = await run(ops.bring_back(self._correcting or None))
            if self._clock() >= until:
                return

    async def _move_due(self, until: float) -> None:
        """Move tasks that are due or have expired, as soon as they are, until the next round."""
        while (begun := self._clock()) < until:
            due = await self._backend.run(self._backend.ops.move_due())
            now = self._clock()
            wait = until - now
            if due.more:
                wait = now - begun  # half of the time is for others that write
            elif due.next_in is not None:
                wait = min(wait, due.next_in)
            await asyncio.sleep(min(wait, DUE_SECONDS))

    async def _watch_workflows(self) -> None:
        """Look at workflows that run, while elected, about once a second."""
        while True:
            more = False
            try:
                if self._clock() < self._leads_until:
                    more = (await self._backend.run(self._backend.ops.watch_workflows())).more
            except StoreError:
                pass  # who stands for election says so
            except Exception:
                logger.exception("Looking at workflows failed, and will be repeated")
            await asyncio.sleep(SWEEP_PAUSE_SECONDS if more else limits.WORKFLOW_WATCH_SECONDS)

    async def _bury(self, watch: Watch) -> None:
        """Declare workers dead that were silent in two checks, and for their lease on both clocks.

        After a pause of this process (or at its start) workers may seem dead that could not reach
        the store either. Then the first check does not count.
        """
        ops, run = self._backend.ops, self._backend.run
        workers = await run(ops.workers())
        silent = {worker.worker_id for worker in workers if watch.confirms(worker)}
        now = self._clock()
        if now - self._looked_at <= 2 * self._pace:
            dead = sorted(silent & self._suspects)
            buried = await run(ops.bury(dead[: limits.BATCH])) if dead else []
            for worker_id in buried:
                logger.warning("Worker %s is dead: other workers take its tasks", worker_id)
        self._suspects, self._looked_at = silent, now

    async def _reap(self, watch: Watch) -> None:
        ops, run = self._backend.ops, self._backend.run
        while True:
            overdue = await run(ops.expired(limits.BATCH, watch.since))
            if not overdue:
                return
            again = await self._watch()
            if again.since != watch.since:  # the clock was set since this round began
                await self._bring_back(again)
                return
            spread = (await run(ops.settings())).requeue_spread
            settlements = [reaped(item, random.random(), spread) for item in overdue]
            settled = await run(ops.settle(settlements, reaping=True))
            self._failures.log(overdue, settlements, settled)
            moved = any(answer.verdict is Verdict.APPLIED for answer in settled)
            if len(overdue) < limits.BATCH or not moved:
                return

    async def _prune(self) -> bool:
        """Delete old tasks for a while, and return whether there are more.

        The tasks of dead workers must not wait until millions of old tasks are deleted.
        """
        ops, run = self._backend.ops, self._backend.run
        more, until = True, self._clock() + self._pace / 2  # or the next check would be late
        while more and self._clock() < until:  # in batches, so that others can write in between
            settings = await run(ops.settings())
            more = (await run(ops.prune(settings.retention))).more
        return more

    async def _drop_lanes(self) -> None:
        """Drop unused lanes for a while. What is left waits for the next time."""
        ops, run = self._backend.ops, self._backend.run
        dropped, until = limits.BATCH, self._clock() + self._pace / 2
        while dropped == limits.BATCH and self._clock() < until:
            dropped = await run(ops.drop_lanes())

    async def _trim_audit(self) -> None:
        """Delete old entries of the audit log for a while. The others wait for the next time."""
        ops, run = self._backend.ops, self._backend.run
        gone, until = limits.BATCH, self._clock() + self._pace / 2
        while gone == limits.BATCH and self._clock() < until:
            gone = await run(ops.trim_audit())


class BlobSweeper:
    """A candidate for deleting blobs that belong to no task.

    That is a role of its own: not every process that does the maintenance can reach the blobs.
    """

    def __init__(self, app: Fairlane, candidate: str, pace: float = PRUNE_SECONDS) -> None:
        self._app = app
        self._candidate = candidate
        self._pace = pace

    async def run(self) -> None:
        """Stand for election, and sweep while elected, until cancelled."""
        while True:
            try:
                ops = self._app.backend.ops
                term = TERM_ROUNDS * self._pace
                if await self._app.run(ops.elect(BLOBS_ROLE, self._candidate, term)):
                    await self.round()
            except (StoreError, InvalidBlobStore) as error:
                logger.warning("Blobs without tasks are not deleted: %s", error)
            except Exception:
                logger.exception("Deleting blobs without tasks failed, and will be repeated")
            await asyncio.sleep(jitter(self._pace))

    async def round(self) -> None:
        """Look at all blobs once."""
        blobs = self._app.payload_blobs()
        cursor = await blobs.run(blobs.sweep(), self._app.run)
        while cursor is not None:
            await asyncio.sleep(SWEEP_PAUSE_SECONDS)  # others want to write as well
            cursor = await blobs.run(blobs.sweep(cursor), self._app.run)
