"""Who may come in: host names, origins, tokens, scopes. Every request passes here, also those for
what is not there.

Without tokens the server is for this machine's user alone, and every web page that user has open
can send it requests. A page gives itself away by what its browser says of it (Origin and
Sec-Fetch-Site), and one that got hold of a name for this address (DNS rebinding) by its host name.
What needs no scope can be read by anyone, whatever the name: that the server is well, for one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from fairlane.core import tokens
from fairlane.core.errors import StoreError
from fairlane.core.tokens import Token
from fairlane.server.config import ServerConfig
from fairlane.server.errors import Forbidden, Unauthorized, WrongHost
from fairlane.server.identity import ANYONE, Identity
from fairlane.server.keys import Keys
from fairlane.server.requests import Scope

COOKIE: Final = "fairlane_session"
UNKNOWN: Final = "This token is unknown, was revoked, or has expired."
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OURS: Final = frozenset({b"same-origin", b"none"})


class Gate:
    """Checks who calls."""

    def __init__(self, config: ServerConfig, keys: Keys) -> None:
        hosts = config.hosts
        self._hosts = None if hosts is None else frozenset(map(str.lower, hosts))
        self._origins = frozenset(origin.lower().rstrip("/").encode() for origin in config.origins)
        self._keys = keys

    async def admitted(
        self,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        scopes: frozenset[tokens.Scope] | None,
    ) -> Identity:
        """Who it is that calls. Raises WrongHost, Forbidden or Unauthorized.

        `scopes`: any one of them is enough; none: everybody; None: for what is not there. A
        WebSocket has no method, and is like a write: no browser asks before it opens one, from
        whatever page, and with the cookies of this site.
        """
        safe = scope.get("method") in _SAFE
        public = scopes is not None and not scopes
        if public and safe:
            return ANYONE
        self._check_page(headers, safe=safe)
        required = await self._keys.required()
        self._check_host(headers, required=required)
        if public or not required:
            return ANYONE
        token = await self._token(headers)
        if scopes is not None and not any(map(token.may, scopes)):
            needed = " or ".join(sorted(scopes))
            raise Forbidden(f"This takes a token with the scope {needed}.")
        return Identity(token.name, token.token_id, token.scopes, exempt=token.exempt)

    async def _token(self, headers: Mapping[bytes, bytes]) -> Token:
        secret = secret_of(headers)
        if not secret:
            raise Unauthorized
        token = await self._keys.token(secret)
        if token is None:
            raise Unauthorized(UNKNOWN)
        return token

    def _check_host(self, headers: Mapping[bytes, bytes], *, required: bool) -> None:
        hosts = self._hosts
        if hosts is None:
            if required:
                return
            hosts = LOOPBACK
        if "*" not in hosts and host_of(headers) not in hosts:
            raise WrongHost(
                "This server does not answer to that host name: start it with --allow-hosts."
            )

    def _check_page(self, headers: Mapping[bytes, bytes], *, safe: bool) -> None:
        origin = headers.get(b"origin")
        if origin is not None:
            theirs = origin.partition(b"://")[2]  # behind a proxy, schemes differ
            if (theirs and theirs == headers.get(b"host")) or origin in self._origins:
                return
        elif headers.get(b"sec-fetch-site", b"none") in _OURS:
            if safe or cookie_of(headers) is None or bearer_of(headers) is not None:
                return
            raise Forbidden("A page that is signed in has to say where it comes from: no Origin.")
        elif safe and headers.get(b"sec-fetch-mode") == b"navigate":
            return  # a link to here: the page that has it does not see where it leads
        raise Forbidden("Pages from elsewhere may not do this.")


def welcome(keys: Keys, headers: Mapping[bytes, bytes]) -> Callable[[], Awaitable[bool]]:
    """Whether a reader who was let in with these headers may stay: tokens expire and are revoked,
    and where none was needed, one may be by now."""
    secret = secret_of(headers)

    async def stays() -> bool:
        try:
            if not await keys.required():
                return True
            token = await keys.token(secret) if secret else None
        except StoreError:
            return True  # nothing can be read at the moment either
        return token is not None and token.may(tokens.Scope.READ)

    return stays


def host_of(headers: Mapping[bytes, bytes]) -> str:
    """The host name that a request is for, without its port."""
    host = headers.get(b"host", b"").decode("latin-1").lower()
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def secret_of(headers: Mapping[bytes, bytes]) -> str | None:
    """The secret that a request brings along: openly, or as the session of a browser."""
    bearer = bearer_of(headers)
    return cookie_of(headers) if bearer is None else bearer


def bearer_of(headers: Mapping[bytes, bytes]) -> str | None:
    """The secret that a request brings along openly. What else may be in that header is not for
    us: a proxy's own password, say."""
    scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
    return secret.strip().decode("latin-1") if scheme.lower() == b"bearer" else None


def cookie_of(headers: Mapping[bytes, bytes]) -> str | None:
    """The secret of the session that a browser is in."""
    given = headers.get(b"cookie")
    if given is None:
        return None
    for part in given.decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return None
