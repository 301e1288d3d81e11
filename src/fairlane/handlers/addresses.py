"""Addresses that a webhook may be sent to.

Otherwise anyone who may submit a task could make a worker send requests to everything that the
worker can reach: the cloud provider's metadata, an admin page on the loopback, a printer. So a name
is resolved once, all its addresses are checked, and the connection goes to a checked address: a
second look-up could return another one (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from fairlane.handlers.settings import Network
from fairlane.runtime.outcomes import Fail

Address = IPv4Address | IPv6Address

REFUSED = "WEBHOOK_REFUSED"

# Written out, because the answers of `ipaddress` differ between Python versions.
_NOT_PUBLIC: Final = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' own (CGNAT)
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast, and all that is reserved above it
        "240.0.0.0/4",
        "2001::/23",  # Teredo and other protocols
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "3fff::/20",
    )
]
_PUBLIC_V6: Final = IPv6Network("2000::/3")
"""Beyond it: loopback, link-local, ULA, multicast, IPv4 in disguise (mapped, NAT64)."""

_NAME: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?\Z")
_NUMBER: Final = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)\Z")


def is_public(address: Address) -> bool:
    """Return whether an address is on the public Internet."""
    if isinstance(address, IPv6Address) and address not in _PUBLIC_V6:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def check_addresses(addresses: Iterable[Address], allowed: Iterable[Network]) -> list[Address]:
    """Return the addresses of a host. Raises Fail if one of them is not allowed."""
    addresses, allowed = list(addresses), list(allowed)
    for address in addresses:
        if not is_public(address) and not any(address in network for network in allowed):
            # Without the address, which would help to map the network; the name is the payload's.
            raise Fail(
                "The server is not on the public Internet: an operator can allow its network with "
                "FAIRLANE_WEBHOOK_NETWORKS.",
                code=REFUSED,
            )
    return addresses


async def resolve(host: str, port: int, allowed: Iterable[Network]) -> list[Address]:
    """Resolve a host and check its addresses. Raises OSError if it cannot be found."""
    literal = _literal(host)
    if literal is not None:
        return check_addresses([literal], allowed)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return check_addresses((ip_address(where[0]) for *_, where in found), allowed)


def _literal(host: str) -> Address | None:
    """Return the address if the host is one, None for a name. Raises Fail if it is neither."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    if not _NAME.match(host):
        raise Fail("The URL has no proper host name.", code=REFUSED)
    if _NUMBER.match(host.rstrip(".").rpartition(".")[2]):
        # 2130706433, 0x7f.1, 0177.0.0.1: other spellings of addresses, which C libraries accept.
        raise Fail("The URL's host is no proper way to write an address.", code=REFUSED)
    return None
