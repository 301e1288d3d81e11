"""Authentication: host names, origins, tokens, scopes. Every request passes here, even one for a
path that does not exist.

Without tokens the server trusts every user of this machine. But any web page that such a user has
open can send it requests. A foreign page is recognized by what its browser says (Origin and
Sec-Fetch-Site). A page that uses DNS rebinding is recognized by the host name. Operations without a
scope are public, whatever the host name: health checks, for example.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from fairlane.core.errors import StoreError
from fairlane.core.model import NewTask
from fairlane.core.ownership import Bounds, stamped
from fairlane.core.tokens import Scope, Token, digest_of
from fairlane.server.cached import Cached
from fairlane.server.config import ServerConfig
from fairlane.server.errors import Forbidden, Unauthorized, WrongHost

COOKIE: Final = "fairlane_session"
UNKNOWN: Final = "This token is unknown, was revoked, or has expired."
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
TOKEN_SECONDS: Final = 2.0
"""How long a token is cached: a revoked one stops working within this time, on every server."""
CACHED_TOKENS: Final = 10_000
"""Secrets, valid or not, that are cached at once."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE: Final = frozenset({b"same-origin", b"none"})

Headers = Mapping[bytes, bytes]


class Identity(msgspec.Struct, frozen=True):
    """The caller: a token by its name, or `ANYONE` where no tokens are set up."""

    name: str
    token_id: str | None = None
    scopes: frozenset[Scope] = frozenset(Scope)
    exempt: bool = False
    """Not refused by admission control."""
    subject: str | None = None
    """Whom the tasks belong to that it submits."""
    bounds: Bounds | None = None
    """What the token is bound to, if it is."""

    def owned(self, task: NewTask) -> NewTask:
        """Return a new task as it is stored for this caller. Raises OutOfBounds."""
        if self.bounds is not None:
            return self.bounds.own_task(task)
        return task if self.subject is None else stamped(task, self.subject)


ANYONE: Final = Identity("anyone")


class TokenCache:
    """Looks tokens up in the store and caches them.

    Once a token exists, tokens are required until the server restarts: revoking the last one must
    not open the server to everyone.
    """

    def __init__(
        self,
        exist: Cached[bool],
        find: Callable[[bytes], Cached[Token | None]],
        *,
        required: bool,
    ) -> None:
        self._exist = exist
        self._find = find
        self._required = required
        self._known: dict[bytes, Cached[Token | None]] = {}

    async def required(self) -> bool:
        """Whether requests need a token."""
        if not self._required:
            self._required = await self._exist.get()
        return self._required

    @property
    def required_now(self) -> bool | None:
        """The same, if it need not be read: without the cost of a coroutine."""
        if not self._required:
            seen = self._exist.current
            self._required = seen or False
            return seen
        return True

    async def token(self, secret: str) -> Token | None:
        """Return the valid token with this secret, if there is one."""
        digest = digest_of(secret)
        known = self._known.get(digest)
        if known is None:
            while len(self._known) >= CACHED_TOKENS:
                del self._known[next(iter(self._known))]
            known = self._known[digest] = self._find(digest)
        return await known.get()

    def forget(self, secret: str) -> None:
        """Read the store again when this secret is used next."""
        self._known.pop(digest_of(secret), None)


