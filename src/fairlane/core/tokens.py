"""Access tokens: who may do what over the network.

A token is a secret that is shown once. Stores keep its SHA-256 digest, by which it is looked up:
what a comparison could tell by the time it takes is about the digest, and of no use to anyone. A
browser session is a short-lived token made from another one: it may do no more, and ends with it at
the latest.

Whether a token still counts is for the store's clock to say. An answer tells for how many seconds
more (`expires_in`), so that others need not know what time it is there.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, Written, every, rewrites, write
from fairlane.core.errors import InvalidTags, InvalidToken, UnknownToken
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import is_id, new_id
from fairlane.core.model import moment, moment_or_none
from fairlane.core.ownership import Bounds
from fairlane.core.priority import MICROSECONDS
from fairlane.core.submission import checked_tags
from fairlane.core.text import SECRET_PREFIX, is_name, is_plain, shown

replace = msgspec.structs.replace


class Scope(StrEnum):
    """What a token is for."""

    SUBMIT = "submit"
    READ = "read"
    ADMIN = "admin"
    WORKER = "worker"


LOST_TOKENS = "tokens-were-lost"
"""The name of a token that nobody has: it keeps a server closed whose tokens are gone."""


def allows(held: Iterable[Scope], needed: Scope) -> bool:
    """Return whether these scopes are enough. An admin may submit and read; what workers do is
    theirs."""
    return needed in held or (needed is not Scope.WORKER and Scope.ADMIN in held)


class NewToken(msgspec.Struct, frozen=True):
    """A token to be stored: see `issued`. `lifetime` is in seconds, None for ever.

    `parent_id`: the token that a session is made from. `exempt`: not refused by admission control.
    `subject`: whom it stands for; its tasks belong to it. `own`, `queues` and `tags` are what it is
    bound to: see `ownership`.
    """

    token_id: str
    name: str
    digest: bytes
    scopes: frozenset[Scope]
    lifetime: float | None = None
    parent_id: str | None = None
    exempt: bool = False
    subject: str | None = None
    own: bool = False
    queues: frozenset[str] | None = None
    tags: Mapping[str, str] = {}

    @property
    def bounds(self) -> Bounds | None:
        """What it is bound to; None if it is not."""
        return _bounds(self)


class _Terms(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the document of a token holds. Its id is the token's, its alias the digest in hex."""

    name: str
    scopes: frozenset[Scope]
    lifetime: float | None = None
    exempt: bool = False
    parent_id: str | None = None
    subject: str | None = None
    own: bool = False
    queues: frozenset[str] | None = None
    tags: dict[str, str] = {}


_terms = msgspec.json.Encoder(order="deterministic")
_terms_decoder = msgspec.json.Decoder(_Terms)


class Token(msgspec.Struct, frozen=True):
    """A token that counts. `lifetime` is what it was given, `expires_in` the seconds that were left
    of it when the store answered; both None when it does not expire."""

    token_id: str
    name: str
    digest: bytes
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None
    expires_in: float | None
    lifetime: float | None
    parent_id: str | None
    exempt: bool
    subject: str | None = None
    own: bool = False
    queues: frozenset[str] | None = None
    tags: Mapping[str, str] = {}

    @property
    def bounds(self) -> Bounds | None:
        """What it is bound to; None if it is not."""
        return _bounds(self)

    @property
    def kind(self) -> Literal["token", "session"]:
        """Whether it was made from another one."""
        return "token" if self.parent_id is None else "session"

    def may(self, needed: Scope) -> bool:
        """Return whether its scopes are enough."""
        return allows(self.scopes, needed)


def _token_of(stored: Document, now: int) -> Token:
    """Return a stored token as others see it at a time."""
    terms = _terms_decoder.decode(stored.value)
    left = None if stored.expires_at is None else (stored.expires_at - now) / MICROSECONDS
    return Token(
        token_id=stored.id,
        name=terms.name,
        digest=bytes.fromhex(stored.alias or ""),
        scopes=terms.scopes,
        created_at=moment(stored.at),
        expires_at=moment_or_none(stored.expires_at),
        expires_in=left,
        lifetime=terms.lifetime,
        parent_id=terms.parent_id,
        exempt=terms.exempt,
        subject=terms.subject,
        own=terms.own,
        queues=terms.queues,
        tags=terms.tags,
    )


