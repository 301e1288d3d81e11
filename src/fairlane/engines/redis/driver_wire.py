"""Pack calls and translate errors, for both sides of the driver.

hiredis packs calls in C, and the driver sends them without the client of redis-py, which costs more
than the script it calls. Large calls are packed and sent piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

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
from fairlane.engines.redis.calls import Argument, Command, Joined, Run
from fairlane.engines.redis.connection_errors import unreachable
from fairlane.engines.redis.errors import reported
from fairlane.engines.redis.sentinels import Endpoint

PIECE_BYTES: Final = 256 * 1024
"""Words of this size together are packed at once. Batches of tasks and results are larger, and
would be in memory once more."""


def pack_request(request: Run | Command) -> Iterable[bytes]:
    """Return the pieces of a call, in the order in which they are sent. The server begins with it
    once it has received all of them."""
    if isinstance(request, Command):
        return pack(*request.words)
    words = ("EVALSHA", request.script.sha, 1, request.prefix, *request.arguments)
    return pack_in_pieces(words) if request.large else (_pack(words),)


def pack_load(request: Run) -> Iterable[bytes]:
    """Return the call that loads a script into the server."""
    return pack("SCRIPT", "LOAD", request.script.source)


def pack(*words: Argument) -> Iterable[bytes]:
    """Return a call as one piece."""
    return (_pack(words),)


def pack_in_pieces(words: Sequence[Argument]) -> Iterator[bytes]:
    """Yield the pieces of a call, each packed when it is asked for."""
    yield b"*%d\r\n" % len(words)
    piece: list[Argument] = []
    size = 0
    for word in words:
        if isinstance(word, bytes | Joined):
            size += len(word)
            piece.append(bytes(word))
        else:
            piece.append(word)
        if size > PIECE_BYTES:
            yield _without_count(piece)
            piece, size = [], 0
    if piece:
        yield _without_count(piece)


def _without_count(words: Sequence[Argument]) -> bytes:
    """Return packed words without the number of words before them."""
    packed = _pack(words)
    return packed[packed.index(b"\n") + 1 :]


def _pack(words: Sequence[Argument]) -> bytes:
    # The annotation of `pack_command` allows one word only.
    call: bytes = pack_command(tuple(words))  # type: ignore[arg-type]
    return call


CONNECTIONS = 16
PING = pack("PING")
ROLE = pack("ROLE")


def pack_master_query(address: Address) -> Iterable[bytes]:
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