class Authenticator:
    """Checks who calls, and what the caller may do."""

    def __init__(self, config: ServerConfig, tokens: TokenCache) -> None:
        hosts = config.hosts
        self._hosts = None if hosts is None else frozenset(map(str.lower, hosts))
        self._origins = frozenset(origin.lower().rstrip("/").encode() for origin in config.origins)
        self._tokens = tokens

    async def authenticate(
        self,
        method: str | None,
        headers: Headers,
        scopes: frozenset[Scope] | None,
        bound: frozenset[Scope] | None = None,
        besides: frozenset[Scope] = frozenset(),
    ) -> Identity:
        """Return the caller. Raises WrongHost, Forbidden or Unauthorized.

        `scopes`: the token needs one of them; an empty set means public, None an unknown path.
        `bound`: the same for a bound token; None means that bound tokens are refused.
        `besides`: the token needs all of these, too.
        `method` is None for a WebSocket, which is treated like a write: a browser opens one from
        any page, without asking first and with the cookies of this site.
        """
        safe = method in _SAFE
        public = scopes is not None and not scopes
        if public and safe:
            return ANYONE
        self._check_page(headers, safe=safe)
        required = self._tokens.required_now
        if required is None:
            required = await self._tokens.required()
        self._check_host(headers, required=required)
        if public or not required:
            return ANYONE
        token = await self._token(headers)
        bounds = token.bounds
        if scopes is not None:
            if bounds is not None:
                scopes = _open_to(bounds, bound)
            if not (any(map(token.may, scopes)) and all(map(token.may, besides))):
                needed = " and ".join([" or ".join(sorted(scopes)), *sorted(besides)])
                raise Forbidden(f"This takes a token with the scope {needed}.")
        return Identity(
            token.name, token.token_id, token.scopes, token.exempt, token.subject, bounds
        )

    async def _token(self, headers: Headers) -> Token:
        secret = secret_of(headers)
        if not secret:
            raise Unauthorized
        token = await self._tokens.token(secret)
        if token is None:
            raise Unauthorized(UNKNOWN)
        return token

    def _check_host(self, headers: Headers, *, required: bool) -> None:
        hosts = self._hosts
        if hosts is None:
            if required:
                return
            hosts = LOOPBACK
        if "*" not in hosts and host_of(headers) not in hosts:
            raise WrongHost(
                "This server does not answer to that host name: start it with --allow-hosts."
            )

    def _check_page(self, headers: Headers, *, safe: bool) -> None:
        origin = headers.get(b"origin")
        if origin is not None:
            theirs = origin.partition(b"://")[2]  # behind a proxy, schemes differ
            if (theirs and theirs == headers.get(b"host")) or origin in self._origins:
                return
        elif headers.get(b"sec-fetch-site", b"none") in _OWN_SITE:
            if safe or cookie_of(headers) is None or bearer_of(headers) is not None:
                return
            raise Forbidden("A request with a session cookie needs an Origin header.")
        elif safe and headers.get(b"sec-fetch-mode") == b"navigate":
            return  # a link to this server: the page that holds it cannot read the response
        raise Forbidden("Pages from elsewhere may not do this.")


def _open_to(bounds: Bounds, bound: frozenset[Scope] | None) -> frozenset[Scope]:
    """Return the scopes of which a bound token needs one."""
    if bound is None:
        raise Forbidden(
            f"This token is bound to {bounds}, and this concerns the tasks of others, too: it "
            "takes a token without bounds."
        )
    return bound


def may_keep_reading(tokens: TokenCache, headers: Headers) -> Callable[[], Awaitable[bool]]:
    """Return a check whether the sender of these headers may still read live events: its token may
    expire or be revoked, and tokens may become required."""
    secret = secret_of(headers)

    async def check() -> bool:
        try:
            if not await tokens.required():
                return True
            token = await tokens.token(secret) if secret else None
        except StoreError:
            return True  # while the store is away there is nothing to read either
        return token is not None and token.may(Scope.READ)

    return check


def host_of(headers: Headers) -> str:
    """Return the host name in a request, without the port."""
    return _host_name(headers.get(b"host", b""))


@lru_cache(maxsize=256)
def _host_name(header: bytes) -> str:
    host = header.decode("latin-1").lower()
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def secret_of(headers: Headers) -> str | None:
    """Return the secret in a request: the bearer token, or that of the browser session."""
    bearer = bearer_of(headers)
    return cookie_of(headers) if bearer is None else bearer


def bearer_of(headers: Headers) -> str | None:
    """Return the bearer token. Other schemes are ignored: they may be for a proxy."""
    scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
    return secret.strip().decode("latin-1") if scheme.lower() == b"bearer" else None


def cookie_of(headers: Headers) -> str | None:
    """Return the secret of the browser session."""
    given = headers.get(b"cookie")
    if given is None:
        return None
    for part in given.decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return None
