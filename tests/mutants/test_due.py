"""The conformance tests of due tasks catch every engine that moves or orders them wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.core.errors import StoreError
from fairlane.engines.postgres import claim as postgres_claim
from fairlane.engines.postgres import due as postgres_due
from fairlane.engines.sqlite import claim as sqlite_claim
from fairlane.engines.sqlite import due as sqlite_due
from fairlane.engines.sqlite.claim_order import Left
from fairlane.engines.sqlite.due import Choice
from tests.conformance import test_due
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, assembled, lua, replaced, statement

CHECKS = checks_of(test_due)


def _anywhere(self: Any, choice: Choice, now: int) -> Any:
    return (yield from _first_due(self, choice._replace(lanes=tuple(range(100))), now))


_first_due = sqlite_due._first_due


def _without_limits(lanes: Any, _left: Any) -> Choice:
    return Choice(lanes, {})


def _without_shared_slots(lanes: Any, left: dict[int, Left]) -> Choice:
    return Choice(lanes, {lane: Left(each.most, None) for lane, each in left.items()})


def _by_time_alone(self: Any, chores: Any, _lanes: Any, now: int, accounts: Any) -> Any:
    return (yield from _do_chores(self, chores, None, now, accounts))


_do_chores = sqlite_due.do_chores


def _without_a_choice(chores: Any, _choice: Any = None) -> Any:
    return (yield from _do_postgres_chores(chores))


_do_postgres_chores = postgres_due.do_chores

SQLITE: dict[str, Break] = {
    "a flood is released by time alone": replaced(sqlite_claim, "do_chores", _by_time_alone),
    "a flood of other lanes comes first": replaced(sqlite_due, "_first_due", _anywhere),
    "a flood of limited types comes first": replaced(sqlite_claim, "Choice", _without_limits),
    "limited types of a flood share no slots": replaced(
        sqlite_claim, "Choice", _without_shared_slots
    ),
    "a flood is ordered by id": statement(
        sqlite_due,
        "due_of_stream",
        "ORDER BY waiting.due_at, waiting.task_id",
        "ORDER BY waiting.task_id",
    ),
    "only the first stream of a flood is seen": statement(
        sqlite_due, "due_heads", "WHERE due_at <= ?", "WHERE due_at <= ? LIMIT 1"
    ),
    "more is never said": statement(sqlite_due, "more_due", "SELECT EXISTS", "SELECT 0 * EXISTS"),
    "the next time is that of a task already due": statement(
        sqlite_due, "next_due", "due_at > ?", "due_at IS NOT ?"
    ),
    "nothing expires without a claim": statement(
        sqlite_due, "chores", "(SELECT min(expires_at) FROM expiries)", "NULL"
    ),
    "dependents wait for a claim": statement(
        sqlite_due, "chores", "EXISTS (SELECT 1 FROM ended_parents)", "0"
    ),
}

POSTGRES: dict[str, Break] = {
    "a flood is released by time alone": replaced(postgres_claim, "do_chores", _without_a_choice),
    "a flood of other lanes comes first": assembled(
        postgres_due, ("_RELEASE_FIRST",), "lane = arm.lane AND", ""
    ),
    "a flood of limited types comes first": assembled(
        postgres_due, ("_RELEASE_FIRST",), "nth <= most", "nth > 0"
    ),
    "limited types of a flood share no slots": assembled(
        postgres_due, ("_RELEASE_FIRST",), "LIMIT $4", "LIMIT $1 + $4"
    ),
    "a flood ignores levels": assembled(postgres_due, ("_RELEASE_FIRST",), "effective DESC,", ""),
    "a flood ignores age": assembled(
        postgres_due, ("_RELEASE_FIRST",), "arm.effective,", "arm.level AS effective,"
    ),
    "tasks of a flood are released early": assembled(
        postgres_due,
        ("_RELEASE_FIRST",),
        "least((SELECT now FROM clock), ",
        "(0 + ",
    ),
    "nothing expires without a claim": statement(
        postgres_due, "chores", ") <= fairlane.now_us(),\n    EXISTS", ") < 0,\n    EXISTS"
    ),
}

REDIS: dict[str, Break] = {
    "a flood is released by its first stream": lua(
        "claim", "merge(streams, batch)", "if streams[1] then streams[1].taken = batch end"
    ),
    "a flood of other lanes comes first": lua(
        "claim", "if not spans or is_open(lane) then", "if lane then"
    ),
    "a flood of limited types comes first": lua(
        "claim", "stream.due_only = true", "stream.due_only, stream.left = true, nil"
    ),
    "what is queued of a flood counts as claimed": lua("claim", "        left.taken = 0\n", ""),
    "limited types of a flood share no slots": lua(
        "claim",
        "merge(streams, batch)\n    limited_slots.taken = 0",
        "limited_slots.most = batch\n    merge(streams, batch)\n"
        "    limited_slots.most, limited_slots.taken = slots, 0",
    ),
    "tasks of the future take a place": lua(
        "lib/claim_order", "if stream.due_only and stream.ready_at > now then", "if false then"
    ),
    "tasks are released early": lua(
        "lib/due", "DUE .. stream, '-inf', now_text", "DUE .. stream, '-inf', '+inf'"
    ),
    "the first due time of a stream is never updated": lua(
        "lib/moves",
        "call('ZADD', DUE_STREAMS, due_at, stream)",
        "call('ZADD', DUE_STREAMS, 'NX', due_at, stream)",
    ),
    "an empty stream is remembered": lua("lib/moves", "call('ZREM', DUE_STREAMS, stream)", ""),
    "nothing expires without a claim": lua("move_due", "expire(BATCH)", "0"),
    "dependents wait for a claim": lua("move_due", "resolve_left_over()", "false"),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(SQLITE, POSTGRES, REDIS))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS, StoreError) is not None
