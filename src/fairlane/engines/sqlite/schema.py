"""version, migrate, verify, shift_clock: the store itself."""

from __future__ import annotations

from fairlane.core.flow import Flow, alters
from fairlane.core.priority import MICROSECONDS
from fairlane.core.versions import check_not_newer, check_ready
from fairlane.engines.files import migrations
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import SQL, Context
from fairlane.engines.sqlite.driver_database import APPLICATION_ID

STEPS = migrations(__package__)
VERSION = len(STEPS)


def _version() -> Flow[int]:
    ((version,),) = yield Execute("PRAGMA user_version")
    return int(version)


@alters
def version(self: Context) -> Flow[int]:
    return (yield from _version())


@alters
def migrate(self: Context) -> Flow[int]:
    found = yield from _version()
    check_not_newer(found, VERSION)
    for step in STEPS[found:]:
        for statement in _split(step):
            yield Execute(statement)
    if found < VERSION:
        yield Execute(f"PRAGMA application_id = {APPLICATION_ID}")
        yield Execute(f"PRAGMA user_version = {VERSION}")
    return VERSION


@alters
def verify(self: Context) -> Flow[None]:
    check_ready((yield from _version()), VERSION)
    ((self.clock_offset,),) = yield Execute(SQL["clock_offset"])


@alters
def publish_view(self: Context) -> Flow[None]:
    # A file has one schema: whoever opens it finds the view.
    check_ready((yield from _version()), VERSION)


@alters
def shift_clock(self: Context, seconds: float) -> Flow[None]:
    # Other processes that have the store open notice this when they open it again.
    yield Execute(SQL["shift_clock"], (round(seconds * MICROSECONDS),))
    ((self.clock_offset,),) = yield Execute(SQL["clock_offset"])


def _split(script: str) -> list[str]:
    """Split a migration into statements: executescript would commit our transaction."""
    lines = [line.split("--")[0] for line in script.splitlines()]
    return [part for part in "\n".join(lines).split(";") if part.strip()]