def _bounds(token: NewToken | Token) -> Bounds | None:
    if not token.own and token.queues is None and not token.tags:
        return None
    return Bounds(token.subject or token.name, token.own, token.queues, token.tags)


def _counting(stored: Document | None, now: int) -> Token | None:
    """Return a stored token, if it counts."""
    return _token_of(stored, now) if stored is not None and stored.counts(now) else None


_RANDOM_BYTES = 24


def issued(
    name: str,
    scopes: Iterable[Scope | str],
    lifetime: float | None = None,
    *,
    parent_id: str | None = None,
    exempt: bool = False,
    subject: str | None = None,
    own: bool = False,
    queues: Iterable[str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> tuple[NewToken, str]:
    """Return a token to be stored, and its secret, which is nowhere else.

    Without a `subject`, its name is the subject.
    """
    secret = SECRET_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    token = NewToken(
        new_id(),
        name,
        digest_of(secret),
        _scopes(scopes),
        lifetime,
        parent_id,
        exempt,
        name if subject is None else subject,
        own,
        None if queues is None else frozenset(queues),
        {} if tags is None else dict(tags),
    )
    return checked(token), secret


def successor(token: Token) -> tuple[NewToken, str]:
    """Make a token like this one with a new secret. Store it, then retire the old one.

    One that was made before there were subjects gets its name for one.
    """
    if token.kind == "session":
        raise InvalidToken("A session has no successor: sign in again.")
    return issued(
        token.name,
        token.scopes,
        token.lifetime,
        exempt=token.exempt,
        subject=token.subject,
        own=token.own,
        queues=token.queues,
        tags=token.tags,
    )


def digest_of(secret: str) -> bytes:
    """By which a secret is looked up, whatever someone sent for one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def checked(token: NewToken) -> NewToken:
    """Return the token, if it can be stored."""
    if not is_id(token.token_id) or len(token.digest) != _DIGEST_BYTES:
        raise InvalidToken("A token's id is a UUID, and its digest a SHA-256.")
    if not (is_plain(token.name) and token.name.strip()):
        raise InvalidToken(
            f"A token's name is a text of 1 to {limits.NAME_LENGTH} characters without control "
            f"characters. Got {shown(token.name)}."
        )
    if not token.scopes:
        raise InvalidToken(f"A token has at least one scope of {', '.join(Scope)}.")
    if token.lifetime is None:
        if token.parent_id is not None:
            raise InvalidToken("A session has a lifetime.")
    elif not checked_seconds(token.lifetime):
        raise InvalidToken("A token has to count for some time: leave its lifetime out for ever.")
    if token.subject is not None and not (is_plain(token.subject) and token.subject.strip()):
        raise InvalidToken(
            f"A token's subject is a text of 1 to {limits.NAME_LENGTH} characters without control "
            f"characters. Got {shown(token.subject)}."
        )
    if token.bounds is not None:
        _check_bounds(token)
    return token


def _check_bounds(token: NewToken) -> None:
    for queue in token.queues or ():
        if not is_name(queue):
            raise InvalidToken(f"A token is bound to queues by name. Got {shown(queue)}.")
    if token.queues is not None and not token.queues:
        raise InvalidToken("A token that is bound to no queue can see nothing: name one, or none.")
    try:
        checked_tags(token.tags)
    except InvalidTags as error:
        raise InvalidToken(f"A token cannot be bound to these tags. {error.message}") from None
    if Scope.ADMIN in token.scopes:
        raise InvalidToken(
            "A token with the scope admin sees everything, and cannot be bound: give it the scopes "
            "submit and read, or leave the bounds out."
        )
    if Scope.WORKER in token.scopes and (token.own or token.tags):
        raise InvalidToken(
            "A token with the scope worker can be bound to queues only, because workers claim by "
            "queue: make one token for workers and another one for the rest."
        )


_DIGEST_BYTES = hashlib.sha256().digest_size


def checked_parent(token: NewToken, parent: Token | None) -> NewToken:
    """Return a session as it is made from this token: it has its subject and its bounds."""
    if parent is None:
        raise UnknownToken
    if parent.kind == "session":
        raise InvalidToken("A session is made from a token, not from another session.")
    if not all(parent.may(scope) for scope in token.scopes):
        raise InvalidToken("A session has no scope that its token does not have.")
    return replace(
        token, subject=parent.subject, own=parent.own, queues=parent.queues, tags=parent.tags
    )


def checked_id(token_id: object) -> str:
    """Return what may be the id of a token."""
    if is_id(token_id):
        return token_id
    raise InvalidToken(f"A token's id is a UUID in lower case. Got {shown(token_id)}.")


def checked_seconds(seconds: object) -> int:
    """For how long a token is to count; answers microseconds."""
    if (
        isinstance(seconds, int | float)
        and not isinstance(seconds, bool)
        and 0 <= seconds <= limits.TOKEN_SECONDS
    ):
        return int(seconds * MICROSECONDS)
    raise InvalidToken(
        f"A token counts for a number of seconds from 0 to {limits.TOKEN_SECONDS:,.0f}. "
        f"Got {shown(seconds)}."
    )


def _scopes(given: Iterable[Any]) -> frozenset[Scope]:
    named = [given] if isinstance(given, str) else list(given)
    unknown = [name for name in named if name not in list(Scope)]
    if unknown:
        raise InvalidToken(f"A scope is one of {', '.join(Scope)}. Got {shown(unknown[0])}.")
    return frozenset(map(Scope, named))


# Operations, see `store`.

_KIND = "token"


@reads
def tokens(self: Documents) -> Flow[list[Token]]:
    now, found = yield from every(self, _KIND)
    return [_token_of(each, now) for each in found if each.counts(now)]


@reads
def token(self: Documents, digest: bytes) -> Flow[Token | None]:
    found = yield from self.find_document(_KIND, digest.hex())
    if found is None:
        return None
    now, document = found
    return _counting(document, now)


@rewrites
def put_token(self: Documents, token: NewToken) -> Flow[Token]:
    checked(token)
    yield from self.expire_documents(_KIND, limits.BATCH)
    parents = [] if token.parent_id is None else [token.parent_id]
    now, (stored, *found) = yield from self.read_documents(_KIND, [token.token_id, *parents])
    if stored is not None:
        return _token_of(stored, now)
    for parent in found:
        token = checked_parent(token, _counting(parent, now))
    new = _document_of(token, now, found)
    # Sessions leave room for tokens. The token of a session is written again, unchanged: a process
    # that retires or drops the token at this moment finds a new version, starts again, and then
    # finds the session, too.
    most = limits.SESSIONS if parents else limits.TOKENS
    written = yield from write(self, _KIND, [new, *filter(None, found)], most=most)
    if written is Written.TAKEN:
        raise InvalidToken("Another token has this digest.")
    if written is Written.FULL:
        raise InvalidToken(
            f"No more than {most:,} tokens and sessions are kept: revoke some that are no longer "
            "needed, or wait until some have expired."
        )
    return _token_of(new, now)


@rewrites
def retire_token(self: Documents, token_id: str, seconds: float) -> Flow[bool]:
    lifespan = checked_seconds(seconds)
    now, family = yield from _family(self, token_id)
    latest = now + lifespan
    longer = [each for each in family if each.counts(latest)]
    if longer:
        yield from write(self, _KIND, [replace(each, expires_at=latest) for each in longer])
    return bool(family)


@rewrites
def drop_token(self: Documents, token_id: str) -> Flow[bool]:
    _, family = yield from _family(self, token_id)
    if family:
        yield from write(self, _KIND, [], family)
    return bool(family)


def _family(self: Documents, token_id: str) -> Flow[tuple[int, list[Document]]]:
    """Return a token that counts, and the sessions made from it; empty if there is none."""
    now, (token,) = yield from self.read_documents(_KIND, [checked_id(token_id)])
    if token is None or not token.counts(now):
        return now, []
    _, others = yield from every(self, _KIND)
    sessions = [each for each in others if _terms_decoder.decode(each.value).parent_id == token_id]
    return now, [token, *sessions]


def _document_of(token: NewToken, now: int, parents: Iterable[Document | None]) -> Document:
    """Return a token as it is stored. A session expires with its token at the latest."""
    ends = [None if token.lifetime is None else now + int(token.lifetime * MICROSECONDS)]
    ends += [parent.expires_at for parent in parents if parent is not None]
    terms = _Terms(
        token.name,
        token.scopes,
        token.lifetime,
        token.exempt,
        token.parent_id,
        token.subject,
        token.own,
        token.queues,
        dict(token.tags),
    )
    return Document(
        id=token.token_id,
        value=_terms.encode(terms),
        at=now,
        expires_at=min((end for end in ends if end is not None), default=None),
        alias=token.digest.hex(),
    )
