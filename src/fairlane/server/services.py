"""What the operations of one server process share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from fairlane.backoff import Backoff
from fairlane.client.batching import Batcher, ResultWaiter
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.client_limits import Rate, Share, Want
from fairlane.core.definitions import DefinitionPage, Published
from fairlane.core.errors import StoreError
from fairlane.core.estimates import PACE_SECONDS, Outlook, outlook_of
from fairlane.core.facts import Facts, Sample
from fairlane.core.ids import new_id
from fairlane.core.lanes import LaneKey
from fairlane.core.model import Accepted, Beat, NewTask, Pulse, Task, Worker
from fairlane.core.retention import past
from fairlane.core.retry import check_pause
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.store import Operations
from fairlane.core.tokens import Scope, Token
from fairlane.maintenance import Maintenance
from fairlane.server.admission import AdmissionControl, RateWindows
from fairlane.server.auth import TOKEN_SECONDS, Identity, TokenCache
from fairlane.server.cached import Cached
from fairlane.server.client_limits import ClientLimits
from fairlane.server.config import ServerConfig
from fairlane.server.holdings import HoldingsCheck
from fairlane.server.long_polls import LongPolls
from fairlane.server.new_lanes import NewLanes, TooManyNewLanes
from fairlane.server.places import Places
from fairlane.server.reports import ReportResult, RunReport, settle_reports
from fairlane.server.store_guard import StoreGuard
from fairlane.server.stream.hub import Hub
from fairlane.server.templates import Templates
from fairlane.server.workers import Workers

logger = logging.getLogger("fairlane.server")

T = TypeVar("T")

SIGN_INS_A_MINUTE: Final = 10
"""Sign-in attempts from one address."""


class Services:
    """A store, and what makes many requests to it cheap.

    It starts with the first request, or with the application's lifespan if there is one: an
    application that is mounted into another one does not learn when that one starts. `prepare`
    migrates or verifies the store; it is called before the first operation.
    """

    def __init__(
        self,
        backend: Backend,
        config: ServerConfig,
        prepare: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.backend = backend
        self.config = config
        self.store = StoreGuard(backend, prepare)
        self.run = self.store.run
        self.submissions = Batcher(self._submit, limits.SUBMIT_BATCH)
        self.results = ResultWaiter(self._get, self._heads)
        self.tokens = TokenCache(
            Cached(self._tokens_exist, TOKEN_SECONDS), self._find, required=config.tokens_required
        )
        self.sign_ins = RateWindows(SIGN_INS_A_MINUTE, 60.0)
        self.templates = Templates(self._definition, self._definition_page)
        self.places = Places(self._look, self._recall)
        self._admission = AdmissionControl(config.admission)
        rates, lane_rates = config.admission.rates(), config.admission.lane_rates()
        self._clients = ClientLimits(rates, partial(self._reserve, rates))
        self._new_lanes = NewLanes(
            ClientLimits(lane_rates, partial(self._reserve, lane_rates), refusal=TooManyNewLanes),
            self._take_lanes,
        )
        self.stopping = asyncio.Event()
        """Set when the server is to stop: requests that wait for something stop waiting."""
        self.workers = Workers(self._workers, self._beat)
        self.holdings = HoldingsCheck(self.store)
        self.polls = LongPolls(self.store, self.stopping)
        self.hub = Hub(self.store, self.stopping, config.listeners)
        self.reports = Batcher(self.settle_reports, limits.BATCH)
        self._background: asyncio.Task[None] | None = None

    @property
    def ops(self) -> Operations:
        """The operations of the store."""
        return self.backend.ops

    async def admit(self, identity: Identity, address: str, tasks: Sequence[NewTask]) -> None:
        """Raise TooManyRequests if these tasks may not be submitted now, and InvalidRetries if the
        caller may not submit them like this."""
        admin = Scope.ADMIN in identity.scopes
        if not admin:
            for task in tasks:
                if task.max_retries > limits.FAST_RETRIES:
                    check_pause(task.spec.retry, task.max_retries)
        outlook = self.places.seen or await self.places.outlook()
        if not identity.exempt:
            self._admission.check(tasks, outlook.waiting)
            if self._clients.limited:
                await self._clients.take(identity.token_id or address, len(tasks))
            if not admin and (new := self._new_lanes.among(tasks)):
                await self._new_lanes.take(identity.subject or identity.token_id, address, new)

    def start(self) -> None:
        """Start the background work, if it has not started."""
        if self._background is None:
            self._background = asyncio.get_running_loop().create_task(self._maintain())

    async def stop(self) -> None:
        """Stop the background work, and end what waits."""
        self.stopping.set()
        await self.polls.stop()
        await self.hub.stop()
        background, self._background = self._background, None
        if background is not None:
            background.cancel()
            await asyncio.gather(background, return_exceptions=True)
        await self.store.stop()

    async def _maintain(self) -> None:
        await self._prepare()
        with suppress(StoreError):
            await self._tokens_exist()  # known from the beginning, in case that they get lost
        if self.config.maintenance:
            await Maintenance(self.backend, new_id()).run()

    async def _prepare(self) -> None:
        """Prepare the store, however long it takes: a migration may take longer than a request
        waits."""
        backoff = Backoff()
        while True:
            try:
                await self.store.prepare()
            except StoreError as error:
                logger.warning("The store is not ready yet: %s", error)
                await asyncio.sleep(backoff.next())
            else:
                return

    async def _submit(self, tasks: Sequence[NewTask]) -> list[Accepted]:
        return await self.run(self.ops.submit(tasks))

    async def _definition(self, type: str) -> Published | None:
        return await self.run(self.ops.definition(type))

    async def _definition_page(self, cursor: str | None, limit: int) -> DefinitionPage:
        return await self.run(self.ops.definition_page(cursor, limit))

    async def _settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self.run(self.ops.settle(settlements))

    async def settle_reports(self, reports: Sequence[RunReport]) -> list[ReportResult]:
        """Record the reports of workers, up to 500 at once."""
        return await settle_reports(self._heads, self._get, self._settle, reports)

    async def _workers(self) -> list[Worker]:
        return await self.run(self.ops.workers())

    async def _beat(self, beat: Beat) -> Pulse:
        return await self.run(self.ops.heartbeat(beat))

    async def _get(self, task_ids: Sequence[str]) -> list[Task | None]:
        return await self.run(self.ops.get(task_ids))

    async def _heads(self, task_ids: Sequence[str]) -> list[Task | None]:
        return await self.run(self.ops.heads(task_ids))

    async def _look(self) -> Outlook:
        known, outlook = await from_facts(self, _keys_and_outlook)
        self._new_lanes.see(known)
        return outlook

    async def _reserve(self, rates: Sequence[Rate], wants: Sequence[Want]) -> list[Share]:
        return await self.run(self.ops.reserve(rates, wants))

    async def _take_lanes(self, subject: str, lanes: Sequence[LaneKey]) -> None:
        await self.run(self.ops.take_lanes(subject, lanes))

    async def _recall(self, now: int) -> list[Sample]:
        return await self.run(self.ops.samples(past(PACE_SECONDS, now), limits.PAGE))

    async def _tokens_exist(self) -> bool:
        exist = bool(await self.run(self.ops.tokens()))
        self.backend.has_tokens = self.backend.has_tokens or exist
        return exist

    def _find(self, digest: bytes) -> Cached[Token | None]:
        async def find() -> Token | None:
            return await self.run(self.ops.token(digest))

        return Cached(find, TOKEN_SECONDS)


async def from_facts(services: Services, derive: Callable[[Facts], T]) -> T:
    """Return what follows from the counters of the store. In a thread: with thousands of lanes it
    takes long, and other requests must not wait."""
    return await asyncio.to_thread(derive, await services.run(services.ops.facts()))


def _keys_and_outlook(facts: Facts) -> tuple[set[LaneKey], Outlook]:
    return {lane.key for lane in facts.lanes.values()}, outlook_of(facts)
