"""The conformance tests of encryption catch every engine that stores plain text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from fairlane.core import encryption
from fairlane.core.flow import Flow
from fairlane.engines.postgres import apply as postgres_apply
from fairlane.engines.postgres import documents as postgres_documents
from fairlane.engines.postgres import submit as postgres_submit
from fairlane.engines.postgres import submit_batch
from fairlane.engines.sqlite import documents as sqlite_documents
from tests.conformance import test_plain_text
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, assembled, lua, replaced, statement

CHECKS = checks_of(test_plain_text)


def _never(_: Iterable[object]) -> bool:
    return False


def _refuse_nothing(*_: object) -> Flow[None]:
    yield from ()


CORE: dict[str, Break] = {
    "plain payloads are not seen": replaced(encryption, "has_plain_payload", _never),
    "plain results are not seen": replaced(encryption, "has_plain_result", _never),
    "plain schedules and blobs are stored": replaced(encryption, "refuse_plain", _refuse_nothing),
}

SQLITE: dict[str, Break] = CORE | {
    "another document is looked for": statement(
        sqlite_documents, "exists", "id = ?", "id = ? || 'x'"
    ),
}

POSTGRES: dict[str, Break] = CORE | {
    "another document is looked for": statement(
        postgres_documents, "exists", "id = $2", "id = $2 || 'x'"
    ),
    "tasks with keys are not checked": replaced(postgres_submit, "refuse_plain", _refuse_nothing),
    "late reports are not checked": replaced(postgres_apply, "refuse_plain", _refuse_nothing),
    "plain payloads do not fail the statement": replaced(
        submit_batch,
        "_STATEMENTS",
        {
            key: each.replace("sqrt(-version)", "version")
            for key, each in submit_batch._STATEMENTS.items()
        },
    ),
    "plain results do not fail the statement": assembled(
        postgres_apply, ("_APPLY_PLAIN", "_COMPLETE_PLAIN"), "sqrt(-version)", "version"
    ),
}

REDIS: dict[str, Break] = CORE | {
    "plain payloads are stored": lua("lib/submission", "ARGV[9] == '1'", "false"),
    "plain results are stored": lua("apply", "ARGV[4] == '1'", "false"),
    "another document is looked for": lua(
        "lib/submission", "ENCRYPTION, REQUIRED", "ENCRYPTION, 'other'"
    ),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(SQLITE, POSTGRES, REDIS))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS) is not None
