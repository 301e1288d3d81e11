"""tokens, token, put_token, retire_token, drop_token: who may do what over the network."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.errors import InvalidToken
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
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import Context

SQL = statements(__package__, "tokens")


@reads
def tokens(self: Context) -> Flow[list[Token]]:
    rows = yield Execute(SQL["tokens"], (self.clock(),))
    return in_order(token_of(*row) for row in rows)


@reads
def token(self: Context, digest: bytes) -> Flow[Token | None]:
    return (yield from _found("by_digest", digest, self.clock()))


@writes
def put_token(self: Context, token: NewToken) -> Flow[Token]:
    checked(token)
    now = self.clock()
    yield Execute(SQL["clear"], (now, limits.BATCH))
    if token.parent_id is not None:
        checked_parent(token, (yield from _found("by_id", token.parent_id, now)))
    ((others, taken),) = yield Execute(SQL["count_others"], (token.token_id, token.digest))
    if taken:
        raise InvalidToken("Another token has this digest.")
    if others >= most(token):
        raise too_many(token)
    values = (token.token_id, token.digest, token.parent_id, now, token.lifespan, token.terms())
    (row,) = yield Execute(SQL["put"], values)
    return token_of(*row)


@writes
def retire_token(self: Context, token_id: str, seconds: float) -> Flow[bool]:
    lifespan = checked_seconds(seconds)
    now = self.clock()
    values = (checked_id(token_id), now, now + lifespan)
    return bool((yield Execute(SQL["retire"], values)).rowcount)


@writes
def drop_token(self: Context, token_id: str) -> Flow[bool]:
    return bool((yield Execute(SQL["drop"], (checked_id(token_id), self.clock()))).rowcount)


def _found(statement: str, key: bytes | str, now: int) -> Flow[Token | None]:
    row = (yield Execute(SQL[statement], (key, now))).fetchone()
    return None if row is None else token_of(*row)
