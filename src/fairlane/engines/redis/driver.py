"""Redis as a driver: a few connections, each with one call on its way at a time.

redis-py does the connecting (TLS, passwords, unix sockets) and reads replies; calls are packed in C
by hiredis and sent straight away, because the library's own client costs more than the script it
calls. Nothing is ever sent again behind our back: operations can be repeated, and `persist` does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from hiredis import pack_command
from redis import connection as blocking
from redis import exceptions
from redis.asyncio import connection as awaiting
from redis.asyncio.retry import Retry as AwaitingRetry
from redis.backoff import NoBackoff
from redis.retry import Retry as BlockingRetry

from fairlane.core.errors import (
    AccessDenied,
    InvalidStoreURL,
    SchemaMissing,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from fairlane.core.flow import Mode, Op, perform, perform_async, persist, persist_async
from fairlane.core.store import Durability
from fairlane.engines.redis.scripts import Script
from fairlane.engines.redis.troubles import meaning
from fairlane.engines.redis.wakeup import RedisWakeup

T = TypeVar("T")

Argument = bytes | str | int | float

# redis-py leaves this half of itself untyped.
BlockingConnection = Any
_parse_url: Any = blocking.parse_url

_CONNECTIONS = 16
_CONNECT_SECONDS = 5.0
# Every script is bounded and takes milliseconds: a server that is silent for so long is gone.
_REPLY_SECONDS = 10.0

_SETTINGS = ("appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy")


class Run(NamedTuple):
    """A script on one store."""

    script: Script
    prefix: str
    arguments: Sequence[Argument]


class Command(NamedTuple):
    """A plain command."""

    words: Sequence[Argument]


def _packed(request: Run | Command) -> bytes:
    if isinstance(request, Run):
        return _pack("EVALSHA", request.script.sha, 1, request.prefix, *request.arguments)
    return _pack(*request.words)


def _loading(request: Run) -> bytes:
    return _pack("SCRIPT", "LOAD", request.script.source)


def _pack(*words: Argument) -> bytes:
    # Its annotation allows for one word only.
    packed: bytes = pack_command(words)  # type: ignore[arg-type]
    return packed


class _Connections:
    """Connections that idle, and a bound on how many there are. One of it per event loop."""

    def __init__(self) -> None:
        self.idle: list[awaiting.AbstractConnection] = []
        self.free = asyncio.Semaphore(_CONNECTIONS)


class RedisDriver:
    """Performs operations on one Redis or Valkey server."""

    def __init__(
        self, url: str, *, verify: Callable[[], Op[None]], channel: str, patience: float = 10.0
    ) -> None:
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connections] = (
            WeakKeyDictionary()
        )
        self._name = _name(url)
        try:
            self._options: dict[str, Any] = dict(_parse_url(url))
            self._awaiting_options: dict[str, Any] = dict(awaiting.parse_url(url))
        except ValueError:
            raise InvalidStoreURL from None
        self._verify = verify
        self._channel = channel
        self._patience = patience
        self._closed = False
        self._idle: list[BlockingConnection] = []
        self._free = threading.BoundedSemaphore(_CONNECTIONS)

    # -- asyncio -------------------------------------------------------------------------------

    async def run(self, op: Op[T]) -> T:
        return await persist_async(lambda: self._attempt(op), self._patience)

    async def _attempt(self, op: Op[T]) -> T:
        pool = self._pool()
        async with pool.free:
            connection = pool.idle.pop() if pool.idle else self._new()

            async def call(request: Run | Command) -> Any:
                return await self._call(connection, request)

            try:
                return await perform_async(op.flow(), call)
            except SchemaMissing:
                if op.mode is not Mode.SCHEMA:
                    await perform_async(self._verify().flow(), call)
                raise
            except StoreUnavailable:
                await self._drop_idle(pool)  # they will be broken as well
                raise
            finally:
                if self._closed:
                    await connection.disconnect(nowait=True)
                elif connection.is_connected:
                    pool.idle.append(connection)

    async def _call(self, connection: awaiting.AbstractConnection, request: Run | Command) -> Any:
        try:
            return await self._exchange(connection, _packed(request))
        except exceptions.NoScriptError as error:
            _let_go(error)
            assert isinstance(request, Run)
            await self._exchange(connection, _loading(request))
            return await self._exchange(connection, _packed(request))

    async def _exchange(self, connection: awaiting.AbstractConnection, packed: bytes) -> Any:
        """Send a call and read its reply. Whoever is interrupted in between hangs up: the reply
        that is still to come must not be taken for that of the next call."""
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                await connection.send_packed_command(packed, check_health=False)
                return await connection.read_response()
        except exceptions.NoScriptError:
            raise
        except BaseException as error:  # noqa: BLE001 (raised again)
            if not isinstance(error, exceptions.ResponseError):
                await connection.disconnect(nowait=True)
            translated = self._translated(error)
            if translated is not error:
                _let_go(error)
            raise translated from None

    def _pool(self) -> _Connections:
        self._check_open()
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = _Connections()
        return pool

    def _new(self) -> awaiting.AbstractConnection:
        options = {
            "socket_connect_timeout": _CONNECT_SECONDS,
            **self._awaiting_options,
            "socket_timeout": None,  # `_exchange` has its own, which is cheaper
            "retry": AwaitingRetry(NoBackoff(), 0),
            "protocol": 2,
        }
        kind = options.pop("connection_class", awaiting.Connection)
        connection: awaiting.AbstractConnection = kind(**options)
        return connection

    async def _drop_idle(self, pool: _Connections) -> None:
        while pool.idle:
            await pool.idle.pop().disconnect(nowait=True)

    # -- ordinary code -------------------------------------------------------------------------

    def run_sync(self, op: Op[T]) -> T:
        return persist(lambda: self._attempt_sync(op), self._patience)

    def _attempt_sync(self, op: Op[T]) -> T:
        self._check_open()
        with self._free:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._new_sync()

            def call(request: Run | Command) -> Any:
                return self._call_sync(connection, request)

            try:
                return perform(op.flow(), call)
            except SchemaMissing:
                if op.mode is not Mode.SCHEMA:
                    perform(self._verify().flow(), call)
                raise
            except StoreUnavailable:
                self._drop_idle_sync()
                raise
            finally:
                if self._closed:
                    connection.disconnect()
                elif connection.is_connected:
                    self._idle.append(connection)

    def _call_sync(self, connection: BlockingConnection, request: Run | Command) -> Any:
        try:
            return self._exchange_sync(connection, _packed(request))
        except exceptions.NoScriptError as error:
            _let_go(error)
            assert isinstance(request, Run)
            self._exchange_sync(connection, _loading(request))
            return self._exchange_sync(connection, _packed(request))

    def _exchange_sync(self, connection: BlockingConnection, packed: bytes) -> Any:
        try:
            connection.send_packed_command([packed], check_health=False)
            return connection.read_response()
        except exceptions.NoScriptError:
            raise
        except BaseException as error:  # noqa: BLE001 (raised again)
            if not isinstance(error, exceptions.ResponseError):
                connection.disconnect()
            translated = self._translated(error)
            if translated is not error:
                _let_go(error)
            raise translated from None

    def _new_sync(self) -> BlockingConnection:
        options = {
            "socket_connect_timeout": _CONNECT_SECONDS,
            "socket_timeout": _REPLY_SECONDS,
            **self._options,
            "retry": BlockingRetry(NoBackoff(), 0),
            "protocol": 2,
        }
        kind = options.pop("connection_class", blocking.Connection)
        return kind(**options)

    def _drop_idle_sync(self) -> None:
        while self._idle:
            self._idle.pop().disconnect()

    # -- troubles ------------------------------------------------------------------------------

    def _translated(self, error: BaseException) -> BaseException:
        """The error as users read it."""
        match error:
            case exceptions.AuthenticationError() | exceptions.NoPermissionError():
                return meaning(self._name, "NOPERM", "")
            case exceptions.BusyLoadingError():
                return meaning(self._name, "LOADING", "")
            case exceptions.OutOfMemoryError():
                return meaning(self._name, "OOM", "")
            case exceptions.ReadOnlyError():
                return meaning(self._name, "READONLY", "")
            case exceptions.MasterDownError():
                return meaning(self._name, "MASTERDOWN", "")
            case exceptions.ClusterDownError() | exceptions.TryAgainError():
                return meaning(self._name, "CLUSTERDOWN", "")
            case exceptions.MovedError():
                return meaning(self._name, "MOVED", "")
            case exceptions.ResponseError():
                return meaning(self._name, str(error).partition(" ")[0], str(error))
            case PermissionError():
                return AccessDenied(f"{self._name} cannot be opened: check the rights of its path.")
            case TimeoutError() | exceptions.TimeoutError():
                return StoreUnavailable(f"{self._name} does not answer.")
            case exceptions.RedisError() | OSError():
                return StoreUnavailable(f"{self._name} cannot be reached at the moment.")
            case _:
                return error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnusable("This store was closed: open it again.")

    # -- the rest ------------------------------------------------------------------------------

    async def listen(self) -> RedisWakeup:
        wakeup = RedisWakeup(self._subscribe)
        await wakeup.tried()
        return wakeup

    async def _subscribe(self) -> _Subscription:
        connection = self._new()
        await self._exchange(connection, _pack("SUBSCRIBE", self._channel))
        return _Subscription(connection, self._translated)

    async def durability(self) -> Durability:
        settings: dict[str, str] = {}
        pool = self._pool()
        connection = self._new()
        try:
            for setting in _SETTINGS:
                try:
                    reply = await self._call(connection, Command(("CONFIG", "GET", setting)))
                    settings[setting] = reply[1].decode() if reply else "unknown"
                except StoreUnavailable:
                    raise
                except StoreError:
                    settings[setting] = "unknown"
        finally:
            if connection.is_connected:
                pool.idle.append(connection)
        return Durability("redis", settings, tuple(_warnings(settings)))

    async def aclose(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            while pool.idle:
                await pool.idle.pop().disconnect()
        self.close()

    def close(self) -> None:
        self._closed = True
        self._drop_idle_sync()

    def __del__(self) -> None:
        """Whoever just drops a driver hangs up as well, each connection in its own loop."""
        for loop, pool in self._pools.items():
            for connection in pool.idle:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_hang_up, loop, connection)


class _Subscription:
    """A connection that listens on a channel."""

    def __init__(
        self,
        connection: awaiting.AbstractConnection,
        translated: Callable[[BaseException], BaseException],
    ) -> None:
        self._connection = connection
        self._translated = translated

    async def message(self) -> None:
        try:
            await self._connection.read_response()
        except (exceptions.RedisError, OSError) as error:
            raise self._translated(error) from None

    async def aclose(self) -> None:
        await self._connection.disconnect(nowait=True)


def _let_go(error: BaseException) -> None:
    """redis-py leaves an error in the frame that raised it: a circle that would keep us alive."""
    error.__traceback__ = None


def _hang_up(loop: asyncio.AbstractEventLoop, connection: awaiting.AbstractConnection) -> None:
    loop.create_task(connection.disconnect(nowait=True))


def _warnings(settings: Mapping[str, str]) -> list[str]:
    """Sentences about settings under which tasks can get lost."""
    found = []
    if "unknown" in settings.values():
        found.append("CONFIG GET is not allowed: nobody knows what this server promises.")
    elif settings["appendonly"] != "yes":
        lost = "everything" if settings["save"] == "" else "everything since the last snapshot"
        found.append(f"appendonly is off: {lost} is lost when the server ends abruptly.")
    elif settings["appendfsync"] != "always":
        found.append(
            f"appendfsync is {settings['appendfsync']}: a power cut can undo the last seconds."
        )
    policy = settings["maxmemory-policy"]
    if policy not in {"noeviction", "unknown"}:
        found.append(
            f"maxmemory-policy is {policy}: a full server throws tasks away. Set it to noeviction."
        )
    return found


def _name(url: str) -> str:
    """A store as messages call it: never with its password."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise InvalidStoreURL("The port in a Redis URL is a number.") from None
    if parts.scheme == "unix":
        return f"The Redis server at {parts.path}"
    return f"The Redis server at {parts.hostname or 'localhost'}:{port or 6379}"
