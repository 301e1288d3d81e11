"""tokens, token, put_token, retire_token, drop_token: who may do what over the network."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fairlane.core.errors import InvalidToken, UnknownToken
from fairlane.core.flow import Flow, reads, writes
from fairlane.core.tokens import (
    NewToken,
    Token,
    checked,
    checked_id,
    checked_parent,
    checked_seconds,
    in_order,
    most,
    token_of,
    too_many,
)
from fairlane.engines.redis.context import Context, pairs
from fairlane.engines.redis.scripts import script

TOKENS = script("tokens")
TOKEN = script("token")
PUT_TOKEN = script("put_token")
RETIRE_TOKEN = script("retire_token")
DROP_TOKEN = script("drop_token")

# created_at, expires_at, the parent's id, the digest; then the terms
_HEAD = struct.Struct(">QQ36s32s")
_NEVER = 2**63 - 1
_NO_PARENT = b" " * 36


@reads
def tokens(self: Context) -> Flow[list[Token]]:
    now, stored = yield from self.call(TOKENS)
    return in_order(_counting(stored, int(now)))


@reads
def token(self: Context, digest: bytes) -> Flow[Token | None]:
    return (yield from _found(self, digest))


@writes
def put_token(self: Context, token: NewToken) -> Flow[Token]:
    checked(token)
    if token.parent_id is not None:
        # What is asked of a parent never changes; the script sees whether it still counts.
        checked_parent(token, (yield from _found(self, b"", token.parent_id)))
    reply = yield from self.call(
        PUT_TOKEN,
        most(token),
        token.token_id,
        b"" if token.lifespan is None else token.lifespan,
        token.parent_id or _NO_PARENT,
        token.digest,
        token.terms(),
    )
    match reply:
        case b"taken":
            raise InvalidToken("Another token has this digest.")
        case b"full":
            raise too_many(token)
        case b"orphan":
            raise UnknownToken
    now, stored = reply
    return _token(token.token_id.encode(), stored, int(now))


@writes
def retire_token(self: Context, token_id: str, seconds: float) -> Flow[bool]:
    lifespan = checked_seconds(seconds)
    return bool((yield from self.call(RETIRE_TOKEN, checked_id(token_id), lifespan)))


@writes
def drop_token(self: Context, token_id: str) -> Flow[bool]:
    return bool((yield from self.call(DROP_TOKEN, checked_id(token_id))))


def _found(self: Context, *key: bytes | str) -> Flow[Token | None]:
    now, found = yield from self.call(TOKEN, *key)
    return next(_counting(found, int(now)), None)


def _counting(stored: list[bytes], now: int) -> Iterator[Token]:
    """Those that have not expired."""
    for token_id, each in pairs(stored):
        token = _token(token_id, each, now)
        if token.expires_in is None or token.expires_in > 0:
            yield token


def _token(token_id: bytes, stored: bytes, now: int) -> Token:
    created_at, expires_at, parent_id, digest = _HEAD.unpack_from(stored)
    return token_of(
        token_id.decode(),
        digest,
        None if parent_id == _NO_PARENT else parent_id.decode(),
        created_at,
        None if expires_at == _NEVER else expires_at,
        stored[_HEAD.size :],
        now,
    )
