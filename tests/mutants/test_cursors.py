"""The conformance test of cursors catches every engine that lets a reader wait for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.core.flow import Flow
from fairlane.engines.postgres import events as postgres_events
from fairlane.engines.sqlite import events as sqlite_events
from tests.conformance import test_accounting
from tests.conftest import Servers
from tests.mutants.catching import caught, planted
from tests.mutants.planting import Break, lua, replaced, statement

CHECKS = [test_accounting.test_a_cursor_from_the_future_gets_a_reset]


def _far_ahead() -> Flow[int]:
    yield from ()
    return 10**10


SQLITE: dict[str, Break] = {
    "the newest entry is not known": replaced(sqlite_events, "_newest", _far_ahead),
}

POSTGRES: dict[str, Break] = {
    "a cursor from the future is taken": statement(
        postgres_events,
        "events",
        "pg_snapshot_xmax(pg_current_snapshot())::text",
        f"'{2**64 - 1}'",
    ),
}

REDIS: dict[str, Break] = {
    "the newest entry is that of an empty journal": lua(
        "events", "return {about[i + 1], entries,", "return {'0-0', entries,"
    ),
}


@pytest.mark.parametrize(("kind", "break_it"), planted(SQLITE, POSTGRES, REDIS))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS) is not None
