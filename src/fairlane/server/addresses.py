"""Who is counted as one by where a request comes from."""

from __future__ import annotations

from ipaddress import IPv6Address


def counted_as(address: str) -> str:
    """Return by what an address is counted: whoever has an address of IPv6 has its whole /64."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:  # another server, in which this one is mounted, says what it likes
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return found.exploded[:19]
