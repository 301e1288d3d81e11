"""Access tokens, and the audit log in which they and other changes are told."""

from __future__ import annotations

import getpass
from typing import Any

import pytest

from fairlane.client.app import Fairlane
from fairlane.core.errors import StoreUnavailable
from fairlane.core.tokens import Scope, Token, digest_of, issued
from tests.cli.kit import Cli, in_store
from tests.cli.test_limits import worker


def looked_up(secret: str) -> Token | None:
    async def use(app: Fairlane) -> Token | None:
        return await app.run(app.backend.ops.token(digest_of(secret)))

    token: Token | None = in_store(use)
    return token


def sign_in(token_id: str) -> str:
    """A session as a server would make it; its id."""
    session, _ = issued("browser", ["read"], 3600.0, parent_id=token_id)

    async def use(app: Fairlane) -> None:
        await app.run(app.backend.ops.put_token(session))

    in_store(use)
    return session.token_id


def told(cli: Cli) -> list[tuple[str, str, dict[str, Any]]]:
    """What the audit log tells, the oldest first."""
    entries = cli.json("audit", "--limit", "100")["entries"]
    return [(each["action"], each["subject"], each["detail"]) for each in reversed(entries)]


def test_a_secret_is_printed_once(ready: Cli) -> None:
    assert "No tokens" in ready("token", "list").stderr
    made = ready("token", "create", "--name", "ci", "--scope", "submit", "--scope", "read")
    assert made.exit_code == 0
    secret = made.stdout.strip()
    assert made.stdout == f"{secret}\n"
    assert "only time" in made.stderr
    token = looked_up(secret)
    assert token is not None
    assert (token.name, token.scopes) == ("ci", frozenset({Scope.SUBMIT, Scope.READ}))
    for again in (
        ready.ok("token", "list"),
        ready.ok("token", "list", "--json"),
        ready.ok("audit"),
    ):
        assert secret not in again
        assert token.digest.hex() not in again
        assert "ci" in again
    line = ready.ok("token", "list").splitlines()[1]
    assert line.split(maxsplit=2)[:2] == [token.token_id, "ci"]
    assert "read, submit" in line
    assert "never" in line


def test_for_programs(ready: Cli) -> None:
    made = ready.json(
        *("token", "create", "--name", "a b", "--scope", "admin", "--expires", "90d", "--exempt")
    )
    token = looked_up(made.pop("secret"))
    assert token is not None
    assert token.lifetime == 90 * 86_400.0
    assert ready.json("token", "list") == {"tokens": [made]}
    assert (made["name"], made["scopes"], made["exempt"]) == ("a b", ["admin"], True)
    assert (made["token_id"], made["kind"], made["parent_id"]) == (token.token_id, "token", None)
    assert set(made) == {
        *("token_id", "name", "kind", "scopes"),
        *("created_at", "expires_at", "parent_id", "exempt"),
        *("subject", "own", "queues", "tags"),
    }
    assert (made["subject"], made["own"], made["queues"], made["tags"]) == ("a b", False, None, {})


def test_bound_tokens(ready: Cli) -> None:
    bounds = ["--subject", "acme", "--own", "--queue", "b", "--queue", "a", "--tag", "team=blue"]
    made = ready.json("token", "create", "--name", "shop", "--scope", "submit", *bounds)
    assert (made["subject"], made["own"], made["queues"]) == ("acme", True, ["a", "b"])
    assert made["tags"] == {"team": "blue"}
    shown = "the tasks of 'acme' in the queues a, b with the tag 'team': 'blue'"
    ready.ok("token", "create", "--name", "all", "--scope", "admin")
    listed = ready.ok("token", "list")
    assert f" {shown} " in listed
    assert " everything " in listed
    again = ready.json("token", "rotate", "shop")
    assert {name: again[name] for name in ("subject", "own", "queues", "tags")} == {
        name: made[name] for name in ("subject", "own", "queues", "tags")
    }
    detail = {"scopes": ["submit"], "token_subject": "acme", "bound_to": shown}
    assert told(ready)[0][2] == {"token_id": made["token_id"], **detail}
    for flags, why in {
        ("--scope", "admin", "--own"): "the scope admin sees everything, and cannot be bound",
        ("--scope", "worker", "--tag", "a=b"): "can be bound to queues only",
        ("--scope", "read", "--queue", "a b"): "bound to queues by name",
        ("--scope", "read", "--subject", ""): "subject is a text",
        ("--scope", "read", "--tag", "a"): "A tag is given as name=value",
    }.items():
        refused = ready("token", "create", "--name", "x", *flags)
        assert refused.exit_code != 0
        assert why in refused.stderr
    assert len(ready.json("token", "list")["tokens"]) == 3


