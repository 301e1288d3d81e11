"""The driver: performs operations by asyncpg in an event loop, and by psycopg without one.

Both run the same statements. asyncpg was measured up to twice as fast (docs/decisions/0003), and
psycopg needs no loop.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeVar

from fairlane.backoff import persist, persist_async
from fairlane.core.backend import Durability
from fairlane.core.errors import NotSupported, SchemaMissing, StoreError
from fairlane.core.flow import Flow, Mode, Op, perform, perform_async
from fairlane.engines.postgres.address import Address
from fairlane.engines.postgres.caller_transactions.connections import (
    PostgresJoined,
    PostgresTransaction,
)
from fairlane.engines.postgres.caller_transactions.driver import Asyncpg, Link, link_to
from fairlane.engines.postgres.caller_transactions.nesting import StoreIdentity, per_transaction
from fairlane.engines.postgres.calls import (
    BEGIN,
    COMMIT,
    SWEEP,
    WAKE,
    Apart,
    AskNested,
    Query,
    Script,
    Sweep,
    Wake,
)
from fairlane.engines.postgres.claim_limits import WITHIN_LIMITS
from fairlane.engines.postgres.driver_async import BARE, AsyncSide
from fairlane.engines.postgres.driver_async import Connection as AsyncConnection
from fairlane.engines.postgres.driver_sync import Connection as SyncConnection
from fairlane.engines.postgres.driver_sync import SyncSide
from fairlane.engines.postgres.errors import is_fatal
from fairlane.engines.postgres.session import (
    BORROW,
    BORROW_OURS,
    NO_TIME_LIMIT,
    SETTINGS,
    SWEEP_ROOM,
    session_name,
    warnings_about,
)
from fairlane.engines.postgres.wakeup import (
    ANNOUNCE,
    CHANNEL,
    Background,
    Combined,
    PostgresWakeup,
)
from fairlane.engines.waiters import Waiters

T = TypeVar("T")
Afterwards = Wake | Sweep
"""Calls whose effect comes after the operation."""

Call = Query | Script | Apart | AskNested | Afterwards

_USUAL_AT_MOST = 32

_TOGETHER = {Mode.TRANSACTION, Mode.SCHEMA}
"""The modes of operations for which the driver begins and commits a transaction."""


class PostgresDriver:
    """Performs operations on one PostgreSQL database."""

    remote = False
    lock_file = None

    def __init__(
        self,
        url: str,
        *,
        verify: Callable[[], Op[None]],
        patience: float,
        connections: int,
    ) -> None:
        address = Address(url)
        self._name = address.name
        self._verify = verify
        self._patience = patience
        self._verified = False
        self._usual: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """By operation: statements that it runs in transactions."""
        self._usual["claim"].update(dict.fromkeys(WITHIN_LIMITS))
        self._waiters = Waiters()
        self._store = StoreIdentity()
        self._async = AsyncSide(address, connections)
        self._sync = SyncSide(address, connections)
        # Handlers may keep these for long, so heartbeats need other connections.
        self._handlers = AsyncSide(address, connections, plain=True)
        self._announcing = Background(lambda: self._attempt(_ANNOUNCE))
        self._sweeping = Background(lambda: self._async.use(self._sweep))
        self._announcing_sync = Combined(lambda: self._attempt_sync(_ANNOUNCE))

    # -- asyncio -------------------------------------------------------------------------------

    async def run(self, op: Op[T]) -> T:
        return await persist_async(lambda: self._attempt(op), op.patience(self._patience), op.pause)

    async def _attempt(self, op: Op[T]) -> T:
        afterwards: set[Afterwards] = set()
        # Statements of a migration may need what it has made before.
        usual = None if op.mode is Mode.SCHEMA else self._usual[op.name]

        async def converse(connection: AsyncConnection) -> T:
            async def call(request: Call) -> Any:
                if usual is not None and request is BEGIN:
                    return await self._async.begin_prepared(connection, usual)
                if isinstance(request, Query | Script):
                    if usual is not None and connection.is_in_transaction():
                        _learn(usual, request)
                    return await self._async.call(connection, request)
                if isinstance(request, Apart):
                    return await perform_async(request.flow(), call)
                if isinstance(request, AskNested):
                    return False
                afterwards.add(request)
                return None

            return await perform_async(self._flow(op, self._async.pooled), call)

        try:
            result = await self._async.use(converse)
        except StoreError as error:
            self._note_error(error)
            raise
        self._note(op, afterwards)
        if WAKE in afterwards:
            self._announcing.request()
        if SWEEP in afterwards:
            self._sweeping.request()
        return result

    async def _sweep(self, connection: AsyncConnection) -> None:
        await self._async.call(connection, Script(SWEEP_ROOM))

    # -- ordinary code -------------------------------------------------------------------------

    def run_sync(self, op: Op[T]) -> T:
        return persist(lambda: self._attempt_sync(op), op.patience(self._patience), op.pause)

    def _attempt_sync(self, op: Op[T]) -> T:
        afterwards: set[Afterwards] = set()

        def converse(connection: SyncConnection) -> T:
            def call(request: Call) -> Any:
                if isinstance(request, Query | Script):
                    return self._sync.call(connection, request)
                if isinstance(request, Apart):
                    return perform(request.flow(), call)
                if isinstance(request, AskNested):
                    return False
                afterwards.add(request)
                return None

            return perform(self._flow(op, self._sync.pooled), call)

        try:
            result = self._sync.use(converse)
        except StoreError as error:
            self._note_error(error)
            raise
        self._note(op, afterwards)
        if WAKE in afterwards:
            self._announcing_sync.request()
        return result

    # -- both ----------------------------------------------------------------------------------

    def _flow(self, op: Op[T], pooled: bool) -> Flow[T]:
        """Return the flow of an operation, with verification and transactions around it."""
        bare = self._verified and op.mode not in _TOGETHER
        flow = op.flow() if bare else self._wrap(op)
        return per_transaction(flow) if pooled else flow

    def _wrap(self, op: Op[T]) -> Flow[T]:
        """Perform an operation in a transaction if it needs one. Verify the store before."""
        if op.mode is not Mode.SCHEMA and not self._verified:
            yield from self._verify().flow()
            self._verified = True
        if op.mode not in _TOGETHER:
            return (yield from op.flow())
        yield BEGIN
        if op.mode is Mode.SCHEMA:
            yield Script(NO_TIME_LIMIT)  # a migration takes as long as it takes
        result = yield from op.flow()
        yield COMMIT
        return result

    def _note_error(self, error: StoreError) -> None:
        """Verify the store again after an outage: another server may have taken over."""
        if isinstance(error, SchemaMissing) or is_fatal(error):
            self._verified = False

    def _note(self, op: Op[Any], afterwards: set[Afterwards]) -> None:
        if op.mode is Mode.SCHEMA:
            self._verified = False
        if afterwards - {SWEEP}:
            self._waiters.wake()

    # -- transactions --------------------------------------------------------------------------

    def join(self, connection: Any) -> PostgresJoined:
        return self._joined(link_to(connection, self._name), BORROW)

    def _joined(self, link: Link, borrow: str) -> PostgresJoined:
        return PostgresJoined(link, self._store, self.run, self.run_sync, borrow)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresTransaction]:
        begun = await persist_async(self._handlers.begin, self._patience)
        async with self._handlers.transaction(begun) as connection:
            joined = self._joined(Asyncpg(connection, self._name), BORROW_OURS)
            yield PostgresTransaction(connection, joined)

    def transaction_sync(self) -> NoReturn:
        raise NotSupported(
            "On PostgreSQL, blocking code begins a transaction on a connection of its own, and "
            "submits with it: app.submit_sync(call, connection=…)."
        )

    # -- the rest ------------------------------------------------------------------------------

    def serve_worker(self, worker_id: str, lease: float) -> None:  # noqa: ARG002
        for side in (self._async, self._handlers, self._sync):
            side.name(session_name(worker_id))

    async def listen(self) -> PostgresWakeup:
        wakeup = PostgresWakeup(self._waiters, lambda heard: self._async.listen(CHANNEL, heard))
        await wakeup.begin()
        return wakeup

    async def durability(self) -> Durability:
        settings = dict(await self.run(_READ_SETTINGS))
        return Durability("postgresql", settings, warnings_about(settings))

    async def aclose(self) -> None:
        await self._announcing.aclose()
        await self._sweeping.aclose()
        await self._async.aclose()
        await self._handlers.aclose()
        await asyncio.to_thread(self._sync.close)

    def close(self) -> None:
        # Connections of asyncpg end with their loop at the latest.
        self._sync.close()


def _learn(usual: dict[str, None], request: Query | Script) -> None:
    if len(usual) < _USUAL_AT_MOST and isinstance(request, Query) and request.sql not in BARE:
        usual[request.sql] = None


def _flow_of(sql: str) -> Callable[[], Flow[Any]]:
    def flow() -> Flow[Any]:
        return (yield Query(sql))

    return flow


_ANNOUNCE: Op[Any] = Op("announce", Mode.WRITE, _flow_of(ANNOUNCE))
_READ_SETTINGS: Op[Any] = Op("durability", Mode.SCHEMA, _flow_of(SETTINGS))
