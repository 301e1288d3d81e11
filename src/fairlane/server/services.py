"""What the operations of one server process share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, TypeVar

from fairlane.backoff import Backoff
from fairlane.client.app import Fairlane
from fairlane.client.batching import Batcher, ResultWaiter
from fairlane.core import limits
from fairlane.core.errors import StoreError
from fairlane.core.estimates import Outlook, outlook_of
from fairlane.core.flow import Op
from fairlane.core.ids import new_id
from fairlane.core.machine import Settlement
from fairlane.core.model import Accepted, Beat, NewTask, Pulse, Task, Verdict, Worker
from fairlane.core.retention import DEFAULT
from fairlane.core.store import Operations
from fairlane.core.tokens import Token
from fairlane.maintenance import Maintenance
from fairlane.server.admission import Door, Windows
from fairlane.server.cached import Cached
from fairlane.server.config import ServerConfig
from fairlane.server.identity import Identity
from fairlane.server.keys import SECONDS, Keys
from fairlane.server.long_polls import LongPolls
from fairlane.server.reports import Judgement, RunReport, settled
from fairlane.server.store_guard import StoreGuard
from fairlane.server.stream.hub import Hub
from fairlane.server.workers import Workers

logger = logging.getLogger("fairlane.server")

T = TypeVar("T")

SIGN_INS_A_MINUTE: Final = 10
"""Tries of one address."""
OUTLOOK_SECONDS: Final = 0.5
"""How old a view of the queues may be that estimates and admission go by."""


class Services:
    """A store, and what makes many requests to it cheap.

    It starts with the first request, or with the application's lifespan if there is one: an
    application that is mounted into another is not told when that starts.
    """

    def __init__(self, app: Fairlane, config: ServerConfig) -> None:
        self.app = app
        self.config = config
        self.store = StoreGuard(app)
        self.submissions = Batcher(self._submit, limits.SUBMIT_BATCH)
        self.results = ResultWaiter(self._get)
        self.keys = Keys(
            Cached(self._tokens_exist, SECONDS), self._find, required=config.tokens_required
        )
        self.sign_ins = Windows(SIGN_INS_A_MINUTE, 60.0)
        self._outlook = Cached(self._look, OUTLOOK_SECONDS)
        self._door = Door(config.admission)
        self.stopping = asyncio.Event()
        """Set when the server is to stop: whoever waits for something stops waiting."""
        self.workers = Workers(self._workers, self._beat)
        self.polls = LongPolls(self.store, self.stopping)
        self.hub = Hub(self.store, self.stopping, config.listeners)
        self.reports = Batcher(self.settled, limits.BATCH)
        self._background: list[asyncio.Task[None]] = []
        self._started = False

    @property
    def ops(self) -> Operations:
        """What can be asked of the store."""
        return self.store.ops

    async def run(self, op: Op[T]) -> T:
        """Perform an operation on the store."""
        return await self.store.run(op)

    async def outlook(self) -> Outlook:
        """The queues as they stood a moment ago."""
        return await self._outlook.get()

    async def admit(self, identity: Identity, address: str, tasks: Sequence[NewTask]) -> Outlook:
        """Raise TooMany unless these may be submitted now; answers what the queues look like."""
        outlook = await self._outlook.get()
        self._door.admit(identity, address, tasks, outlook.depth)
        return outlook

    def start(self) -> None:
        """Begin with what goes on in the background; once is enough."""
        if self._started:
            return
        self._started = True
        self._background.append(asyncio.get_running_loop().create_task(self._maintain()))

    async def stop(self) -> None:
        """End what goes on in the background."""
        self.stopping.set()
        await self.polls.stop()
        await self.hub.stop()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.store.stop()
        self._background.clear()
        self._started = False

    async def _maintain(self) -> None:
        await self._prepare()
        if self.config.maintenance:
            await Maintenance(self.app.backend, new_id(), DEFAULT).run()

    async def _prepare(self) -> None:
        """The store is ready after the first call. To bring it up to date may take longer than a
        request waits."""
        backoff = Backoff()
        while True:
            try:
                await self.app.run(self.ops.controls())
            except StoreError as error:
                logger.warning("The store is not ready yet: %s", error)
                await asyncio.sleep(backoff.next())
            else:
                return

    async def _submit(self, tasks: Sequence[NewTask]) -> list[Accepted]:
        return await self.run(self.ops.submit(tasks))

    async def _settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        return await self.run(self.ops.settle(settlements))

    async def settled(self, reports: Sequence[RunReport]) -> list[Judgement]:
        """Record what workers report, up to 500 at once."""
        return await settled(self._get, self._settle, reports)

    async def _workers(self) -> list[Worker]:
        return await self.run(self.ops.workers())

    async def _beat(self, beat: Beat) -> Pulse:
        return await self.run(self.ops.heartbeat(beat))

    async def _get(self, task_ids: Sequence[str]) -> list[Task | None]:
        return await self.run(self.ops.get(task_ids))

    async def _look(self) -> Outlook:
        return outlook_of(await self.run(self.ops.facts()))

    async def _tokens_exist(self) -> bool:
        return bool(await self.run(self.ops.tokens()))

    def _find(self, digest: bytes) -> Cached[Token | None]:
        async def find() -> Token | None:
            return await self.run(self.ops.token(digest))

        return Cached(find, SECONDS)
