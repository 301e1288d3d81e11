"""PostgreSQL as a driver: asyncpg where there is a loop, psycopg where there is none.

Both run the same statements. asyncpg was measured up to twice as fast (docs/decisions/0003), and
psycopg needs no loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fairlane.core.errors import SchemaMissing
from fairlane.core.flow import Mode, Op, perform, perform_async, persist, persist_async
from fairlane.core.store import Durability
from fairlane.engines.postgres.address import Address
from fairlane.engines.postgres.calls import (
    BEGIN,
    COMMIT,
    SWEEP,
    WAKE,
    Query,
    Script,
    Sweep,
    Wake,
)
from fairlane.engines.postgres.driver_async import AsyncSide
from fairlane.engines.postgres.driver_async import Connection as AsyncConnection
from fairlane.engines.postgres.driver_sync import Connection as SyncConnection
from fairlane.engines.postgres.driver_sync import SyncSide
from fairlane.engines.postgres.session import SETTINGS, SWEEP_ROOM, warnings_about
from fairlane.engines.postgres.wakeup import (
    ANNOUNCE,
    CHANNEL,
    Background,
    Errand,
    PostgresWakeup,
)
from fairlane.engines.waiters import Waiters

T = TypeVar("T")
Aside = Wake | Sweep
"""What an operation asks for beside its own work."""

Call = Query | Script | Aside

_TOGETHER = {Mode.TRANSACTION, Mode.SCHEMA}
"""What runs in a transaction of the driver's. (Other operations are whole by themselves.)"""


class PostgresDriver:
    """Performs operations on one PostgreSQL database."""

    def __init__(
        self,
        url: str,
        *,
        verify: Callable[[], Op[None]],
        patience: float,
        connections: int,
    ) -> None:
        address = Address(url)
        self._verify = verify
        self._patience = patience
        self._verified = False
        self._waiters = Waiters()
        self._async = AsyncSide(address, connections)
        self._sync = SyncSide(address, connections)
        self._announcing = Background(lambda: self._async.use(self._announce))
        self._sweeping = Background(lambda: self._async.use(self._sweep))
        self._announcing_sync = Errand(lambda: self._sync.use(self._announce_sync))

    # -- asyncio -------------------------------------------------------------------------------

    async def run(self, op: Op[T]) -> T:
        return await persist_async(lambda: self._attempt(op), self._patience)

    async def _attempt(self, op: Op[T]) -> T:
        asides: set[Aside] = set()

        async def converse(connection: AsyncConnection) -> T:
            async def call(request: Call) -> Any:
                if isinstance(request, Wake | Sweep):
                    asides.add(request)
                    return None
                return await self._async.call(connection, request)

            if op.mode is not Mode.SCHEMA and not self._verified:
                await perform_async(self._verify().flow(), call)
                self._verified = True
            if op.mode not in _TOGETHER:
                return await perform_async(op.flow(), call)
            await call(BEGIN)
            result = await perform_async(op.flow(), call)
            await call(COMMIT)
            return result

        try:
            result = await self._async.use(converse)
        except SchemaMissing:
            self._verified = False
            raise
        self._note(op, asides)
        if WAKE in asides:
            self._announcing.ask()
        if SWEEP in asides:
            self._sweeping.ask()
        return result

    async def _announce(self, connection: AsyncConnection) -> None:
        await self._async.call(connection, Query(ANNOUNCE))

    async def _sweep(self, connection: AsyncConnection) -> None:
        await self._async.call(connection, Script(SWEEP_ROOM))

    # -- ordinary code -------------------------------------------------------------------------

    def run_sync(self, op: Op[T]) -> T:
        return persist(lambda: self._attempt_sync(op), self._patience)

    def _attempt_sync(self, op: Op[T]) -> T:
        asides: set[Aside] = set()

        def converse(connection: SyncConnection) -> T:
            def call(request: Call) -> Any:
                if isinstance(request, Wake | Sweep):
                    asides.add(request)
                    return None
                return self._sync.call(connection, request)

            if op.mode is not Mode.SCHEMA and not self._verified:
                perform(self._verify().flow(), call)
                self._verified = True
            if op.mode not in _TOGETHER:
                return perform(op.flow(), call)
            call(BEGIN)
            result = perform(op.flow(), call)
            call(COMMIT)
            return result

        try:
            result = self._sync.use(converse)
        except SchemaMissing:
            self._verified = False
            raise
        self._note(op, asides)
        if WAKE in asides:
            self._announcing_sync.ask()
        return result

    def _announce_sync(self, connection: SyncConnection) -> None:
        self._sync.call(connection, Query(ANNOUNCE))

    # -- both ----------------------------------------------------------------------------------

    def _note(self, op: Op[Any], asides: set[Aside]) -> None:
        if op.mode is Mode.SCHEMA:
            self._verified = False
        if asides - {SWEEP}:
            self._waiters.wake()

    async def listen(self) -> PostgresWakeup:
        wakeup = PostgresWakeup(self._waiters, lambda heard: self._async.listen(CHANNEL, heard))
        await wakeup.begin()
        return wakeup

    async def durability(self) -> Durability:
        async def read(connection: AsyncConnection) -> dict[str, str]:
            return dict(await self._async.call(connection, Query(SETTINGS)))

        settings = await persist_async(lambda: self._async.use(read), self._patience)
        return Durability("postgresql", settings, warnings_about(settings))

    async def aclose(self) -> None:
        await self._announcing.aclose()
        await self._sweeping.aclose()
        await self._async.aclose()
        await asyncio.to_thread(self._sync.close)

    def close(self) -> None:
        # What a loop has opened ends with the loop, at the latest.
        self._sync.close()
