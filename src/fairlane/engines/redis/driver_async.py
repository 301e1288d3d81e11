"""redis-py's connections for asyncio: a few per loop, each with one call on its way at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
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
    closed,
    let_go,
    loading,
    not_the_master,
    pack,
    packed,
    says_nothing,
    spoils,
    translated,
    where_is,
)
from fairlane.engines.redis.sentinels import Endpoint
from fairlane.engines.redis.wakeup import Subscription

T = TypeVar("T")

Connection = awaiting.AbstractConnection

# A server that says nothing for so long is asked whether it is still there.
_QUIET_SECONDS = 15.0


class _Pool:
    """Connections that idle, and a bound on how many there are."""

    def __init__(self) -> None:
        self.idle: list[Connection] = []
        self.free = asyncio.Semaphore(CONNECTIONS)


class AsyncSide:
    """Connections of each loop."""

    def __init__(self, address: Address, verify: Callable[[], Op[None]]) -> None:
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()
        self._address = address
        self._verify = verify
        self._closed = False

    async def attempt(self, op: Op[T]) -> T:
        """Perform an operation, once."""
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
                    await _drop(pool.idle)  # they will be of no use as well
                raise
            finally:
                if self._closed:
                    await connection.disconnect(nowait=True)
                elif connection.is_connected:
                    pool.idle.append(connection)

    async def subscribe(self, channel: str) -> Subscription:
        """A connection that listens on a channel."""
        connection = await self._open()
        try:
            await self._exchange(connection, pack("SUBSCRIBE", channel))
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return _Subscription(connection, self._address)

    async def aclose(self) -> None:
        """Let go of the connections of this loop; those of others end with what they do."""
        self._closed = True
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            while pool.idle:
                await pool.idle.pop().disconnect()

    def close(self) -> None:
        self._closed = True

    def __del__(self) -> None:
        """Whoever just drops a driver hangs up as well, each connection in its own loop."""
        for loop, pool in self._pools.items():
            for connection in pool.idle:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_hang_up, loop, connection)

    # -- calls ---------------------------------------------------------------------------------

    async def _call(self, connection: Connection, request: Run | Command) -> Any:
        try:
            return await self._exchange(connection, packed(request))
        except exceptions.NoScriptError as error:
            let_go(error)
            assert isinstance(request, Run)
            await self._exchange(connection, loading(request))
            return await self._exchange(connection, packed(request))

    async def _exchange(
        self, connection: Connection, call: bytes, sentinel: Endpoint | None = None
    ) -> Any:
        """Send a call and read its reply. Whoever is interrupted in between hangs up: the reply
        that is still to come must not be taken for that of the next call."""
        try:
            async with asyncio.timeout(self._address.reply_seconds):
                await connection.send_packed_command(call, check_health=False)
                return await connection.read_response()
        except exceptions.NoScriptError:
            raise
        except BaseException as error:  # noqa: BLE001 (raised again)
            meaning = translated(self._address, error, sentinel)
            if spoils(error, meaning):
                await connection.disconnect(nowait=True)
            if meaning is not error:
                let_go(error)
            raise meaning from None

    # -- connections ---------------------------------------------------------------------------

    def _pool(self) -> _Pool:
        if self._closed:
            raise closed()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = _Pool()
        return pool

    async def _open(self) -> Connection:
        """A new connection. Without Sentinels it is made by its first call."""
        if self._address.sentinels is None:
            return self._new(self._address.options)
        master = await perform_async(self._address.sentinels.master(), self._ask)
        connection = self._new(self._address.of_master(master))
        try:
            role, *_ = await self._exchange(connection, ROLE)
        except AccessDenied:
            if not connection.is_connected:
                raise
            return connection  # it may not be asked: the Sentinel's word has to do
        if role != b"master":
            await connection.disconnect(nowait=True)
            raise not_the_master(self._address, master)
        return connection

    async def _ask(self, sentinel: Endpoint) -> Any:
        connection = self._new(self._address.of_sentinel(sentinel))
        try:
            return await self._exchange(connection, where_is(self._address), sentinel)
        finally:
            await connection.disconnect(nowait=True)

    def _new(self, options: Mapping[str, Any]) -> Connection:
        kind: type[Connection]
        if self._address.path is not None:
            kind = awaiting.UnixDomainSocketConnection
        else:
            kind = awaiting.SSLConnection if self._address.tls else awaiting.Connection
        # `_exchange` has a time limit of its own, which is cheaper.
        own: dict[str, Any] = {"socket_timeout": None, "retry": Retry(NoBackoff(), 0)}
        connection: Connection = says_nothing(kind(**options, **own, protocol=2))
        return connection


class _Subscription:
    """A connection that does nothing but listen."""

    def __init__(self, connection: Connection, address: Address) -> None:
        self._connection = connection
        self._address = address

    async def message(self) -> None:
        # A server that is gone without a word (cut off, frozen) would be waited for for ever.
        try:
            while True:
                said = await self._connection.read_response(timeout=_QUIET_SECONDS)
                if said is None:
                    await self._connection.send_packed_command(PING, check_health=False)
                    said = await self._connection.read_response(timeout=self._address.reply_seconds)
                    if said is None:
                        raise TimeoutError
                if said[0] == b"message":
                    return
        except (exceptions.RedisError, OSError) as error:
            let_go(error)
            raise translated(self._address, error) from None

    async def aclose(self) -> None:
        await self._connection.disconnect(nowait=True)


async def _drop(idle: list[Connection]) -> None:
    while idle:
        await idle.pop().disconnect(nowait=True)


def _hang_up(loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
    loop.create_task(connection.disconnect(nowait=True))
