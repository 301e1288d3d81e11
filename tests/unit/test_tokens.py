"""Access tokens: what they allow, how they are made, and what cannot be stored."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from fairlane.core import limits, tokens
from fairlane.core.errors import InvalidToken, UnknownToken
from fairlane.core.model import moment
from fairlane.core.ownership import Bounds
from fairlane.core.text import concealed, is_secret, shown
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
    issued,
    successor,
)
from tests.unit.make import NOW, SECOND, TASK_ID, quick, task_id, torn_texts
from tests.unit.shelf import Shelf, once

DIGEST = bytes(range(32))
NEW = NewToken(TASK_ID, "ci", DIGEST, frozenset({Scope.READ}))
PARENT = NewToken(task_id(1), "parent", bytes(32), frozenset(Scope))
SESSION = replace(NEW, parent_id=PARENT.token_id, lifetime=60.0)


def stored(new: NewToken) -> Token:
    """The token as it is answered when it has been stored."""
    shelf = Shelf()
    if new.parent_id is not None:
        shelf.run(tokens.put_token(shelf, PARENT))
    return shelf.run(tokens.put_token(shelf, new))


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
        token = replace(stored(NEW), scopes=frozenset(held))
        assert {scope for scope in Scope if token.may(scope)} == allowed

    def test_their_names_are_stored_and_so_never_change(self) -> None:
        assert list(Scope) == ["submit", "read", "admin", "worker"]


class TestIssued:
    def test_a_secret_that_is_nowhere_in_the_token(self) -> None:
        token, secret = issued("ci", ["submit", Scope.READ], 60.0, exempt=True)
        assert (token.name, token.scopes) == ("ci", frozenset({Scope.SUBMIT, Scope.READ}))
        assert token.lifetime == 60.0
        assert (token.parent_id, token.exempt) == (None, True)
        assert token.digest == digest_of(secret) == hashlib.sha256(secret.encode()).digest()
        assert secret not in repr(token)
        assert re.fullmatch(r"fl_[A-Za-z0-9_-]{32}", secret), "192 bits"

    def test_for_a_subject_and_within_bounds(self) -> None:
        token, _ = issued("ci", "submit", subject="acme", own=True, queues=["q"], tags={"a": "b"})
        assert (token.subject, token.own, token.queues) == ("acme", True, frozenset({"q"}))
        assert token.bounds == Bounds("acme", own=True, queues=frozenset({"q"}), tags={"a": "b"})
        plain, _ = issued("ci", "submit")
        assert (plain.subject, plain.bounds) == ("ci", None), "its name"
        workers, _ = issued("w", "worker", queues=["q"])
        assert workers.bounds == Bounds("w", queues=frozenset({"q"}))

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
        assert is_secret(secret)
        assert not any(map(is_secret, ("fl_short", f"{secret} ", f"x{secret}", secret * 9)))


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
            (replace(NEW, subject=""), "subject"),
            (replace(NEW, subject=" "), "subject"),
            (replace(NEW, subject="a\x1fb"), "subject"),
            (replace(NEW, subject="a" * 256), "subject"),
            (replace(NEW, queues=frozenset()), "bound to no queue"),
            (replace(NEW, queues=frozenset({"a b"})), "queues by name"),
            (replace(NEW, tags={"a": "b\n"}), "bound to these tags"),
            (replace(NEW, tags=dict.fromkeys(map(str, range(65)), "")), "bound to these tags"),
            (replace(NEW, own=True, scopes=frozenset({Scope.READ, Scope.ADMIN})), "scope admin"),
            (replace(NEW, own=True, scopes=frozenset({Scope.WORKER})), "scope worker"),
            (replace(NEW, tags={"a": "b"}, scopes=frozenset({Scope.WORKER})), "scope worker"),
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


class TestSessions:
    def test_may_do_what_their_token_may(self) -> None:
        checked_parent(SESSION, stored(NEW))
        both = frozenset({Scope.SUBMIT, Scope.READ})
        admin = stored(replace(NEW, scopes=frozenset({Scope.ADMIN})))
        checked_parent(replace(SESSION, scopes=both), admin)

    def test_may_do_nothing_else(self) -> None:
        for scope in (Scope.SUBMIT, Scope.ADMIN, Scope.WORKER):
            more = replace(SESSION, scopes=frozenset({Scope.READ, scope}))
            with pytest.raises(InvalidToken, match="no scope"):
                checked_parent(more, stored(NEW))

    @pytest.mark.parametrize(
        "parent",
        [
            PARENT,
            replace(PARENT, subject="acme"),
            replace(PARENT, scopes=NEW.scopes, subject="acme", own=True, tags={"a": "b"}),
            replace(PARENT, scopes=NEW.scopes, subject="acme", queues=frozenset({"q"})),
        ],
    )
    def test_have_the_subject_and_the_bounds_of_their_token(self, parent: NewToken) -> None:
        shelf = Shelf()
        token = shelf.run(tokens.put_token(shelf, parent))
        for wanted in (SESSION, replace(SESSION, subject="other", queues=frozenset({"r"}))):
            session = shelf.run(tokens.put_token(shelf, wanted))
            assert (session.subject, session.bounds) == (token.subject, token.bounds)
            shelf.run(tokens.drop_token(shelf, session.token_id))

    def test_are_made_from_a_token_that_is_there(self) -> None:
        with pytest.raises(UnknownToken, match="token list"):
            checked_parent(SESSION, None)
        with pytest.raises(InvalidToken, match="not from another session"):
            checked_parent(SESSION, stored(SESSION))


class TestStored:
    def test_a_token_for_ever(self) -> None:
        token = stored(NEW)
        assert token == Token(
            TASK_ID, "ci", DIGEST, NEW.scopes, moment(NOW), None, None, None, None, exempt=False
        )
        assert token.kind == "token"

    def test_a_session_and_what_is_left_of_it(self) -> None:
        shelf = Shelf()
        shelf.run(tokens.put_token(shelf, PARENT))
        shelf.run(tokens.put_token(shelf, replace(SESSION, exempt=True)))
        shelf.now += 20 * SECOND
        token = shelf.run(tokens.token(shelf, DIGEST))
        assert token is not None
        assert (token.kind, token.exempt, token.lifetime) == ("session", True, 60.0)
        assert (token.expires_at, token.expires_in) == (moment(NOW + 60 * SECOND), 40.0)
        shelf.now += 40 * SECOND
        assert shelf.run(tokens.token(shelf, DIGEST)) is None
        assert shelf.run(tokens.token(shelf, b"")) is None

    @pytest.mark.parametrize(
        ("new", "value"),
        [
            (NEW, b'{"name":"ci","scopes":["read"]}'),
            (
                replace(
                    NEW, scopes=frozenset({Scope.WORKER, Scope.ADMIN}), exempt=True, lifetime=1.5
                ),
                b'{"name":"ci","scopes":["admin","worker"],"lifetime":1.5,"exempt":true}',
            ),
            (
                SESSION,
                b'{"name":"ci","scopes":["read"],"lifetime":60.0,"parent_id":"%b"}'
                % PARENT.token_id.encode(),
            ),
            (
                replace(NEW, subject="acme", own=True, queues=frozenset("ba"), tags={"k": "v"}),
                (
                    b'{"name":"ci","scopes":["read"],"subject":"acme","own":true,"queues":["a","b"],'
                    b'"tags":{"k":"v"}}'
                ),
            ),
        ],
    )
    def test_what_is_stored_never_changes(self, new: NewToken, value: bytes) -> None:
        shelf = Shelf()
        shelf.run(tokens.put_token(shelf, PARENT))
        shelf.run(tokens.put_token(shelf, new))
        stored = shelf.of("token")[new.token_id]
        assert (stored.value, stored.alias, stored.at) == (value, DIGEST.hex(), NOW)


class TestTogether:
    def test_sessions_leave_room_for_tokens(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "TOKENS", 2)
        monkeypatch.setattr(limits, "SESSIONS", 1)
        shelf = Shelf()
        shelf.run(tokens.put_token(shelf, PARENT))
        with pytest.raises(InvalidToken, match="1 tokens and sessions"):
            shelf.run(tokens.put_token(shelf, SESSION))
        shelf.run(tokens.put_token(shelf, NEW))
        with pytest.raises(InvalidToken, match="2 tokens and sessions"):
            shelf.run(tokens.put_token(shelf, issued("one more", "read")[0]))

    def test_the_oldest_come_first_and_none_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "PAGE", 2)
        shelf = Shelf()
        made = []
        for _ in range(5):
            made.append(shelf.run(tokens.put_token(shelf, issued("ci", "read")[0])))
            shelf.now += 1
        again = shelf.run(tokens.put_token(shelf, replace(NEW, token_id=made[0].token_id)))
        assert again == made[0], "what is stored already stays as it is"
        assert [each.token_id for each in shelf.run(tokens.tokens(shelf))] == [
            each.token_id for each in made
        ]

    def test_a_digest_belongs_to_one(self) -> None:
        shelf = Shelf()
        shelf.run(tokens.put_token(shelf, NEW))
        with pytest.raises(InvalidToken, match="digest"):
            shelf.run(tokens.put_token(shelf, replace(NEW, token_id=task_id(9))))

    @pytest.mark.parametrize(
        "act", [tokens.drop_token, lambda s, id: tokens.retire_token(s, id, 0)]
    )
    def test_a_session_that_is_stored_meanwhile_goes_too(self, act: Any) -> None:
        shelf = Shelf()
        shelf.run(tokens.put_token(shelf, PARENT))
        shelf.interfere = once(lambda: shelf.run(tokens.put_token(shelf, SESSION)))
        assert shelf.run(act(shelf, PARENT.token_id))
        assert shelf.run(tokens.tokens(shelf)) == []
        assert not shelf.run(act(shelf, PARENT.token_id))

    def test_a_token_that_is_dropped_meanwhile_gets_no_session(self) -> None:
        shelf = Shelf()
        shelf.run(tokens.put_token(shelf, PARENT))
        shelf.interfere = once(lambda: shelf.run(tokens.drop_token(shelf, PARENT.token_id)))
        with pytest.raises(UnknownToken):
            shelf.run(tokens.put_token(shelf, SESSION))

    def test_no_token_counts_longer_for_being_retired(self) -> None:
        shelf = Shelf()
        shelf.run(tokens.put_token(shelf, PARENT))
        session = shelf.run(tokens.put_token(shelf, SESSION))
        assert shelf.run(tokens.retire_token(shelf, session.token_id, 90.0))
        assert shelf.run(tokens.token(shelf, DIGEST)) == session
        assert shelf.run(tokens.retire_token(shelf, PARENT.token_id, 30.0))
        assert [each.expires_in for each in shelf.run(tokens.tokens(shelf))] == [30.0, 30.0]


class TestSuccessor:
    def test_is_the_same_but_for_the_secret(self) -> None:
        old = stored(replace(NEW, lifetime=90.0, exempt=True))
        new, secret = successor(old)
        assert (new.name, new.scopes, new.exempt) == (old.name, old.scopes, True)
        assert (new.subject, new.bounds) == ("ci", None), "from before there were subjects"
        assert new.lifetime == 90.0, "as it was given, whatever is left of it"
        assert new.digest == digest_of(secret) != old.digest
        assert new.token_id != old.token_id

    def test_sessions_have_none(self) -> None:
        with pytest.raises(InvalidToken, match="sign in again"):
            successor(stored(SESSION))
