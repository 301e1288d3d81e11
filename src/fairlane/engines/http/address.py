"""Where a server is, as a store URL says it."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from fairlane.core.errors import InvalidStoreURL

_RULE = (
    "The URL of a server is http://host:port or https://host, with the path it is mounted at if "
    "there is one. Its token is not part of it: give it as token=…, or as FAIRLANE_TOKEN."
)


class Address(msgspec.Struct, frozen=True):
    """A server. `prefix` is the path that it is mounted at, without the last slash."""

    host: str
    port: int
    prefix: str
    tls: bool

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """As users read it."""
        return f"The server at {'https' if self.tls else 'http'}://{self.authority}{self.prefix}"


def address_of(url: str) -> Address:
    """The address in a URL. Raises InvalidStoreURL, which does not quote it: it may hold secrets
    that do not belong there."""
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
