"""The driver for threads: up to 16 connections of redis-py, one call at a time on each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
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
    breaks_connection,
    drop_tracebacks,
    not_the_master,
    omit_client_info,
    pack_load,
    pack_master_query,
    pack_request,
    store_closed,
    translated,
)
from fairlane.engines.redis.sentinels import Endpoint

T = TypeVar("T")


class _Link:
    """A connection, and whether it can be used for the next call."""

    __slots__ = ("connection", "usable")

    def __init__(self, connection: Any) -> None:  # redis-py does not type its blocking connections
        self.connection = connection
        self.usable = True

    def disconnect(self) -> None:
        self.usable = False
        self.connection.disconnect()


class SyncSide:
    """Perform operations on one pool of connections for all threads."""

    def __init__(self, address: Address, verify: Callable[[], Op[None]]) -> None:
        self._address = address
        self._verify = verify
        self._closed = False
        self._idle: list[_Link] = []
        self._free = threading.BoundedSemaphore(CONNECTIONS)

    def attempt(self, op: Op[T]) -> T:
        """Perform an operation once, without a retry."""
        self._check_open()
        with self._free:
            try:
                link = self._idle.pop()
            except IndexError:
                link = self._open()

            def call(request: Run | Command) -> Any:
                return self._call(link, request)

            try:
                return perform(op.flow(), call)
            except SchemaMissing:
                if op.mode is not Mode.SCHEMA:
                    perform(self._verify().flow(), call)
                raise
            except StoreUnavailable:
                if not link.usable:
                    self._drop_idle()  # they are broken as well
                raise
            finally:
                if self._closed:
                    link.disconnect()
                elif link.usable:
                    self._idle.append(link)

    def close(self) -> None:
        self._closed = True
        self._drop_idle()

    # -- calls ---------------------------------------------------------------------------------

    def _call(self, link: _Link, request: Run | Command) -> Any:
        try:
            return self._exchange(link, pack_request(request))
        except exceptions.NoScriptError as error:
            drop_tracebacks(error)
            assert isinstance(request, Run)
            self._exchange(link, pack_load(request))
            return self._exchange(link, pack_request(request))

    def _exchange(
        self, link: _Link, call: Iterable[bytes], sentinel: Endpoint | None = None
    ) -> Any:
        try:
            link.connection.send_packed_command(call, check_health=False)
            return link.connection.read_response()
        except exceptions.NoScriptError:
            raise
        except BaseException as error:  # noqa: BLE001 (raised again)
            meaning = translated(self._address, error, sentinel)
            if breaks_connection(error, meaning):
                link.disconnect()
            if meaning is not error:
                drop_tracebacks(error)
            raise meaning from None

    # -- connections ---------------------------------------------------------------------------

    def _open(self) -> _Link:
        """Return a new connection to the master. Without Sentinels its first call connects it."""
        if self._address.sentinels is None:
            return self._new(self._address.options)
        master = perform(self._address.sentinels.master(), self._ask)
        link = self._new(self._address.master_options(master))
        try:
            role, *_ = self._exchange(link, ROLE)
        except AccessDenied:
            if not link.usable:
                raise
            return link  # the user has no right to ROLE: trust the Sentinel
        if role != b"master":
            link.disconnect()
            raise not_the_master(self._address, master)
        return link

    def _ask(self, sentinel: Endpoint) -> Any:
        link = self._new(self._address.sentinel_options(sentinel))
        try:
            return self._exchange(link, pack_master_query(self._address), sentinel)
        finally:
            link.disconnect()

    def _new(self, options: Mapping[str, Any]) -> _Link:
        kind: Any
        if self._address.path is not None:
            kind = blocking.UnixDomainSocketConnection
        else:
            kind = blocking.SSLConnection if self._address.tls else blocking.Connection
        own = {"socket_timeout": self._address.reply_seconds, "retry": Retry(NoBackoff(), 0)}
        return _Link(omit_client_info(kind(**options, **own, protocol=2)))

    def _check_open(self) -> None:
        if self._closed:
            raise store_closed()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().disconnect()
