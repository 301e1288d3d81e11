"""version, migrate, verify, shift_clock: the schema of the store."""

from __future__ import annotations

from fairlane.core.errors import NotAFairlaneStore
from fairlane.core.flow import Flow, alters
from fairlane.core.priority import MICROSECONDS
from fairlane.core.versions import check_not_newer, check_ready
from fairlane.engines.files import fill, migrations
from fairlane.engines.postgres.calls import MIGRATION, Query, Script
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("schema")
STEPS = migrations(__package__)
VERSION = len(STEPS)


def _version() -> Flow[int]:
    ((_, used, ours),) = yield Query(SQL["found"])
    if not used:
        return 0
    if not ours:
        raise NotAFairlaneStore(
            "The database has a schema named fairlane that Fairlane did not create. Nothing was "
            "changed. Use another database."
        )
    ((version,),) = yield Query(SQL["version"])
    return int(version)


@alters
def version(self: Context) -> Flow[int]:
    return (yield from _version())


@alters
def migrate(self: Context) -> Flow[int]:
    yield Query(SQL["lock"], (MIGRATION,))
    found = yield from _version()
    check_not_newer(found, VERSION)
    if found == VERSION:
        return VERSION
    ((present, _, _),) = yield Query(SQL["found"])
    if not present:
        yield Query(SQL["create"])
    for step in STEPS[found:]:
        yield Script(step)
    yield Query(SQL["note" if found else "note_first"], (VERSION,))
    self.catalogue.forget()
    return VERSION


@alters
def verify(self: Context) -> Flow[None]:
    self.catalogue.forget()  # the store may be another one, or have lost its last changes
    check_ready((yield from _version()), VERSION)


@alters
def shift_clock(self: Context, seconds: float) -> Flow[None]:
    ((offset,),) = yield Query(SQL["shift"], (round(seconds * MICROSECONDS),))
    yield Script(fill(SQL["clock"], offset=str(int(offset))))
