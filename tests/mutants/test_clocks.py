"""The conformance tests of clock steps catch every engine that goes by a clock which was set."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.core.clocks import Watch
from fairlane.core.model import Spec
from fairlane.engines.postgres import clocks as postgres_clocks
from fairlane.engines.postgres import leases as postgres_leases
from fairlane.engines.sqlite import clocks as sqlite_clocks
from fairlane.engines.sqlite import leases as sqlite_leases
from tests.conformance import test_clock_steps as steps
from tests.conftest import Servers
from tests.fixtures.stores import World
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, lua, replaced, statement


async def forward(store: World) -> None:
    await steps.test_a_step_ends_no_run_and_no_worker(store, steps.HOURS)


async def unstarted(store: World) -> None:
    await steps.test_a_task_that_is_not_started_is_given_back_after_a_step(store, steps.HOURS)


async def back(store: World) -> None:
    await steps.test_a_time_limit_is_kept_after_a_step(store, -steps.HOURS)


async def dies(store: World) -> None:
    await steps.test_a_worker_that_dies_is_found_one_lease_after_a_step(store, -steps.HOURS)


CHECKS = [forward, unstarted, back, dies, *checks_of(steps)]

CORE: dict[str, Break] = {
    "a lease ends by the store's clock alone": replaced(
        Watch, "confirms", lambda _, worker: worker.lost
    ),
    "a date of the submitter is moved": replaced(Spec, "waits_for_date", lambda *_: False),
}

SQLITE: dict[str, Break] = {
    **CORE,
    "a time limit ends by the store's clock alone": statement(
        sqlite_leases, "timed_out", "AND held.deadline - held.started_at <= ?1 - ?2", ""
    ),
    "a start is missed by the store's clock alone": statement(
        sqlite_leases, "unstarted", "max(held.claimed_at, ?2)", "held.claimed_at"
    ),
    "a bucket stays ahead": statement(sqlite_clocks, "buckets", "at > ?2", "?1 > ?2"),
    "a sign of life stays ahead": statement(sqlite_clocks, "workers", "seen_at > ?2", "?1 > ?2"),
    "a time limit stays ahead": statement(sqlite_clocks, "runs", "started_at > ?2", "?1 > ?2"),
    "a queued task stays ahead": statement(
        sqlite_clocks, "ready", "ready.ready_at > ?1", "ready.ready_at < -?1"
    ),
    "two claims become one": statement(
        sqlite_clocks, "claims", "held.claimed_at - (worker.claimed_at - ?1)", "?1"
    ),
    "a due time stays ahead": statement(
        sqlite_clocks, "redate", "SET due_at = ?1,", "SET due_at = due_at + 0 * ?1,"
    ),
}

POSTGRES: dict[str, Break] = {
    **CORE,
    "a time limit ends by the store's clock alone": statement(
        postgres_leases, "timed_out", "now_us() - $2::bigint", "now_us() - 0 * $2::bigint"
    ),
    "a start is missed by the store's clock alone": statement(
        postgres_leases,
        "unstarted",
        "greatest(held.claimed_at, $2::bigint)",
        "greatest(held.claimed_at, 0 * $2::bigint)",
    ),
    "a bucket stays ahead": statement(
        postgres_clocks, "buckets", "WHERE at >", "WHERE at < 0 AND at >"
    ),
    "a sign of life stays ahead": statement(
        postgres_clocks, "workers", "WHERE seen_at >", "WHERE seen_at < 0 AND seen_at >"
    ),
    "a time limit stays ahead": statement(
        postgres_clocks, "runs", "WHERE started_at >", "WHERE started_at < 0 AND started_at >"
    ),
    "a queued task stays ahead": statement(
        postgres_clocks, "queued", "AND ready.ready_at >", "AND ready.ready_at < 0 AND 0 <"
    ),
    "two claims become one": statement(
        postgres_clocks, "claims", "held.claimed_at - claimants.ahead", "clock.now"
    ),
    "a due time stays ahead": statement(
        postgres_clocks, "redate", "SET due_at = sent.due_at,", "SET due_at = task.due_at,"
    ),
}

REDIS: dict[str, Break] = {
    "a lease ends by the store's clock alone": CORE["a lease ends by the store's clock alone"],
    "a date of the submitter is moved": lua("bring_back", "or dated then", "then"),
    "a time limit ends by the store's clock alone": lua(
        "expired", "since + read('>d', record, TIMEOUT) * 1000000 <= now", "true"
    ),
    "a start is missed by the store's clock alone": lua("expired", "since + within <= now and", ""),
    "a bucket stays ahead": lua("bring_back", "tonumber(at) > limit", "false"),
    "a sign of life stays ahead": lua("bring_back", "tonumber(seen_at) > limit", "false"),
    "a time limit stays ahead": lua("bring_back", "time_of(record, STARTED_AT) > limit", "false"),
    "a queued task stays ahead": lua(
        "bring_back", "later('ZADD', QUEUE .. name, now_text, ids[i])", ""
    ),
    "a due time stays ahead": lua("bring_back", "wait_until_due(ids[i], changed)", ""),
    "a part of the tasks is left out": lua("bring_back", "from + stayed", "from + #ids"),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(SQLITE, POSTGRES, REDIS))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS, ValueError) is not None
