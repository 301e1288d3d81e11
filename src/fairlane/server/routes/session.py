"""`/auth`: how a browser signs in. A session is a new token, made from the one that the user typed:
the browser keeps its secret in a cookie that no script can read."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from fairlane.core.audit import Action
from fairlane.core.errors import UnknownToken
from fairlane.core.tokens import Scope, Token, issued
from fairlane.server.addresses import counted_as
from fairlane.server.audit import record
from fairlane.server.auth import COOKIE, UNKNOWN, Identity, cookie_of, secret_of
from fairlane.server.errors import Unauthorized
from fairlane.server.operations import OPEN, Call, Operation
from fairlane.server.responses import Headers, Response
from fairlane.server.services import Services

SESSION_SECONDS: Final = 12 * 3600


class SignIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The token to sign in with."""

    token: str


class Session(msgspec.Struct, frozen=True):
    """Who is signed in. `required`: requests need a token. `bound_to`: what a bound token may
    see, in words; null for one that is not bound."""

    required: bool
    name: str | None
    scopes: list[Scope]
    bound_to: str | None = None

    @classmethod
    def of(cls, token: Token, *, required: bool) -> Session:
        """Return what is to be known of a token."""
        bounds = token.bounds
        bound_to = None if bounds is None else str(bounds)
        return cls(required, token.name, sorted(token.scopes), bound_to)


async def sign_in(services: Services, call: Call[SignIn, None]) -> Response:
    """Sign in: start a session. The browser sends its cookie with every further request."""
    token = await services.tokens.token(call.body.token)
    address = counted_as(call.address)
    if token is None or token.kind == "session":
        services.sign_ins.take(address, 1)
        raise Unauthorized(UNKNOWN)
    # Counted apart: wrong tokens from an address (perhaps a proxy's) do not shut out a right one.
    services.sign_ins.take(f"{address} {token.token_id}", 1)
    session, secret = issued(
        token.name, token.scopes, SESSION_SECONDS, parent_id=token.token_id, exempt=token.exempt
    )
    try:
        await services.run(services.ops.put_token(session))
    except UnknownToken:  # revoked a moment ago
        raise Unauthorized(UNKNOWN) from None
    await _record(services, call, Action.SIGN_IN, token)
    return Response(
        Session.of(token, required=True), headers=_cookie(call, secret, SESSION_SECONDS)
    )


async def sign_out(services: Services, call: Call[None, None]) -> Response:
    """Sign out: end the session of the browser."""
    secret = cookie_of(call.headers)
    token = None if secret is None else await services.tokens.token(secret)
    if secret is not None and token is not None and token.kind == "session":
        await services.run(services.ops.drop_token(token.token_id))
        services.tokens.forget(secret)
        await _record(services, call, Action.SIGN_OUT, token)
    return Response(status=204, headers=_cookie(call, "", 0))


async def show(services: Services, call: Call[None, None]) -> Response:
    """Read who is signed in, and whether that is required."""
    secret = secret_of(call.headers)
    token = None if secret is None else await services.tokens.token(secret)
    required = await services.tokens.required()
    if token is not None:
        return Response(Session.of(token, required=required))
    return Response(Session(required, None, [] if required else list(Scope)))


async def _record(services: Services, call: Call[Any, None], action: Action, token: Token) -> None:
    # Without the body, which has the secret.
    known = msgspec.structs.replace(call, body=None, identity=Identity(token.name))
    await record(services, action, known)


def _cookie(call: Call[Any, None], secret: str, seconds: int) -> Headers:
    # A proxy may end TLS before us, but the browser says where its page is from.
    tls = call.secure or call.headers.get(b"origin", b"").startswith(b"https://")
    secure = "; Secure" if tls else ""
    path = quote(call.root) or "/"  # the application around a mounted server has no use for it
    text = f"{COOKIE}={secret}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return ((b"set-cookie", text.encode()),)


OPERATIONS: Final = [
    Operation("POST", "/auth/session", sign_in, OPEN, body=SignIn, returns=Session),
    Operation("DELETE", "/auth/session", sign_out, OPEN, status=204),
    Operation("GET", "/auth/session", show, OPEN, returns=Session),
]
