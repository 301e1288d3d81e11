"""Heartbeats: a lease is kept whenever the store answers before it ends."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from fairlane import engines
from fairlane.backoff import persist
from fairlane.core.errors import StoreUnavailable
from fairlane.core.flow import Op
from fairlane.core.ids import new_id
from fairlane.core.model import NewWorker, Pulse, WorkerStatus
from fairlane.worker.heartbeat import Heartbeat

LEASE = 3.0
LOCKED = 0.75 * LEASE
"""The lock begins after the last heartbeat, and ends before a worker stops by itself."""


async def test_a_lock_that_ends_before_the_leases_costs_none(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    url = f"sqlite:///{path}"
    lost: list[str] = []
    with ExitStack() as stack:
        backends = [engines.open(url) for _ in range(4)]
        for backend in backends:
            stack.callback(backend.driver.close)
        await backends[0].run(backends[0].ops.migrate())
        beats = []
        for backend in backends:
            worker_id = new_id()
            backend.run_sync(backend.ops.register(NewWorker(worker_id, lease=LEASE)))
            beats.append(heart(backend, worker_id, lost))
        with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
            for beat in beats:
                beat._beat()
                beat.start()
                stack.callback(beat.stop)
            foreign.execute("BEGIN IMMEDIATE")
            await asyncio.sleep(LOCKED)
            foreign.execute("ROLLBACK")
        await asyncio.sleep(LEASE)
    assert lost == []


def heart(backend: Any, worker_id: str, lost: list[str], lease: float = LEASE) -> Heartbeat:
    return Heartbeat(
        backend, worker_id, lease, dict, lambda _: None, lambda: lost.append(worker_id)
    )


class Away:
    """A store that is away until shortly before a worker gives up; time passes in pauses only."""

    def __init__(self, ops: Any, lease: float, patch: pytest.MonkeyPatch, asks: float) -> None:
        self.ops = ops
        self.pauses: list[float] = []
        self.answered: float | None = None
        self._lease = lease
        self._asks = asks
        patch.setattr(time, "monotonic", lambda: sum(self.pauses))
        patch.setattr(time, "sleep", self.pauses.append)

    def run_sync(self, op: Op[Any]) -> Pulse:
        return persist(self._attempt, op.patience(10.0), op.pause)

    def _attempt(self) -> Pulse:
        if time.monotonic() >= 0.84 * self._lease:
            self.answered = time.monotonic()
            return Pulse(self._lease, WorkerStatus.ACTIVE, [])
        error = StoreUnavailable("away")
        error.after = self._asks
        raise error


@pytest.mark.parametrize("lease", [0.5, 3.0, 10.0, 30.0, 600.0])
@pytest.mark.parametrize("asks", [0.0, 60.0])
def test_it_is_sent_again_before_the_lease_ends(
    lease: float, asks: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the store was away, and however long it asked to be left alone."""
    ops = engines.open("sqlite://").ops
    with monkeypatch.context() as patch:
        away = Away(ops, lease, patch, asks)
        lost: list[str] = []
        beating = heart(away, "worker", lost, lease)
        patch.setattr(beating, "_stopped", _Stopped(away))
        beating._run()
        assert not lost
        assert away.answered is not None
        assert away.answered < 0.9 * lease
        assert len(away.pauses) < 2000


class _Stopped:
    """Waiting is a pause like any other; once a heartbeat went through, it is over."""

    def __init__(self, away: Away) -> None:
        self._away = away

    def is_set(self) -> bool:
        return self._away.answered is not None

    def wait(self, seconds: float) -> None:
        self._away.pauses.append(max(seconds, 0.001))
