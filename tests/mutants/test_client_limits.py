"""The conformance tests of client limits catch every way to count clients wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import client_limits
from fairlane.core.client_limits import Rate
from fairlane.core.composed import Composed
from fairlane.core.flow import Flow
from tests.conformance import test_client_limits
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, replaced

CHECKS = checks_of(test_client_limits)

_reserve, _take, _live_parts = Composed.reserve, client_limits.take, client_limits._live_parts


def _counts_nothing(*_: Any) -> Flow[None]:
    yield from ()


def _with_one_window(self: Any, rates: Any, wants: Any) -> Any:
    return _reserve(self, rates[:1], wants)


def _keeps_what_is_unused(counts: Any, rates: Any, want: Any, now: int) -> Any:
    return _take(counts, rates, replace(want, unused=0), now)


def _forgets_early(parts: Any, rate: Rate, now: int) -> Any:
    oldest = now // rate.part - client_limits.PARTS // 2
    return {part: count for part, count in _live_parts(parts, rate, now).items() if part >= oldest}


def _forgets_nothing(parts: Any, _rate: Rate, _now: int) -> Any:
    return dict(parts)


FAULTS: dict[str, Break] = {
    "nothing is stored": replaced(client_limits, "write_or_forget", _counts_nothing),
    "only the first window counts": replaced(Composed, "reserve", _with_one_window),
    "what is unused is not given back": replaced(client_limits, "take", _keeps_what_is_unused),
    "a part is forgotten early": replaced(client_limits, "_live_parts", _forgets_early),
    "a part is never forgotten": replaced(client_limits, "_live_parts", _forgets_nothing),
    "a share takes all the room": replaced(client_limits, "SHARES", 1),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(FAULTS, FAULTS, FAULTS))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        # A faulty wait never ends in room, or is none that can be slept.
        assert await caught(servers, tmp_path, kind, CHECKS, ValueError) is not None
