"""The conformance tests of ids catch every engine that takes one task for another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.engines.postgres import admission_keys, submit_batch
from fairlane.engines.postgres import deletion as postgres_deletion
from fairlane.engines.redis import submit as redis_submit
from fairlane.engines.sqlite import admission
from fairlane.engines.sqlite import deletion as sqlite_deletion
from fairlane.engines.sqlite import submit as sqlite_submit
from tests.conformance import test_fences, test_submit
from tests.conftest import Servers
from tests.fixtures.stores import World
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, lua, replaced, statement


async def another_payload(store: World) -> None:
    await test_submit.test_an_id_of_another_task_is_refused(store, "work", {"n": 2})


CHECKS = [another_payload, *checks_of(test_fences)]


def _accepts_anything(*_: Any) -> None:
    pass


def _never(*_: Any, **__: Any) -> bool:
    return False


SQLITE: dict[str, Break] = {
    "another task under a known id is dropped": replaced(
        admission, "check_repeated", _accepts_anything
    ),
    "a deleted task leaves nothing behind": replaced(sqlite_deletion, "leaves_fence", _never),
    "attempts of a queued task begin anew": statement(
        sqlite_submit, "go_on_ready", "task.task_id = ?2", "task.task_id = ?2 || ''''"
    ),
    "attempts of a waiting task begin anew": statement(
        sqlite_submit, "go_on_waiting", "task_id = ?2", "task_id = ?2 || ''''"
    ),
    "a fence counts for ever": statement(
        sqlite_submit, "fences", "expires_at > ?", "expires_at > 0 * ?"
    ),
}

POSTGRES: dict[str, Break] = {
    "another task under a known id is dropped": replaced(
        admission_keys, "check_repeated", _accepts_anything
    ),
    "a deleted task leaves nothing behind": statement(
        postgres_deletion, "delete", "attempt > 0\n", "attempt < 0\n"
    ),
    "attempts of a queued task begin anew": statement(
        submit_batch, "go_on", "ready.task_id = fences.task_id", "false"
    ),
    "attempts of a waiting task begin anew": statement(
        submit_batch, "go_on", "waiting.task_id = fences.task_id", "false"
    ),
    "a fence counts for ever": statement(
        submit_batch, "go_on", "expires_at > fairlane.now_us()", "true"
    ),
}

REDIS: dict[str, Break] = {
    "another task under a known id is dropped": replaced(
        redis_submit, "check_repeated", _accepts_anything
    ),
    "a deleted task leaves nothing behind": lua("delete", "leave_fence(", "tostring("),
    "a pruned task leaves nothing behind": lua("prune", "leave_fence(", "tostring("),
    "attempts begin anew": lua("lib/submission", "if fence and not known[i]", "if false"),
    "a fence counts for ever": lua("lib/submission", "read('>i8', fence, 17) > now", "true"),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(SQLITE, POSTGRES, REDIS))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS) is not None
