"""The conformance tests of documents, and of what they hold, catch every faulty engine."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import facts, roles, tokens
from fairlane.core.documents import Document, Documents
from fairlane.core.flow import Flow
from fairlane.engines.postgres import documents as postgres_documents
from fairlane.engines.postgres import schema as postgres_schema
from fairlane.engines.redis import documents as redis_documents
from fairlane.engines.redis.scripts import Script
from fairlane.engines.sqlite import documents
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.engine import SqliteOperations
from tests.conformance import test_audit, test_documents, test_overview, test_schedules, test_tokens
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of
from tests.mutants.planting import Break, replaced, statement, together

SLOW = {test_documents.test_many_at_once}

CHECKS = [
    check
    for check in checks_of(test_documents, test_tokens, test_audit, test_schedules, test_overview)
    if check not in SLOW
]


def _ignores_versions(
    self: Any,
    kind: str,
    puts: Sequence[Document],
    drops: Sequence[Document] = (),
    most: int | None = None,
) -> Any:
    known = {}
    for each in (*puts, *drops):
        rows = yield Execute("SELECT version FROM documents WHERE id = ?", (each.id,))
        known[each.id] = next(iter(rows), (0,))[0]
    puts, drops = (
        [replace(each, version=known[each.id]) for each in some] for some in (puts, drops)
    )
    return (yield from documents.write_documents(self, kind, puts, drops, most))


def _writes_what_it_can(
    self: Any,
    kind: str,
    puts: Sequence[Document],
    drops: Sequence[Document] = (),
    most: int | None = None,
) -> Any:
    for put in puts:
        written = yield from documents.write_documents(self, kind, [put], (), most)
        if written != "done":
            return written
    return (yield from documents.write_documents(self, kind, [], drops, most))


def _forgets_sessions(self: Documents, token_id: str) -> Flow[Any]:
    now, (token,) = yield from self.read_documents("token", [token_id])
    return now, [token] if token is not None and token.counts(now) else []


def _elects_anyone(*_: object) -> Flow[bool]:
    yield from ()
    return True


FAULTS: dict[str, Break] = {
    "a write ignores versions": replaced(SqliteOperations, "write_documents", _ignores_versions),
    "a write stops halfway": replaced(SqliteOperations, "write_documents", _writes_what_it_can),
    "a version stays as it is": statement(
        documents, "put", "version = excluded.version", "version = version"
    ),
    "an alias is taken from another": together(
        statement(documents, "taken", "alias = ?", "alias = ? AND 0"),
        statement(documents, "put", "INSERT INTO", "INSERT OR REPLACE INTO"),
    ),
    "an alias is that of another kind": statement(documents, "find", "kind = ?", "kind <> ?"),
    "there may be any number": statement(documents, "count", "count(*)", "0 * count(*)"),
    "other kinds take up room": statement(documents, "count", "kind = ?", "kind IS NOT ?"),
    "a put keeps the expiry": statement(
        documents, "put", "expires_at = excluded.expires_at,", "expires_at = expires_at,"
    ),
    "a drop takes away other kinds": statement(documents, "drop", "kind = ?", "? IS NOT NULL"),
    "expire forgets": statement(documents, "expire", "expires_at <= ?2", "expires_at <= ?2 - ?2"),
    "expire takes what has not expired": statement(
        documents, "expire", "expires_at <= ?2", "expires_at IS NOT ?2"
    ),
    "expire knows no bound": statement(documents, "expire", "LIMIT ?3", "LIMIT ?3 * 10"),
    "a list begins where the last one ended": statement(documents, "oldest", "> (?", ">= (?"),
    "a list leaves out what is of one time": statement(
        documents, "newest", "(at, id) < (?, ?)", "(at, id) < (?, substr(?, 1, 0))"
    ),
    "a list leaves nothing out": statement(documents, "newest", "OFFSET ?", "OFFSET 0 * ?"),
    "expired documents count": replaced(Document, "counts", lambda *_: True),
    "sessions outlive their token": replaced(tokens, "_family", _forgets_sessions),
    "everyone is elected": replaced(roles, "take_role", _elects_anyone),
    "no sample is the first one": replaced(facts, "was_taken", _elects_anyone),
}


def _function(old: str, new: str) -> Break:
    """PostgreSQL's function that writes, with some of its text replaced."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        steps = [step.replace(old, new) for step in postgres_schema.STEPS]
        assert steps != postgres_schema.STEPS, f"no step says {old!r}"
        patch.setattr(postgres_schema, "STEPS", steps)

    return break_it


def _script(name: str, old: str, new: str) -> Break:
    """A script of Redis with some of its text replaced."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        script = getattr(redis_documents, name)
        assert old in script.source, f"{name} no longer says {old!r}"
        source = script.source.replace(old, new)
        sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
        patch.setattr(redis_documents, name, Script(script.name, source, sha))

    return break_it


ELSEWHERE: dict[tuple[str, str], Break] = {
    ("postgres-newest", "a write ignores versions"): _function(
        "change.version <> coalesce", "change.version <> 0 * coalesce"
    ),
    ("postgres-newest", "writers do not wait"): _function(
        "PERFORM pg_advisory_xact_lock(1180789106, hashtext('documents ' || of_kind));",
        "PERFORM pg_sleep(0.05);",
    ),
    ("postgres-newest", "there may be any number"): _function("> most", "> most + 9"),
    ("postgres-newest", "a put keeps the expiry"): _function(
        "expires_at = excluded.expires_at", "expires_at = stored.expires_at"
    ),
    ("postgres-newest", "expire forgets"): statement(
        postgres_documents, "expire", "expires_at <=", "expires_at < 0 *"
    ),
    ("postgres-newest", "a list leaves out what is of one time"): statement(
        postgres_documents, "oldest", "$3::text", "$3::text || 'z'"
    ),
    ("redis", "a write ignores versions"): _script("WRITE", "~= version then", "== '' then"),
    ("redis", "an alias is taken from another"): _script("WRITE", "owner ~= id", "owner == ''"),
    ("redis", "there may be any number"): _script("PUT", "new > most", "new > most + 9"),
    ("redis", "a put keeps the expiry"): _script("WRITE", "later('ZREM', ends, id)", ""),
    ("redis", "a drop leaves its alias"): _script("WRITE", "if byte(document, 25) > 0", "if false"),
    ("redis", "expire forgets"): _script("EXPIRE", "'-inf', now_text", "'-inf', 0"),
    ("redis", "a list leaves out what is of one time"): _script("LIST", "other <= id", "true"),
}
ELSEWHERE |= {("valkey", fault): it for (kind, fault), it in ELSEWHERE.items() if kind == "redis"}


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_suite_catches(
    fault: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        FAULTS[fault](patch)
        assert await caught(servers, tmp_path, "sqlite-memory", CHECKS) is not None, (
            f"no test shows that {fault}"
        )


@pytest.mark.parametrize(("kind", "fault"), ELSEWHERE)
async def test_the_suite_catches_on(
    kind: str, fault: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [check for check in CHECKS if check.__module__ == test_documents.__name__]
    with monkeypatch.context() as patch:
        ELSEWHERE[kind, fault](patch)
        found = await caught(servers, tmp_path, kind, own)
        assert found is not None, f"no test shows that {fault}"


async def test_the_suite_objects_to_nothing_else(servers: Servers, tmp_path: Path) -> None:
    assert await caught(servers, tmp_path, "sqlite-memory", CHECKS) is None
