"""The conformance tests of settings catch every engine that keeps or follows them wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane import maintenance
from fairlane.core import settlement, store_settings
from fairlane.core.composed import Composed
from fairlane.core.documents import Document, Written
from fairlane.core.machine import Verb, decide
from fairlane.core.outcomes import Lost
from fairlane.core.retention import DEFAULT as KEPT
from fairlane.core.settlement import reaped
from fairlane.core.states import State
from fairlane.core.store_settings import DEFAULT, SETTINGS, StoreSettings
from fairlane.engines.postgres import context as postgres
from fairlane.engines.postgres.engine import PostgresOperations
from fairlane.engines.redis import context as redis
from fairlane.engines.sqlite import context as sqlite
from fairlane.engines.sqlite.engine import SqliteOperations
from fairlane.maintenance import Maintenance
from tests.conformance import test_settings
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, lua, replaced, statement

CHECKS = checks_of(test_settings)


def _writes_only(self: Any, document: Document) -> Any:
    return (yield from self.write_documents(SETTINGS, [document]))


def _takes_any_version(self: Any, changes: Any, *, version: int | None = None) -> Any:
    return _change_settings(self, changes)


def _overwrites(self: Any, document: Document) -> Any:
    while True:
        _, (stored,) = yield from self.read_documents(SETTINGS, [SETTINGS])
        last = replace(document, version=0 if stored is None else stored.version)
        written = yield from _write_settings[type(self)](self, last)
        if written is Written.DONE:
            return written


def _begins_with_defaults(self: StoreSettings, changes: Any) -> StoreSettings:
    return replace(_with_changes(DEFAULT, changes), version=self.version)


def _checks_nothing(self: StoreSettings, changes: Any) -> StoreSettings:
    try:
        return _with_changes(self, changes)
    except ValueError:
        return self


async def _prunes_by_the_defaults(self: Any) -> bool:
    return bool((await self._backend.run(self._backend.ops.prune(KEPT))).more)


def _reaps_at_once(item: Any, jitter: float, spread: float) -> Any:
    return reaped(item, jitter)


def _reaps_all_at_one_time(item: Any, jitter: float, spread: float) -> Any:
    return reaped(item, 0.5, spread)


def _spreads_what_never_ran(task: Any, outcome: Any, jitter: float) -> Any:
    move = decide(task, outcome, jitter)
    if isinstance(outcome, Lost) and move.verb is Verb.RELEASE:
        after = outcome.spread * jitter
        return replace(move, verb=Verb.RETRY, state=State.RETRYING, after=after, wakes=False)
    return move


def _keeps_its_aging(self: Any) -> Any:
    before = self.known
    found = yield from _load(self)
    if before is not postgres.NOTHING:
        found.aging = before.aging
    return found


def _refreshes_without_aging(self: Any) -> Any:
    before = self.catalogue
    found = yield from _refresh(self)
    if before is not redis.UNKNOWN:
        found.aging = before.aging
    return found


_change_settings = store_settings.change_settings
_with_changes = StoreSettings.with_changes
_load, _refresh = postgres.Catalogue._load, redis.Context.refresh
_write_settings: dict[type, Any] = {
    operations: operations.write_settings for operations in (SqliteOperations, PostgresOperations)
}

CORE: dict[str, Break] = {
    "any version will do": replaced(Composed, "change_settings", _takes_any_version),
    "a change takes the others back": replaced(
        StoreSettings, "with_changes", _begins_with_defaults
    ),
    "bad values are passed over": replaced(StoreSettings, "with_changes", _checks_nothing),
    "a retention may be nothing": replaced(
        store_settings, "checked", lambda retention, _least: retention
    ),
    "aging is not read": replaced(store_settings, "aging_in", lambda _: DEFAULT.aging),
    "maintenance has an opinion": replaced(Maintenance, "_prune", _prunes_by_the_defaults),
    "maintenance spreads nothing": replaced(maintenance, "reaped", _reaps_at_once),
    "all that was lost comes back at one time": replaced(
        maintenance, "reaped", _reaps_all_at_one_time
    ),
    "what never ran is spread": replaced(settlement, "decide", _spreads_what_never_ran),
    "a spread may be longer than it is checked": replaced(
        store_settings, "_spread", lambda seconds: seconds
    ),
}

SQLITE: dict[str, Break] = {
    **CORE,
    "claims do not hear of it": replaced(SqliteOperations, "write_settings", _writes_only),
    "claims read something else": statement(sqlite, "everything", "id = ?1", "id = -?1"),
}
POSTGRES: dict[str, Break] = {
    "claims do not hear of it": replaced(PostgresOperations, "write_settings", _writes_only),
    "claims read something else": statement(postgres, "everything", "id = $1", "id = $1 || '!'"),
    "the one who is overtaken writes": replaced(PostgresOperations, "write_settings", _overwrites),
    "a process keeps the aging that it knew": replaced(
        postgres.Catalogue, "_load", _keeps_its_aging
    ),
}
REDIS: dict[str, Break] = {
    "claims do not hear of it": lua("write_settings", "bump()", ""),
    "claims read something else": lua(
        "lib/documents", "return document and value_of(document)", "return false"
    ),
    "the one who is overtaken writes": lua("lib/document_writes", "~= version then", "== '' then"),
    "a process keeps the aging that it knew": replaced(
        redis.Context, "refresh", _refreshes_without_aging
    ),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(SQLITE, POSTGRES, REDIS))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS) is not None
