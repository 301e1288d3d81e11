"""The conformance tests of circuit breakers catch every engine that loses a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.core.flow import Flow
from fairlane.engines.postgres import apply as postgres_apply
from fairlane.engines.postgres import circuits as postgres_circuits
from fairlane.engines.postgres.calls import Query
from fairlane.engines.sqlite import circuits as sqlite_circuits
from tests.conformance import test_breaker
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, lua, replaced, statement

CHECKS = checks_of(test_breaker)


def _count_nothing(*_: object) -> Flow[bool]:
    yield from ()
    return False


SQLITE: dict[str, Break] = {
    "runs are not counted": replaced(sqlite_circuits, "count_runs", _count_nothing),
}

POSTGRES: dict[str, Break] = {
    "runs are not counted": replaced(postgres_apply, "count_runs", _count_nothing),
    "runs are counted after they are settled": replaced(
        postgres_apply, "ASK_NESTED", Query("SELECT true")
    ),
    "a circuit changes while another process counts": statement(
        postgres_circuits, "lock", "FOR UPDATE", ""
    ),
    "claims do not learn that a circuit opened": replaced(
        postgres_circuits, "CATALOGUE", {"bump": "SELECT"}
    ),
}

REDIS: dict[str, Break] = {
    "runs are not counted": lua("apply", "note_run(read('>H', ending), kind.verdict)", ""),
    "runs of one lane count for all": lua("lib/circuits", "lane, lane)", "'-inf', '+inf')"),
    "claims do not learn that a circuit opened": lua("lib/circuits", "    bump()\n", ""),
    "the slots of a type are not counted": lua(
        "lib/circuits", "count_slots(lanes_of(turned), gone)", ""
    ),
    "a run that ended takes the slot of the probe": lua("lib/slots", "and not gone[run]", ""),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(SQLITE, POSTGRES, REDIS))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        # ValueError: a claim that should get one task got another number of them.
        assert await caught(servers, tmp_path, kind, CHECKS, ValueError) is not None
