"""Listening sockets."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path
from typing import Final

from fairlane.core.errors import FairlaneError, InvalidInput

BACKLOG: Final = 2048


class InvalidAddress(InvalidInput):
    """A server listens on a host and a port from 0 to 65535, or on the path of a socket."""

    code = "invalid_address"


class AddressUnavailable(FairlaneError):
    """The server cannot listen on this address."""

    code = "address_unavailable"


def bind(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of a host. Port 0 chooses a free port, the same for all addresses."""
    if not host or not 0 <= port <= 65_535:
        raise InvalidAddress(f"{shown(host, port)} is not an address: {InvalidAddress().message}")
    bound: list[socket.socket] = []
    try:
        for family, address in _addresses(host, port):
            at = bound[0].getsockname()[1] if bound else port
            bound.append(_bound(family, (address, at)))
    except OSError as error:
        for sock in bound:
            sock.close()
        raise _unavailable(shown(host, port), error) from error
    return bound


def bind_path(path: Path) -> socket.socket:
    """Listen on a socket in the file system, for this user only. Replaces a stale socket."""
    try:
        _clear(path)
        before = os.umask(0o177)
        try:
            return _bound(socket.AF_UNIX, str(path))
        finally:
            os.umask(before)
    except OSError as error:
        raise _unavailable(str(path), error) from error


def inherited(descriptor: int) -> socket.socket:
    """Return the listening socket that another process has bound and passed on."""
    return socket.socket(fileno=descriptor)


def shown(host: str, port: int) -> str:
    """Return an address as people write it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InvalidAddress(
            f"There is no host named {host!r}: use an address of this machine."
        ) from None
    unique = dict.fromkeys((int(family), str(address[0])) for family, *_, address in found)
    return list(unique)


def _bound(family: int, address: tuple[str, int] | str) -> socket.socket:
    # asyncio sets TCP_NODELAY only if the protocol is given.
    protocol = 0 if family == socket.AF_UNIX else socket.IPPROTO_TCP
    sock = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        if family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # people expect :: to accept IPv4 as well
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
        sock.bind(address)
        sock.listen(BACKLOG)
        sock.setblocking(False)  # noqa: FBT003
    except BaseException:
        sock.close()
        raise
    return sock


def _clear(path: Path) -> None:
    """Remove a stale socket."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "something else is there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise OSError(errno.EADDRINUSE, "in use")


def _unavailable(address: str, error: OSError) -> AddressUnavailable:
    match error.errno:
        case errno.EADDRINUSE:
            reason = "another program listens there: stop it, or choose another port"
        case errno.EACCES | errno.EPERM:
            reason = (
                "this user may not do that: choose a port above 1023, or a folder that is yours"
            )
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            reason = "this machine does not have that address: choose one of its own"
        case errno.EEXIST:
            reason = "something else is there: choose another path"
        case errno.ENOENT | errno.ENOTDIR:
            reason = "there is no such folder: make it, or choose another path"
        case _:
            reason = (error.strerror or str(error)).lower()
    return AddressUnavailable(f"The server cannot listen on {address}: {reason}.")
