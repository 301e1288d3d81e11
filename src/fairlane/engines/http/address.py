"""The address of a server."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from fairlane.core.errors import InvalidStoreURL
from fairlane.http_client import host_header

_RULE = (
    "The URL of a server is http://host:port or https://host, followed by the path where it is "
    "mounted, if there is one. The token is not part of it: give it as token=…, or as "
    "FAIRLANE_TOKEN."
)


class Address(msgspec.Struct, frozen=True):
    """A server. `prefix` is the path where it is mounted, without the last slash."""

    host: str
    port: int
    prefix: str
    tls: bool

    @property
    def authority(self) -> str:
        """The Host header."""
        return host_header(self.host, self.port, tls=self.tls)

    @property
    def shown(self) -> str:
        """The address in error messages."""
        return f"The server at {'https' if self.tls else 'http'}://{self.authority}{self.prefix}"


def address_of(url: str) -> Address:
    """Return the address in a URL. Raises InvalidStoreURL, without the URL in its message: it may
    hold secrets that do not belong there."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidStoreURL(_RULE) from None
    plain = f"{parts.netloc}{parts.path}"
    if not host or "@" in parts.netloc or parts.query or parts.fragment or not _is_printable(plain):
        raise InvalidStoreURL(_RULE)
    tls = parts.scheme.lower() == "https"
    return Address(host, port or (443 if tls else 80), parts.path.rstrip("/"), tls)


def _is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
