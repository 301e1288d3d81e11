"""Access tokens: what they allow, how they are made, and what cannot be stored."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.errors import InvalidToken, UnknownToken
from fairlane.core.model import moment
from fairlane.core.text import concealed, shown
from fairlane.core.tokens import (
    NewToken,
    Scope,
    Token,
    allows,
    checked,
    checked_id,
    checked_parent,
    checked_seconds,
    digest_of,
    in_order,
    issued,
    most,
    successor,
    token_of,
    too_many,
)
from tests.unit.make import NOW, SECOND, TASK_ID, quick, task_id, torn_texts

DIGEST = bytes(range(32))
NEW = NewToken(TASK_ID, "ci", DIGEST, frozenset({Scope.READ}))


def stored(new: NewToken, expires_at: int | None = None, now: int = NOW) -> Token:
    return token_of(new.token_id, new.digest, new.parent_id, NOW, expires_at, new.terms(), now)


class TestScopes:
    @pytest.mark.parametrize(
        ("held", "allowed"),
        [
            ({Scope.SUBMIT}, {Scope.SUBMIT}),
            ({Scope.READ}, {Scope.READ}),
            ({Scope.ADMIN}, {Scope.SUBMIT, Scope.READ, Scope.ADMIN}),
            ({Scope.WORKER}, {Scope.WORKER}),
            ({Scope.READ, Scope.WORKER}, {Scope.READ, Scope.WORKER}),
            (set(), set()),
        ],
    )
    def test_what_each_allows(self, held: set[Scope], allowed: set[Scope]) -> None:
        assert {scope for scope in Scope if allows(held, scope)} == allowed
        token = stored(replace(NEW, scopes=frozenset(held)))
        assert {scope for scope in Scope if token.may(scope)} == allowed

    def test_their_names_are_stored_and_so_never_change(self) -> None:
        assert list(Scope) == ["submit", "read", "admin", "worker"]


class TestIssued:
    def test_a_secret_that_is_nowhere_in_the_token(self) -> None:
        token, secret = issued("ci", ["submit", Scope.READ], 60.0, exempt=True)
        assert (token.name, token.scopes) == ("ci", frozenset({Scope.SUBMIT, Scope.READ}))
        assert (token.lifetime, token.lifespan) == (60.0, 60 * SECOND)
        assert (token.parent_id, token.exempt) == (None, True)
        assert token.digest == digest_of(secret) == hashlib.sha256(secret.encode()).digest()
        assert secret not in repr(token)
        assert re.fullmatch(r"fl_[A-Za-z0-9_-]{32}", secret), "192 bits"

    def test_no_two_are_alike(self) -> None:
        made = [issued("ci", ["read"]) for _ in range(100)]
        assert len({secret for _, secret in made}) == 100
        assert len({token.token_id for token, _ in made}) == 100

    @pytest.mark.parametrize("scopes", [["nonsense"], ["read", None], ["READ"], [["read"]], [5]])
    def test_other_scopes_are_refused(self, scopes: Any) -> None:
        with pytest.raises(InvalidToken, match=r"^A scope is one of submit, read, admin, worker\."):
            issued("ci", scopes)

    def test_one_scope_is_a_list_of_one(self) -> None:
        assert issued("ci", "read")[0].scopes == {Scope.READ}

    @quick
    @given(torn_texts)
    def test_whatever_was_sent_for_a_secret_has_a_digest(self, text: str) -> None:
        assert len(digest_of(text)) == 32
        assert (digest_of(text) == digest_of("fl_x")) == (text == "fl_x")

    def test_a_secret_is_not_shown_where_it_does_not_belong(self) -> None:
        _, secret = issued("ci", ["read"])
        assert concealed(f"a {secret}, {secret}b!") == "a fl_***, fl_***!"
        assert shown(secret) == "'fl_***'"
        assert concealed("fl_short") == "fl_short"


class TestChecked:
    def test_a_token_that_can_be_stored(self) -> None:
        assert checked(NEW) is NEW
        session = replace(NEW, parent_id=task_id(1), lifetime=1)
        assert checked(session) is session

    @pytest.mark.parametrize(
        ("bad", "said"),
        [
            (replace(NEW, token_id="x"), "UUID"),
            (replace(NEW, digest=b""), "SHA-256"),
            (replace(NEW, name=""), "name"),
            (replace(NEW, name=" "), "name"),
            (replace(NEW, name="a\nb"), "name"),
            (replace(NEW, name="a" * 256), "name"),
            (replace(NEW, name="\ud800"), "name"),
            (replace(NEW, scopes=frozenset()), "at least one scope"),
            (replace(NEW, lifetime=0.0), "some time"),
            (replace(NEW, lifetime=1e-9), "some time"),
            (replace(NEW, lifetime=-1.0), "number of seconds"),
            (replace(NEW, parent_id=task_id(1)), "session has a lifetime"),
        ],
    )
    def test_tokens_that_cannot(self, bad: NewToken, said: str) -> None:
        with pytest.raises(InvalidToken, match=said):
            checked(bad)

    @pytest.mark.parametrize("seconds", [0, 0.5, 60, limits.TOKEN_SECONDS])
    def test_seconds(self, seconds: float) -> None:
        assert checked_seconds(seconds) == seconds * SECOND

    @pytest.mark.parametrize(
        "seconds", [-1, float("nan"), float("inf"), limits.TOKEN_SECONDS + 1, "60", None, True]
    )
    def test_other_seconds_are_refused(self, seconds: Any) -> None:
        with pytest.raises(InvalidToken, match="number of seconds from 0 to"):
            checked_seconds(seconds)

    def test_ids(self) -> None:
        assert checked_id(TASK_ID) == TASK_ID
        for bad in ("", "ci", TASK_ID.upper(), None, "\x00"):
            with pytest.raises(InvalidToken, match="UUID"):
                checked_id(bad)

    def test_sessions_leave_room_for_tokens(self) -> None:
        session = replace(NEW, parent_id=task_id(1), lifetime=1.0)
        assert (most(NEW), most(session)) == (10_000, 9_000)
        assert "9,000 tokens and sessions" in too_many(session).message


class TestSessions:
    SESSION = replace(NEW, token_id=task_id(1), parent_id=TASK_ID, lifetime=60.0)

    def test_may_do_what_their_token_may(self) -> None:
        checked_parent(self.SESSION, stored(NEW))
        both = frozenset({Scope.SUBMIT, Scope.READ})
        admin = stored(replace(NEW, scopes=frozenset({Scope.ADMIN})))
        checked_parent(replace(self.SESSION, scopes=both), admin)

    def test_may_do_nothing_else(self) -> None:
        for scope in (Scope.SUBMIT, Scope.ADMIN, Scope.WORKER):
            more = replace(self.SESSION, scopes=frozenset({Scope.READ, scope}))
            with pytest.raises(InvalidToken, match="no scope"):
                checked_parent(more, stored(NEW))

    def test_are_made_from_a_token_that_is_there(self) -> None:
        with pytest.raises(UnknownToken, match="token list"):
            checked_parent(self.SESSION, None)
        with pytest.raises(InvalidToken, match="not from another session"):
            checked_parent(self.SESSION, stored(self.SESSION))


class TestStored:
    def test_a_token_for_ever(self) -> None:
        token = stored(NEW)
        assert token == Token(
            TASK_ID, "ci", DIGEST, NEW.scopes, moment(NOW), None, None, None, None, exempt=False
        )
        assert token.kind == "token"
        assert NEW.lifespan is None

    def test_a_session_and_what_is_left_of_it(self) -> None:
        new = replace(NEW, parent_id=task_id(1), lifetime=60.0, exempt=True)
        token = stored(new, NOW + 60 * SECOND, NOW + 20 * SECOND)
        assert (token.kind, token.exempt, token.lifetime) == ("session", True, 60.0)
        assert (token.expires_at, token.expires_in) == (moment(NOW + 60 * SECOND), 40.0)

    def test_what_is_stored_never_changes(self) -> None:
        scopes = frozenset({Scope.WORKER, Scope.ADMIN})
        assert NEW.terms() == b'{"name":"ci","scopes":["read"]}'
        assert replace(NEW, scopes=scopes, exempt=True, lifetime=1.5).terms() == (
            b'{"name":"ci","scopes":["admin","worker"],"lifetime":1.5,"exempt":true}'
        )

    def test_the_oldest_come_first(self) -> None:
        first, second = (stored(replace(NEW, token_id=task_id(n))) for n in (1, 2))
        last = replace(first, token_id=task_id(0), created_at=moment(NOW + 1))
        assert in_order([last, second, first]) == [first, second, last]


class TestSuccessor:
    def test_is_the_same_but_for_the_secret(self) -> None:
        old = stored(replace(NEW, lifetime=90.0, exempt=True), NOW + 5 * SECOND)
        new, secret = successor(old)
        assert (new.name, new.scopes, new.exempt) == (old.name, old.scopes, True)
        assert new.lifetime == 90.0, "as it was given, whatever is left of it"
        assert new.digest == digest_of(secret) != old.digest
        assert new.token_id != old.token_id

    def test_sessions_have_none(self) -> None:
        with pytest.raises(InvalidToken, match="sign in again"):
            successor(stored(TestSessions.SESSION))
