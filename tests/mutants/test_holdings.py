"""The conformance tests of holdings catch what releases or stops the wrong runs, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.core import holdings, outcomes
from fairlane.core.errors import StoreError
from fairlane.core.holdings import Comparison, Differences, InHand, Run
from fairlane.engines.postgres import inspect as postgres_inspect
from fairlane.engines.sqlite import inspect as sqlite_inspect
from tests.conformance import test_holdings
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, lua, replaced, statement

CHECKS = checks_of(test_holdings)

Listed = frozenset[Run]
_compare = Comparison.compare


def _unknown(listed: Listed, hand: InHand) -> list[Run]:
    return sorted(listed - hand.runs - hand.leaving)


def _at_once(_: Any, listed: Listed, before: InHand, after: InHand) -> Differences:
    return Differences(_unknown(listed, before), sorted(before.runs & after.runs - listed))


def _never(_: Any, listed: Listed, before: InHand, after: InHand) -> Differences:
    return Differences([], sorted(before.runs & after.runs - listed))


def _whatever_is_claimed(self: Any, listed: Listed, before: InHand, after: InHand) -> Differences:
    still = InHand(before.runs, before.leaving, before.asked, before.asked)
    return _compare(self, listed, still, after)


def _healthy_ones_too(_: Any, listed: Listed, before: InHand, after: InHand) -> Differences:
    return Differences(_unknown(listed, before), sorted(before.runs | after.runs))


def _by_number(self: Any, listed: Listed, before: InHand, after: InHand) -> Differences:
    if len(listed) == len(before.runs):
        return Differences([], [])
    return _compare(self, listed, before, after)


CORE: dict[str, Break] = {
    "a run that is just being claimed goes back": replaced(
        Comparison, "compare", _whatever_is_claimed
    ),
    "one comparison is enough": replaced(Comparison, "compare", _at_once),
    "nothing ever goes back": replaced(Comparison, "compare", _never),
    "healthy runs stop": replaced(Comparison, "compare", _healthy_ones_too),
    "only the number of runs counts": replaced(Comparison, "compare", _by_number),
    "a started run goes back free": replaced(
        holdings,
        "Disowned",
        lambda started: outcomes.Disowned(started=False),  # noqa: ARG005
    ),
    "what goes back is given back like by choice": replaced(
        holdings,
        "Disowned",
        lambda started: outcomes.Released(),  # noqa: ARG005
    ),
}

SQLITE: dict[str, Break] = {
    **CORE,
    "a worker is told what all hold": statement(
        sqlite_inspect, "runs_of_worker", "worker_id = ?", "? IS NOT NULL"
    ),
    "the attempt is not told": statement(
        sqlite_inspect, "runs_of_worker", "task_id, attempt", "task_id, 1"
    ),
    "a page skips a run": statement(
        sqlite_inspect, "runs_of_worker", "LIMIT ?", "LIMIT ? OFFSET 1"
    ),
}
POSTGRES: dict[str, Break] = {
    **CORE,
    "a worker is told what all hold": statement(
        postgres_inspect, "runs_of_worker", "worker_id = $1", "$1::text IS NOT NULL"
    ),
    "the attempt is not told": statement(
        postgres_inspect, "runs_of_worker", "::text, attempt", "::text, 1"
    ),
    "a page skips a run": statement(
        postgres_inspect, "runs_of_worker", "LIMIT $3", "LIMIT $3 OFFSET 1"
    ),
}
REDIS: dict[str, Break] = {
    **CORE,
    "only the first page is told": lua(
        "holdings",
        "return call('SSCAN', HELD .. ARGV[1], ARGV[2], 'COUNT', ARGV[3])",
        "return {'0', call('SSCAN', HELD .. ARGV[1], ARGV[2], 'COUNT', ARGV[3])[2]}",
    ),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(SQLITE, POSTGRES, REDIS))
async def test_the_conformance_tests_catch(
    kind: str,
    break_it: Break,
    servers: Servers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_it(monkeypatch)
    assert await caught(servers, tmp_path, kind, CHECKS, StoreError) is not None
