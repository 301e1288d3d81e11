"""`fairlane worker` as a process that may be treated badly."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from fairlane import Fairlane
from fairlane.core.model import Worker, WorkerStatus
from tests.e2e.chaos.app import HISTORY, TARGET
from tests.e2e.history.lines import Killed, Recorder

ROOT = Path(__file__).parents[3]
STOP_SECONDS = 60.0


class WorkerProcess:
    """One process. What it says goes to a file, which a failing test shows."""

    def __init__(
        self,
        app: Fairlane,
        folder: Path,
        recorder: Recorder,
        *flags: str,
        store: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._app = app
        self._recorder = recorder
        self._log = folder / "workers.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fairlane", "worker", "--app", TARGET, *flags],
                cwd=ROOT,
                env={
                    **{name: each for name, each in os.environ.items() if "FAIRLANE" not in name},
                    "FAIRLANE_STORE": app.url if store is None else store,
                    HISTORY: str(folder / "handlers.jsonl"),
                    **(environment or {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.pid = self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    async def itself(self) -> Worker | None:
        """The worker as the store knows it; None while it is not registered."""
        workers = await self._app.run(self._app.backend.ops.workers())
        mine = [
            worker
            for worker in workers
            if worker.host.endswith(f":{self.pid}") and worker.status is not WorkerStatus.DEAD
        ]
        return mine[-1] if mine else None

    async def kill(self) -> None:
        """What the kernel's OOM killer does; the history knows of it."""
        worker = await self.itself()
        self.signal(signal.SIGKILL)
        if worker is not None:
            self._recorder.write(Killed, worker=worker.worker_id)
        await self.gone()

    async def killed(self) -> None:
        """Until something else has killed it; the history knows of it."""
        assert await self.gone() == -signal.SIGKILL
        worker = await self.itself()
        if worker is not None:
            self._recorder.write(Killed, worker=worker.worker_id)

    async def stop(self) -> None:
        """What an orderly restart does."""
        self.signal(signal.SIGTERM)
        assert await self.gone() == 0

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def gone(self) -> int:
        return await asyncio.to_thread(self._process.wait, STOP_SECONDS)

    def discard(self) -> None:
        """At the end of a test, whatever became of it."""
        if self.running:
            self._process.kill()
        self._process.wait()