def test_rotation_leaves_the_old_secret_for_a_while(ready: Cli) -> None:
    first = ready.json("token", "create", "--name", "ci", "--scope", "read", "--expires", "30d")
    rotated = ready("token", "rotate", "ci", "--overlap", "10m")
    assert "The old one works for 10 min." in rotated.stderr
    old, new = looked_up(first["secret"]), looked_up(rotated.stdout.strip())
    assert old is not None
    assert new is not None
    assert old.expires_in is not None
    assert 0 < old.expires_in <= 600
    assert (new.name, new.scopes, new.lifetime) == ("ci", old.scopes, 30 * 86_400.0)
    refused = ready("token", "rotate", "ci")
    assert refused.exit_code == 1
    assert "2 tokens have this name" in refused.stderr
    last = ready.json("token", "rotate", new.token_id, "--overlap", "0")
    assert looked_up(rotated.stdout.strip()) is None
    assert looked_up(last["secret"]) is not None
    (_, _, detail) = told(ready)[-1]
    assert (detail["replaces"], detail["token_id"]) == (new.token_id, last["token_id"])


def test_a_token_that_is_revoked_while_it_is_rotated_stays_revoked(
    ready: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_id = ready.json("token", "create", "--name", "ci", "--scope", "read")["token_id"]
    meanwhile = "fairlane.cli.commands.token.successor"

    def revoked_first(old: Token) -> Any:
        ready.ok("token", "revoke", token_id)
        return issued(old.name, old.scopes)

    monkeypatch.setattr(meanwhile, revoked_first)
    refused = ready("token", "rotate", "ci")
    assert refused.exit_code == 1
    assert "revoked in the meantime" in refused.stderr
    assert refused.stdout == ""
    assert ready.json("token", "list") == {"tokens": []}


def test_revoked_by_id_or_by_name(ready: Cli) -> None:
    made = [
        ready.json("token", "create", "--name", name, "--scope", "read") for name in ("a", "a", "b")
    ]
    session = sign_in(made[2]["token_id"])
    assert len(ready.json("token", "list")["tokens"]) == 3
    assert len(ready.json("token", "list", "--sessions")["tokens"]) == 4
    refused = ready("token", "rotate", session)
    assert refused.exit_code == 2
    assert "sign in again" in refused.stderr
    assert ready.ok("token", "revoke", "b") == f"Token {made[2]['token_id']} is revoked.\n"
    assert len(ready.json("token", "list", "--sessions")["tokens"]) == 2
    ids = [each["token_id"] for each in made[:2]]
    assert ready.json("token", "revoke", "a") == {"revoked": ids}
    assert looked_up(made[0]["secret"]) is None
    gone = ready("token", "revoke", "a")
    assert gone.exit_code == 1
    assert "There is no token 'a'" in gone.stderr
    secret = ready("token", "revoke", made[0]["secret"])
    assert made[0]["secret"] not in secret.output
    assert "fl_***" in secret.stderr


def test_changes_are_told_in_the_audit_log(ready: Cli) -> None:
    assert "Nothing has been changed yet." in ready("audit").stderr
    token_id = ready.json("token", "create", "--name", "ci", "--scope", "read")["token_id"]
    ready.ok("token", "revoke", "ci")
    ready.ok("pause", "--queue", "mail")
    ready.ok("resume")
    ready.ok("limit", "work", "--rate", "2", "--no-breaker")
    ready.ok("limit", "work")
    ready("drain", "nobody")
    worker_id = worker()
    ready.ok("drain", worker_id)
    one, _ = ready.submit("work"), ready.submit("work")
    ready.ok("cancel", one)
    ready("cancel", one)
    ready.ok("cancel", "--type", "work", "--yes")
    ready.ok("cancel", "--type", "work", "--yes")
    ready.ok("replay", one)
    ready.ok("delete", "--status", "cancelled", "--yes")
    assert told(ready) == [
        ("token.create", "ci", {"token_id": token_id, "scopes": ["read"]}),
        ("token.revoke", "ci", {"token_id": token_id}),
        ("flow.pause", "queue mail", {}),
        ("flow.resume", "everything", {}),
        ("flow.limit", "type work", {"rate": 2.0, "breaker": "none"}),
        ("worker.drain", worker_id, {}),
        ("task.cancel", "1 by id", {"task_ids": [one]}),
        ("task.cancel", "1 by filter", {"types": ["work"]}),
        ("task.replay", "1 by id", {"task_ids": [one]}),
        ("task.delete", "1 by filter", {"states": ["cancelled"]}),
    ]
    page = ready.json("audit", "--limit", "1")
    (newest,) = page["entries"]
    assert newest["actor"] == f"cli:{getpass.getuser()}"
    assert newest["timestamp"].endswith("Z")
    rest = ready.json("audit", "--cursor", page["next_cursor"])
    assert (len(rest["entries"]), rest["next_cursor"]) == (9, None)
    text = ready("audit", "--limit", "2", "--utc")
    last = rest["entries"][0]["entry_id"].replace("-", "")
    assert text.stderr.startswith(f"There are more: --cursor a{last}")
    assert "task.replay  1 by id" in text.stdout


def test_users_without_a_name(ready: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    ready.ok("pause", "--yes")
    (entry,) = ready.json("audit")["entries"]
    assert entry["actor"] == "cli:unknown"


def test_what_was_done_but_not_told(ready: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr("fairlane.engines.sqlite.engine.SqliteOperations.record", away)
    result = ready("pause", "--yes")
    assert result.exit_code == 0
    assert "It was done, but could not be recorded" in result.stderr
    assert "Everything is paused" in result.stdout
