"""redis-py's connections for ordinary code: a few, each with one call on its way at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from redis import connection as blocking
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from fairlane.core.errors import AccessDenied, SchemaMissing, StoreUnavailable
from fairlane.core.flow import Mode, Op, perform
from fairlane.engines.redis.address import Address
from fairlane.engines.redis.calls import Command, Run
from fairlane.engines.redis.driver_wire import (
    CONNECTIONS,
    ROLE,
    closed,
    let_go,
    loading,
    not_the_master,
    packed,
    says_nothing,
    spoils,
    translated,
    where_is,
)
from fairlane.engines.redis.sentinels import Endpoint

T = TypeVar("T")


class _Line:
    """A connection, and whether it is fit for the next call."""

    __slots__ = ("connection", "fit")

    def __init__(self, connection: Any) -> None:  # redis-py leaves this half of itself untyped
        self.connection = connection
        self.fit = True

    def hang_up(self) -> None:
        self.fit = False
        self.connection.disconnect()


class SyncSide:
    """Connections of all threads."""

    def __init__(self, address: Address, verify: Callable[[], Op[None]]) -> None:
        self._address = address
        self._verify = verify
        self._closed = False
        self._idle: list[_Line] = []
        self._free = threading.BoundedSemaphore(CONNECTIONS)

    def attempt(self, op: Op[T]) -> T:
        """Perform an operation, once."""
        self._check_open()
        with self._free:
            try:
                line = self._idle.pop()
            except IndexError:
                line = self._open()

            def call(request: Run | Command) -> Any:
                return self._call(line, request)

            try:
                return perform(op.flow(), call)
            except SchemaMissing:
                if op.mode is not Mode.SCHEMA:
                    perform(self._verify().flow(), call)
                raise
            except StoreUnavailable:
                if not line.fit:
                    self._drop_idle()  # they will be of no use as well
                raise
            finally:
                if self._closed:
                    line.hang_up()
                elif line.fit:
                    self._idle.append(line)

    def close(self) -> None:
        self._closed = True
        self._drop_idle()

    # -- calls ---------------------------------------------------------------------------------

    def _call(self, line: _Line, request: Run | Command) -> Any:
        try:
            return self._exchange(line, packed(request))
        except exceptions.NoScriptError as error:
            let_go(error)
            assert isinstance(request, Run)
            self._exchange(line, loading(request))
            return self._exchange(line, packed(request))

    def _exchange(self, line: _Line, call: bytes, sentinel: Endpoint | None = None) -> Any:
        try:
            line.connection.send_packed_command([call], check_health=False)
            return line.connection.read_response()
        except exceptions.NoScriptError:
            raise
        except BaseException as error:  # noqa: BLE001 (raised again)
            meaning = translated(self._address, error, sentinel)
            if spoils(error, meaning):
                line.hang_up()
            if meaning is not error:
                let_go(error)
            raise meaning from None

    # -- connections ---------------------------------------------------------------------------

    def _open(self) -> _Line:
        """A new connection. Without Sentinels it is made by its first call."""
        if self._address.sentinels is None:
            return self._new(self._address.options)
        master = perform(self._address.sentinels.master(), self._ask)
        line = self._new(self._address.of_master(master))
        try:
            role, *_ = self._exchange(line, ROLE)
        except AccessDenied:
            if not line.fit:
                raise
            return line  # it may not be asked: the Sentinel's word has to do
        if role != b"master":
            line.hang_up()
            raise not_the_master(self._address, master)
        return line

    def _ask(self, sentinel: Endpoint) -> Any:
        line = self._new(self._address.of_sentinel(sentinel))
        try:
            return self._exchange(line, where_is(self._address), sentinel)
        finally:
            line.hang_up()

    def _new(self, options: Mapping[str, Any]) -> _Line:
        kind: Any
        if self._address.path is not None:
            kind = blocking.UnixDomainSocketConnection
        else:
            kind = blocking.SSLConnection if self._address.tls else blocking.Connection
        own = {"socket_timeout": self._address.reply_seconds, "retry": Retry(NoBackoff(), 0)}
        return _Line(says_nothing(kind(**options, **own, protocol=2)))

    def _check_open(self) -> None:
        if self._closed:
            raise closed()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().hang_up()
