"""tokens, token, put_token, retire_token, drop_token: who may do what over the network."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.errors import InvalidToken
from fairlane.core.flow import Flow, reads, transacts, writes
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
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("tokens")


@reads
def tokens(self: Context) -> Flow[list[Token]]:
    rows = yield Query(SQL["tokens"])
    return in_order(token_of(*row) for row in rows)


@reads
def token(self: Context, digest: bytes) -> Flow[Token | None]:
    return (yield from _found("by_digest", digest))


@transacts
def put_token(self: Context, token: NewToken) -> Flow[Token]:
    checked(token)
    # Whoever takes a token away waits for this, or this for him: no session is left without one.
    yield Query(SQL["lock"])
    yield Query(SQL["clear"], (limits.BATCH,))
    if token.parent_id is not None:
        checked_parent(token, (yield from _found("by_id", token.parent_id)))
    ((others, taken),) = yield Query(SQL["count_others"], (token.token_id, token.digest))
    if taken:
        raise InvalidToken("Another token has this digest.")
    if others >= most(token):
        raise too_many(token)
    values = (token.token_id, token.digest, token.parent_id, token.lifespan, token.terms())
    (row,) = yield Query(SQL["put"], values)
    return token_of(*row)


@writes
def retire_token(self: Context, token_id: str, seconds: float) -> Flow[bool]:
    lifespan = checked_seconds(seconds)
    return bool((yield Query(SQL["retire"], (checked_id(token_id), lifespan))))


@writes
def drop_token(self: Context, token_id: str) -> Flow[bool]:
    return bool((yield Query(SQL["drop"], (checked_id(token_id),))))


def _found(statement: str, key: bytes | str) -> Flow[Token | None]:
    rows = yield Query(SQL[statement], (key,))
    return token_of(*rows[0]) if rows else None
