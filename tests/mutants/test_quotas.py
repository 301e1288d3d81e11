"""The conformance tests of quotas catch every way to count what a subject has made wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.core import definitions, quotas
from fairlane.core.composed import Composed
from fairlane.core.errors import InvalidInput
from fairlane.core.flow import Flow
from tests.conformance import test_quotas
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, replaced

CHECKS = checks_of(test_quotas)

_take, _counted = Composed.take_quota, quotas.counted


def _writes_nothing(*_: Any) -> Flow[None]:
    yield from ()


def _all_are_one(self: Any, made: Any, _subject: str, names: Any) -> Any:
    return _take(self, made, "all", names)


def _never_forgets(before: Any, names: Any, now: int) -> Any:
    return {**before, **_counted(before, names, now)}


def _never_renews(before: Any, names: Any, now: int) -> Any:
    return {**_counted(before, names, now), **{k: v for k, v in before.items() if v > now}}


def _does_not_look(self: Any, kind: str, puts: Any) -> Any:
    return (yield from self.write_documents(kind, puts))


FAULTS: dict[str, Break] = {
    "nothing is stored": replaced(quotas, "write", _writes_nothing),
    "all subjects share a quota": replaced(Composed, "take_quota", _all_are_one),
    "nothing is forgotten": replaced(quotas, "counted", _never_forgets),
    "what is made again is forgotten": replaced(quotas, "counted", _never_renews),
    "a dropped definition keeps its place": replaced(definitions, "give_back", _writes_nothing),
}


AMONG_PROCESSES: dict[str, Break] = FAULTS | {
    "another process is not noticed": replaced(quotas, "write", _does_not_look),
}
"""Memory belongs to one process, which does one thing after the other."""


@pytest.mark.parametrize(("kind", "break_it"), planted(FAULTS, AMONG_PROCESSES, AMONG_PROCESSES))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS, InvalidInput) is not None
