"""The conformance tests of unused lanes catch every engine that drops them wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.core import unused_lanes
from fairlane.engines.postgres import context as postgres_context
from fairlane.engines.postgres import lanes as postgres_lanes
from fairlane.engines.postgres import submit_batch
from fairlane.engines.sqlite import lanes as sqlite_lanes
from fairlane.engines.sqlite.context import Catalogue
from tests.conformance import test_unused_lanes
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of
from tests.mutants.planting import Break, lua, replaced, statement

CHECKS = checks_of(test_unused_lanes)


def _remembered(self: Any, keys: Any) -> Any:
    wanted = set(keys)
    if not wanted.issubset(self._ids):
        yield from self.refresh()
    missing = wanted.difference(self._ids)
    if missing:
        yield from self._open(missing)
    return self._ids


def _resting_whatever_was_counted(facts: Any, before: Any) -> Any:
    return {
        lane: unused_lanes.Rest(before[lane].since if lane in before else rest.since, 0)
        for lane, rest in _resting(facts, {}).items()
    }


_resting = unused_lanes.resting


def _unchecked(patch: pytest.MonkeyPatch) -> None:
    for key, whole in list(submit_batch._STATEMENTS.items()):
        text, guarded, plain, checked = key
        if checked:
            unchecked = submit_batch._STATEMENTS[text, guarded, plain, False]
            assert unchecked != whole
            patch.setitem(submit_batch._STATEMENTS, key, unchecked)


CORE: dict[str, Break] = {
    "a lane that was used meanwhile goes": replaced(
        unused_lanes, "resting", _resting_whatever_was_counted
    ),
    "types that are served do not count": replaced(
        unused_lanes, "_served_types", lambda _facts: set()
    ),
}
SQLITE: dict[str, Break] = {
    **CORE,
    "a submission trusts what it remembers": replaced(Catalogue, "lanes_for", _remembered),
    "counters are lost": statement(sqlite_lanes, "fold_tallies", "WHERE lane IN", "WHERE -lane IN"),
    "counters are counted twice": statement(sqlite_lanes, "drop_tallies", "lane IN", "-lane IN"),
    "streams are left": statement(sqlite_lanes, "drop_streams", "lane IN", "-lane IN"),
}
POSTGRES: dict[str, Break] = {
    **CORE,
    "a submission trusts what it remembers": _unchecked,
    "a closed lane is not opened again": statement(
        postgres_context, "reopen", "closed_by IS NOT NULL", "false"
    ),
    "counters are lost": statement(
        postgres_lanes,
        "remove",
        "SELECT * FROM tallies UNION ALL SELECT * FROM deltas",
        "SELECT * FROM tallies WHERE false UNION ALL SELECT * FROM deltas WHERE false",
    ),
    "counters are counted twice": statement(
        postgres_lanes,
        "remove",
        "FROM tallies UNION ALL SELECT * FROM deltas",
        "FROM tallies UNION ALL SELECT * FROM deltas UNION ALL SELECT * FROM deltas",
    ),
    "streams are left": statement(
        postgres_lanes,
        "remove",
        "DELETE FROM fairlane.streams WHERE lane",
        "DELETE FROM fairlane.streams WHERE -lane",
    ),
}
REDIS: dict[str, Break] = {
    **CORE,
    "the version stays": lua("remove_lanes", "    bump()\n", ""),
    "numbers are counted": lua(
        "open_lanes", "call('HGET', META, 'last_lane') or", "call('ZCARD', LANES) or"
    ),
    "counters are lost": lua("remove_lanes", "call('HINCRBY', hash, sum, value)", ""),
    "counters are counted twice": lua("remove_lanes", "call('HDEL', hash, field)", ""),
}

PLANTED = [
    pytest.param(kind, break_it, id=f"{kind}: {fault}")
    for kind, faults in {
        "sqlite-file": SQLITE,
        "postgres-newest": POSTGRES,
        "redis": REDIS,
        "valkey": REDIS,
    }.items()
    for fault, break_it in faults.items()
]


@pytest.mark.parametrize(("kind", "break_it"), PLANTED)
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        # A task in a lane that does not exist makes an engine stumble.
        assert await caught(servers, tmp_path, kind, CHECKS, Exception) is not None
