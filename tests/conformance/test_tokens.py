"""Access tokens: found by digest, judged by the store's clock; sessions are gone with them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.errors import InvalidToken, UnknownToken
from fairlane.core.ids import new_ids
from fairlane.core.tokens import NewToken, Scope, Token, digest_of, issued, successor
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

HOUR = 3600.0
READ = frozenset({Scope.READ})


async def stored(
    store: World,
    name: str = "ci",
    scopes: frozenset[Scope] = READ,
    lifetime: float | None = None,
    *,
    parent: Token | None = None,
) -> Token:
    parent_id = None if parent is None else parent.token_id
    token, _ = issued(name, scopes, lifetime, parent_id=parent_id)
    return await store.run(store.ops.put_token(token))


async def known(store: World) -> list[str]:
    return [token.token_id for token in await store.run(store.ops.tokens())]


async def looked_up(store: World, token: Token) -> Token | None:
    return await store.run(store.ops.token(token.digest))


async def test_a_token_is_found_by_its_secret(store: World) -> None:
    assert await store.run(store.ops.tokens()) == []
    new, secret = issued("Größe 10", ["submit", "read"], exempt=True)
    token = await store.run(store.ops.put_token(new))
    assert (token.token_id, token.name, token.scopes) == (
        new.token_id,
        "Größe 10",
        frozenset({Scope.SUBMIT, Scope.READ}),
    )
    assert (token.kind, token.exempt, token.parent_id) == ("token", True, None)
    assert (token.expires_at, token.expires_in, token.lifetime) == (None, None, None)
    assert await store.run(store.ops.token(digest_of(secret))) == token
    assert await store.run(store.ops.tokens()) == [token]
    for wrong in (secret[:-1], secret + "x", "", "\udc80é", new.token_id):
        assert await store.run(store.ops.token(digest_of(wrong))) is None
    assert await store.run(store.ops.token(b"")) is None


async def test_tokens_are_shared_and_storing_one_again_changes_nothing(store: World) -> None:
    one, other = store.processes(2)
    new, _ = issued("ci", ["read"], HOUR)
    token = await one.run(one.ops.put_token(new))
    await store.advance(10)
    again = await other.run(other.ops.put_token(replace(new, name="changed")))
    assert replace(again, expires_in=None) == replace(token, expires_in=None)
    assert await known(store) == [new.token_id]
    twin = replace(issued("twin", ["read"])[0], digest=new.digest)
    with pytest.raises(InvalidToken, match="digest"):
        await one.run(one.ops.put_token(twin))
    assert await known(store) == [new.token_id]


async def test_a_token_counts_for_its_lifetime(store: World) -> None:
    for_ever = await stored(store, "for ever")
    token = await stored(store, "an hour", lifetime=HOUR)
    assert token.lifetime == token.expires_in == HOUR
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).total_seconds() == HOUR
    await store.advance(HOUR - 60)
    left = await looked_up(store, token)
    assert left is not None
    assert left.expires_in is not None
    assert 0 < left.expires_in <= 60
    assert (left.lifetime, left.expires_at) == (HOUR, token.expires_at)
    assert await known(store) == [for_ever.token_id, token.token_id]
    await store.advance(60)
    assert await looked_up(store, token) is None
    assert await known(store) == [for_ever.token_id]
    assert not await store.run(store.ops.drop_token(token.token_id))
    assert not await store.run(store.ops.retire_token(token.token_id, HOUR))
    rows = await store.leftovers()
    await stored(store, "another")
    assert await store.leftovers() | _other_sizes(rows) == rows, "one came, one was cleared away"


def _other_sizes(rows: dict[str, int]) -> dict[str, int]:
    """Those that are about something else, such as when documents expire."""
    return {
        name: size for name, size in rows.items() if not name.endswith(("documents", "times:token"))
    }


async def test_what_is_taken_away_is_gone_at_once(store: World) -> None:
    one, other = store.processes(2)
    empty = await store.leftovers()
    token, kept = await stored(store, lifetime=HOUR), await stored(store)
    assert await one.run(one.ops.drop_token(token.token_id))
    assert await other.run(other.ops.token(token.digest)) is None
    assert not await other.run(other.ops.drop_token(token.token_id))
    assert await known(store) == [kept.token_id]
    assert await one.run(one.ops.drop_token(kept.token_id))
    assert await store.leftovers() == empty


async def test_sessions_die_with_their_token(store: World) -> None:
    token, bystander = await stored(store, lifetime=HOUR), await stored(store)
    short = await stored(store, lifetime=60.0, parent=token)
    long = await stored(store, lifetime=2 * HOUR, parent=token)
    apart = await stored(store, lifetime=2 * HOUR, parent=bystander)
    assert (short.kind, short.parent_id) == ("session", token.token_id)
    assert short.expires_in == 60.0
    assert long.expires_at == token.expires_at
    assert apart.expires_in == 2 * HOUR
    assert await store.run(store.ops.drop_token(short.token_id))
    assert await looked_up(store, token) is not None
    assert await store.run(store.ops.drop_token(token.token_id))
    assert await looked_up(store, long) is None
    assert await known(store) == [bystander.token_id, apart.token_id]
    with pytest.raises(UnknownToken):
        await stored(store, lifetime=60.0, parent=token)


async def test_a_session_may_do_no_more_than_its_token(store: World) -> None:
    token = await stored(store, scopes=READ)
    admin = await stored(store, scopes=frozenset({Scope.ADMIN}))
    for scope in (Scope.SUBMIT, Scope.ADMIN, Scope.WORKER):
        with pytest.raises(InvalidToken, match="scope"):
            await stored(store, scopes=frozenset({Scope.READ, scope}), lifetime=60.0, parent=token)
    with pytest.raises(InvalidToken, match="scope"):
        await stored(store, scopes=frozenset({Scope.WORKER}), lifetime=60.0, parent=admin)
    both = frozenset({Scope.READ, Scope.SUBMIT})
    session = await stored(store, scopes=both, lifetime=60.0, parent=admin)
    assert session.scopes == both
    with pytest.raises(InvalidToken, match="session"):
        await stored(store, lifetime=30.0, parent=session)
    expiring = await stored(store, lifetime=10.0)
    await store.advance(10)
    with pytest.raises(UnknownToken):
        await stored(store, lifetime=60.0, parent=expiring)
    assert await known(store) == [token.token_id, admin.token_id, session.token_id]


async def test_a_token_is_replaced_with_an_overlap(store: World) -> None:
    old = await stored(store, lifetime=HOUR)
    session = await stored(store, lifetime=HOUR / 2, parent=old)
    new, _ = successor(old)
    replacing = await store.run(store.ops.put_token(new))
    assert (replacing.name, replacing.scopes, replacing.lifetime) == (old.name, READ, HOUR)
    assert await store.run(store.ops.retire_token(old.token_id, 60.0))
    for each in (old, session):
        left = await looked_up(store, each)
        assert left is not None
        assert left.expires_in is not None
        assert 0 < left.expires_in <= 60
    # Never longer than it was to be anyway.
    assert await store.run(store.ops.retire_token(old.token_id, 2 * HOUR))
    await store.advance(60)
    assert await known(store) == [replacing.token_id]
    assert await store.run(store.ops.retire_token(replacing.token_id, 0))
    assert await known(store) == []


async def test_tokens_that_cannot_be_stored(store: World) -> None:
    good, _ = issued("ci", ["read"])
    for bad in (
        replace(good, token_id="nonsense"),
        replace(good, digest=b"short"),
        replace(good, name="\x00"),
        replace(good, name=" "),
        replace(good, scopes=frozenset()),
        replace(good, lifetime=float("nan")),
        replace(good, lifetime=0.0),
        replace(good, parent_id=good.token_id),
    ):
        with pytest.raises(InvalidToken):
            await store.run(store.ops.put_token(bad))
    with pytest.raises(InvalidToken):
        await store.run(store.ops.drop_token("\x00"))
    with pytest.raises(InvalidToken):
        await store.run(store.ops.retire_token(good.token_id, -1))
    assert await known(store) == []


async def test_tokens_are_bounded_and_sessions_leave_room(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TOKENS", 4)
    monkeypatch.setattr(limits, "SESSIONS", 2)
    token = await stored(store)
    await stored(store, lifetime=60.0, parent=token)
    with pytest.raises(InvalidToken, match="2 tokens and sessions"):
        await stored(store, lifetime=60.0, parent=token)
    await stored(store)
    last, _ = issued("last", ["read"])
    await store.run(store.ops.put_token(last))
    await store.run(store.ops.put_token(last))
    with pytest.raises(InvalidToken, match="4 tokens and sessions"):
        await stored(store)
    await store.advance(60)
    assert (await stored(store)).token_id in await known(store)


async def test_no_session_outlives_its_token_however_they_meet(store: World) -> None:
    one, other = store.processes(2)
    for number, token_id in enumerate(new_ids(12)):
        parent = NewToken(token_id, "ci", secrets.token_bytes(32), READ)
        await one.run(one.ops.put_token(parent))
        sessions = [issued("s", READ, HOUR, parent_id=token_id)[0] for _ in range(3)]
        calls: list[Awaitable[object]] = [other.run(other.ops.put_token(each)) for each in sessions]
        # Sometimes it is the first to be sent, sometimes the last.
        calls.insert(number % 4, one.run(one.ops.drop_token(token_id)))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert answers.pop(number % 4) is True
        assert all(isinstance(each, Token | UnknownToken) for each in answers)
        assert await known(store) == []
