"""The conformance tests of large tasks catch pages without bounds, and heads that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.core import queries
from fairlane.core.filters import PageRoom
from fairlane.engines.postgres import inspect as postgres
from fairlane.engines.sqlite import inspect as sqlite
from tests.conformance import test_large_tasks
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of
from tests.mutants.planting import Break, lua, replaced, statement

CHECKS = checks_of(test_large_tasks)

RULES: dict[str, Break] = {
    "a page has no bound": replaced(PageRoom, "takes", lambda *_: True),
    "a page that ends early looks like the last one": replaced(
        queries, "cursor_of", lambda _: None
    ),
}
STATEMENTS: dict[str, dict[str, Break]] = {
    "sqlite-memory": {
        "heads have payloads": statement(sqlite, "heads", "x''", "payload"),
        "heads have no errors": statement(sqlite, "heads", " error,", " NULL,"),
    },
    "postgres-newest": {
        "heads have payloads": statement(postgres, "heads", "''::bytea", "payload"),
        "heads have no errors": statement(postgres, "heads", "task.error", "NULL::bytea"),
    },
    "redis": {
        "heads have payloads": lua("heads", "without_payload(tasks[i])", "tasks[i]"),
        "heads have no errors": lua("heads", "all(ERRORS)", "none"),
    },
}
STATEMENTS["valkey"] = STATEMENTS["redis"]
CASES = [
    pytest.param(kind, break_it, id=f"{kind}: {fault}")
    for kind, own in STATEMENTS.items()
    for fault, break_it in {**RULES, **own}.items()
]


@pytest.mark.parametrize(("kind", "break_it"), CASES)
async def test_the_suite_catches(
    kind: str,
    break_it: Break,
    servers: Servers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS) is not None
