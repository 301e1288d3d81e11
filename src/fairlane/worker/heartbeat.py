"""Heartbeats, sent from a thread of their own: a handler that blocks the event loop must not cost
the worker its lease."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from fairlane.backoff import jitter, warn
from fairlane.core.backend import Backend
from fairlane.core.errors import WorkerGone
from fairlane.core.model import Beat, Pulse

logger = logging.getLogger("fairlane.worker")

MARGIN = 0.1
"""The share of a lease that is left when the worker gives up on its own."""
HURRIED_SECONDS = 1.0
PAUSE_SECONDS = 1.0
PAUSE_SHARE = 20
"""A heartbeat that failed is repeated after a second or 1/20 of the lease: the store may answer in
the last moment before the worker gives up."""


class Heartbeat:
    """Sends a heartbeat every third of the lease, and every second while `hurried()`.

    Calls `pulse` with every answer, and `lost` once when the lease is lost.
    """

    def __init__(
        self,
        backend: Backend,
        worker_id: str,
        lease: float,
        describe: Callable[[], dict[str, Any]],
        pulse: Callable[[Pulse], None],
        lost: Callable[[], None],
        hurried: Callable[[], bool] = lambda: False,
        kept_until: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._backend = backend
        self._worker_id = worker_id
        self._lease = lease
        self._pause = min(PAUSE_SECONDS, lease / PAUSE_SHARE)
        self._describe = describe
        self._pulse = pulse
        self._lost = lost
        self._hurried = hurried
        self._kept_until = kept_until
        """Returns until when somebody else has renewed the lease."""
        self._valid_until = time.monotonic() + lease
        self._due = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fairlane-heartbeat", daemon=True)

    @property
    def left(self) -> float:
        """Seconds until the worker must assume that others treat it as dead."""
        until = max(self._valid_until, self._kept_until())
        return until - MARGIN * self._lease - time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for a heartbeat that is under way."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        tick = min(HURRIED_SECONDS, self._lease / 3)
        while not self._stopped.is_set():
            if time.monotonic() >= self._due or self._hurried():
                try:
                    self._beat()
                except WorkerGone:
                    self._lost()
                    return
                except Exception as error:  # noqa: BLE001 (heartbeats go on after any error)
                    self._retry_soon(error)
                    if self.left <= 0:
                        self._lost()
                        return
            self._stopped.wait(min(tick, max(0.0, self._due - time.monotonic())))

    def _beat(self) -> None:
        beat = Beat(self._worker_id, **self._describe())
        sent = time.monotonic()
        # It is repeated without long pauses as long as the lease can be kept.
        op = self._backend.ops.heartbeat(beat).within(max(self.left, self._pause), self._pause)
        pulse = self._backend.run_sync(op)
        self._valid_until = sent + pulse.remaining
        self._due = time.monotonic() + jitter(self._lease / 3)
        self._pulse(pulse)

    def _retry_soon(self, error: Exception) -> None:
        warn(logger, "Cannot send a heartbeat", error)
        self._due = time.monotonic() + jitter(self._pause)
