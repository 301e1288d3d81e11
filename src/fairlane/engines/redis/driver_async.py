"""The driver for asyncio: up to 16 connections of redis-py per loop, one call at a time on each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from redis import exceptions
from redis.asyncio import connection as awaiting
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from fairlane.core.errors import AccessDenied, SchemaMissing, StoreUnavailable
from fairlane.core.flow import Mode, Op, perform_async
from fairlane.engines.redis.address import Address
from fairlane.engines.redis.calls import Command, Run
from fairlane.engines.redis.driver_wire import (
    CONNECTIONS,
    PING,
    ROLE,
    breaks_connection,
    drop_tracebacks,
    not_the_master,
    omit_client_info,
    pack,
    pack_load,
    pack_master_query,
    pack_request,
    store_closed,
    translated,
)
from fairlane.engines.redis.sentinels import Endpoint
from fairlane.engines.redis.wakeup import Subscription

T = TypeVar("T")

Connection = awaiting.AbstractConnection

# After this time without a message, a subscription sends PING to check the connection.
_QUIET_SECONDS = 15.0


class _Pool:
    """The idle connections of a loop, and a limit for all of them."""

    def __init__(self) -> None:
        self.idle: list[Connection] = []
        self.free = asyncio.Semaphore(CONNECTIONS)


class AsyncSide:
    """Perform operations on a pool of connections per loop."""

    def __init__(self, address: Address, verify: Callable[[], Op[None]]) -> None:
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()
        self._address = address
        self._verify = verify
        self._closed = False

    async def attempt(self, op: Op[T]) -> T:
        """Perform an operation once, without a retry."""
        pool = self._pool()
        async with pool.free:
            connection = pool.idle.pop() if pool.idle else await self._open()

            async def call(request: Run | Command) -> Any:
                return await self._call(connection, request)

            try:
                return await perform_async(op.flow(), call)
            except SchemaMissing:
                if op.mode is not Mode.SCHEMA:
                    await perform_async(self._verify().flow(), call)
                raise
            except StoreUnavailable:
                if not connection.is_connected:
                    await _drop(pool.idle)  # they are broken as well
                raise
            finally:
                if self._closed:
                    await connection.disconnect(nowait=True)
                elif connection.is_connected:
                    pool.idle.append(connection)

    async def subscribe(self, channel: str) -> Subscription:
        """Return a connection that listens on a channel."""
        connection = await self._open()
        try:
            await self._exchange(connection, pack("SUBSCRIBE", channel))
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return _Subscription(connection, self._address)

    async def aclose(self) -> None:
        """Close the connections of this loop. Those of other loops close after their operation."""
        self._closed = True
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            while pool.idle:
                await pool.idle.pop().disconnect()

    def close(self) -> None:
        self._closed = True

    def __del__(self) -> None:
        """Close the connections of a driver that was not closed, each in its own loop."""
        for loop, pool in self._pools.items():
            for connection in pool.idle:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_disconnect, loop, connection)

    # -- calls ---------------------------------------------------------------------------------

    async def _call(self, connection: Connection, request: Run | Command) -> Any:
        try:
            return await self._exchange(connection, pack_request(request))
        except exceptions.NoScriptError as error:
            drop_tracebacks(error)
            assert isinstance(request, Run)
            await self._exchange(connection, pack_load(request))
            return await self._exchange(connection, pack_request(request))

    async def _exchange(
        self, connection: Connection, call: Iterable[bytes], sentinel: Endpoint | None = None
    ) -> Any:
        """Send a call and return its reply. An interruption closes the connection: the late reply
        must not be read as the reply of the next call."""
        try:
            async with asyncio.timeout(self._address.reply_seconds):
                for piece in call:  # the next one is packed once this one is on its way
                    await connection.send_packed_command(piece, check_health=False)
                return await connection.read_response()
        except exceptions.NoScriptError:
            raise
        except BaseException as error:  # noqa: BLE001 (raised again)
            meaning = translated(self._address, error, sentinel)
            if breaks_connection(error, meaning):
                await connection.disconnect(nowait=True)
            if meaning is not error:
                drop_tracebacks(error)
            raise meaning from None

    # -- connections ---------------------------------------------------------------------------

    def _pool(self) -> _Pool:
        if self._closed:
            raise store_closed()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = _Pool()
        return pool

    async def _open(self) -> Connection:
        """Return a new connection to the master. Without Sentinels its first call connects it."""
        if self._address.sentinels is None:
            return self._new(self._address.options)
        master = await perform_async(self._address.sentinels.master(), self._ask)
        connection = self._new(self._address.master_options(master))
        try:
            role, *_ = await self._exchange(connection, ROLE)
        except AccessDenied:
            if not connection.is_connected:
                raise
            return connection  # the user has no right to ROLE: trust the Sentinel
        if role != b"master":
            await connection.disconnect(nowait=True)
            raise not_the_master(self._address, master)
        return connection

    async def _ask(self, sentinel: Endpoint) -> Any:
        connection = self._new(self._address.sentinel_options(sentinel))
        try:
            return await self._exchange(connection, pack_master_query(self._address), sentinel)
        finally:
            await connection.disconnect(nowait=True)

    def _new(self, options: Mapping[str, Any]) -> Connection:
        kind: type[Connection]
        if self._address.path is not None:
            kind = awaiting.UnixDomainSocketConnection
        else:
            kind = awaiting.SSLConnection if self._address.tls else awaiting.Connection
        # `_exchange` has its own time limit, which is cheaper.
        own: dict[str, Any] = {"socket_timeout": None, "retry": Retry(NoBackoff(), 0)}
        connection: Connection = omit_client_info(kind(**options, **own, protocol=2))
        return connection


class _Subscription:
    """A connection that only listens."""

    def __init__(self, connection: Connection, address: Address) -> None:
        self._connection = connection
        self._address = address

    async def message(self) -> None:
        # Without PING, a server that is cut off or frozen would never be noticed.
        try:
            while True:
                reply = await self._connection.read_response(timeout=_QUIET_SECONDS)
                if reply is None:
                    await self._connection.send_packed_command(PING, check_health=False)
                    seconds = self._address.reply_seconds
                    reply = await self._connection.read_response(timeout=seconds)
                    if reply is None:
                        raise TimeoutError
                if reply[0] == b"message":
                    return
        except (exceptions.RedisError, OSError) as error:
            drop_tracebacks(error)
            raise translated(self._address, error) from None

    async def aclose(self) -> None:
        await self._connection.disconnect(nowait=True)


async def _drop(idle: list[Connection]) -> None:
    while idle:
        await idle.pop().disconnect(nowait=True)


def _disconnect(loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
    loop.create_task(connection.disconnect(nowait=True))
