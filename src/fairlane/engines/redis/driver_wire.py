"""What both sides of the driver share: how calls are packed, and what errors mean.

Calls are packed in C by hiredis and sent straight away, because the client of redis-py costs more
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
from fairlane.engines.redis.connection_errors import outage
from fairlane.engines.redis.errors import refusal
from fairlane.engines.redis.sentinels import Endpoint


def packed(request: Run | Command) -> bytes:
    """A call as it is sent."""
    if isinstance(request, Run):
        return pack("EVALSHA", request.script.sha, 1, request.prefix, *request.arguments)
    return pack(*request.words)


def loading(request: Run) -> bytes:
    """The call that makes a script known to the server."""
    return pack("SCRIPT", "LOAD", request.script.source)


def pack(*words: Argument) -> bytes:
    # Its annotation allows for one word only.
    packed: bytes = pack_command(words)  # type: ignore[arg-type]
    return packed


CONNECTIONS = 16
PING = pack("PING")
ROLE = pack("ROLE")


def where_is(address: Address) -> bytes:
    """The question to a Sentinel."""
    assert address.sentinels is not None
    return pack("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.sentinels.service)


def says_nothing(connection: Any) -> Any:
    """Keeps redis-py from introducing itself to the server: that takes a right more."""
    for introduction in ("driver_info", "lib_name", "lib_version"):  # by its versions
        setattr(connection, introduction, None)
    return connection


def translated(
    address: Address, error: BaseException, sentinel: Endpoint | None = None
) -> BaseException:
    """The error as users read it, unless it is none of the server's or the network's."""
    store = address.name if sentinel is None else f"The Sentinel at {sentinel}"
    meaning = _meaning(store, error, address.tls)
    if sentinel is None and address.sentinels is not None and isinstance(meaning, StoreUnavailable):
        address.sentinels.doubt()
    return meaning


def _meaning(store: str, error: BaseException, tls: bool) -> BaseException:
    match error:
        case exceptions.AuthenticationError():
            return refusal(store, "WRONGPASS", "")
        case exceptions.NoPermissionError():
            return refusal(store, "NOPERM", str(error))
        case exceptions.BusyLoadingError():
            return refusal(store, "LOADING", "")
        case exceptions.OutOfMemoryError():
            return refusal(store, "OOM", "")
        case exceptions.ReadOnlyError():
            return refusal(store, "READONLY", "")
        case exceptions.MasterDownError():
            return refusal(store, "MASTERDOWN", "")
        case exceptions.ClusterDownError() | exceptions.TryAgainError():
            return refusal(store, "CLUSTERDOWN", "")
        case exceptions.MovedError():
            return refusal(store, "MOVED", "")
        case exceptions.ResponseError():
            return refusal(store, str(error).partition(" ")[0], str(error))
        case exceptions.InvalidResponse():
            return StoreUnusable(f"{store} does not answer as Redis does: is the address right?")
        case exceptions.ConnectionError(args=(str(text), *_)) if "number of clients" in text:
            return refusal(store, "", text)
        case exceptions.TimeoutError():
            return outage(store, TimeoutError(), tls=tls)
        case exceptions.RedisError() | OSError():
            return outage(store, error, tls=tls)
        case _:
            return error


def not_the_master(address: Address, found: Endpoint) -> StoreUnavailable:
    """A Sentinel named a server that is a replica: one of the two is behind."""
    assert address.sentinels is not None
    address.sentinels.doubt()
    return StoreReadOnly(f"{address.name} is changing its master: {found} is a replica.")


def closed() -> StoreUnusable:
    return StoreUnusable("This store was closed: open it again.")


def spoils(error: BaseException, meaning: BaseException) -> bool:
    """Whether a connection is of no use after an error: a reply may still come, or the server is
    not the one to talk to (any more)."""
    if not isinstance(error, exceptions.ResponseError):
        return True
    return isinstance(meaning, StoreUnavailable) and not isinstance(meaning, StoreBusy | StoreFull)


def let_go(error: BaseException) -> None:
    """redis-py leaves an error in the frame that raised it: a circle that would keep us alive."""
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__context__
