"""Pack calls and translate errors, for both sides of the driver.

hiredis packs calls in C, and the driver sends them without the client of redis-py, which costs more
than the script it calls.
"""

from __future__ import annotations

from typing import Any

from hiredis import pack_command
from redis import exceptions

from fairlane.core.errors import (
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairlane.engines.redis.address import Address
from fairlane.engines.redis.calls import Argument, Command, Run
from fairlane.engines.redis.connection_errors import unreachable
from fairlane.engines.redis.errors import reported
from fairlane.engines.redis.sentinels import Endpoint


def pack_request(request: Run | Command) -> bytes:
    """Return a call as it is sent."""
    if isinstance(request, Run):
        return pack("EVALSHA", request.script.sha, 1, request.prefix, *request.arguments)
    return pack(*request.words)


def pack_load(request: Run) -> bytes:
    """Return the call that loads a script into the server."""
    return pack("SCRIPT", "LOAD", request.script.source)


def pack(*words: Argument) -> bytes:
    # The annotation of `pack_command` allows one word only.
    call: bytes = pack_command(words)  # type: ignore[arg-type]
    return call


CONNECTIONS = 16
PING = pack("PING")
ROLE = pack("ROLE")


def pack_master_query(address: Address) -> bytes:
    """Return the call that asks a Sentinel for the master."""
    assert address.sentinels is not None
    return pack("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.sentinels.service)


def omit_client_info(connection: Any) -> Any:
    """Keep redis-py from sending CLIENT SETINFO, which the user may have no right to."""
    for field in ("driver_info", "lib_name", "lib_version"):  # depends on its version
        setattr(connection, field, None)
    return connection


def translated(
    address: Address, error: BaseException, sentinel: Endpoint | None = None
) -> BaseException:
    """Return the error that users read; other errors than those of server and network unchanged."""
    store = address.name if sentinel is None else f"The Sentinel at {sentinel}"
    meaning = _meaning(store, error, address.tls)
    if sentinel is None and address.sentinels is not None and isinstance(meaning, StoreUnavailable):
        address.sentinels.doubt()
    return meaning


def _meaning(store: str, error: BaseException, tls: bool) -> BaseException:
    match error:
        case exceptions.AuthenticationError():
            return reported(store, "WRONGPASS", "")
        case exceptions.NoPermissionError():
            return reported(store, "NOPERM", str(error))
        case exceptions.BusyLoadingError():
            return reported(store, "LOADING", "")
        case exceptions.OutOfMemoryError():
            return reported(store, "OOM", "")
        case exceptions.ReadOnlyError():
            return reported(store, "READONLY", "")
        case exceptions.MasterDownError():
            return reported(store, "MASTERDOWN", "")
        case exceptions.ClusterDownError() | exceptions.TryAgainError():
            return reported(store, "CLUSTERDOWN", "")
        case exceptions.AskError():  # MovedError is one
            return reported(store, "MOVED", "")
        case exceptions.ResponseError():
            return reported(store, str(error).partition(" ")[0], str(error))
        case exceptions.InvalidResponse():
            return StoreUnusable(f"{store} does not reply like a Redis server: check the address.")
        case exceptions.ConnectionError(args=(str(text), *_)) if "number of clients" in text:
            return reported(store, "", text)
        case exceptions.TimeoutError():
            return unreachable(store, TimeoutError(), tls=tls)
        case exceptions.RedisError() | OSError():
            return unreachable(store, error, tls=tls)
        case _:
            return error


def not_the_master(address: Address, found: Endpoint) -> StoreUnavailable:
    """Return the error for a server that is a replica, although a Sentinel named it the master."""
    assert address.sentinels is not None
    address.sentinels.doubt()
    return StoreReadOnly(f"{address.name} is changing its master: {found} is still a replica.")


def store_closed() -> StoreUnusable:
    """Return the error for a driver that was closed."""
    return StoreUnusable("This store was closed: open it again.")


def breaks_connection(error: BaseException, meaning: BaseException) -> bool:
    """Return whether a connection cannot be used after an error: its reply may still arrive, or the
    server is not (or no longer) the right one."""
    if not isinstance(error, exceptions.ResponseError):
        return True
    return isinstance(meaning, StoreUnavailable) and not isinstance(meaning, StoreBusy | StoreFull)


def drop_tracebacks(error: BaseException) -> None:
    """Break the reference cycle of an error that redis-py keeps in the frame that raised it.

    The cycle would keep the driver alive.
    """
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__context__
