"""version, migrate, verify, shift_clock: the schema of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlane.core.errors import NotAFairlaneStore, StoreUnusable
from fairlane.core.flow import Flow, alters
from fairlane.core.priority import MICROSECONDS
from fairlane.core.versions import check_not_newer, check_ready
from fairlane.engines.files import fill, migrations
from fairlane.engines.postgres.calls import MIGRATION, Query, Script
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.events import adopt_journal
from fairlane.engines.postgres.session import NAME
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
    if found == 0:
        # If this store was emptied, others still know its lanes by other numbers than the new ones.
        # A lost session lets them look again.
        ((allowed,),) = yield Query(SQL["may_end_sessions"])
        if allowed:
            yield Query(SQL["end_sessions"], (NAME,))
    ((present, _, _),) = yield Query(SQL["found"])
    if not present:
        yield Query(SQL["create"])
    published = yield from _public_view()
    if published is not None and published.ours:
        yield Query(SQL["drop_view"])  # a step may change the view that it reads
    for step in STEPS[found:]:
        yield Script(step)
    if published is not None and published.ours:
        yield from _create_view(published.grants)
    yield Query(SQL["note" if found else "note_first"], (VERSION,))
    self.catalogue.forget()
    return VERSION


@alters
def verify(self: Context) -> Flow[None]:
    self.catalogue.forget()  # the store may be another one, or have lost its last changes
    check_ready((yield from _version()), VERSION)
    yield from adopt_journal()


@alters
def publish_view(self: Context) -> Flow[None]:
    yield Query(SQL["lock"], (MIGRATION,))
    check_ready((yield from _version()), VERSION)
    found = yield from _public_view()
    if found is None:
        yield from _create_view(())
    elif not found.ours:
        raise StoreUnusable(
            "The database has a relation public.tasks already, which Fairlane did not create. "
            "Nothing was changed. Read fairlane.tasks instead."
        )


class _PublicView(NamedTuple):
    """What is called public.tasks. `grants` are the statements that granted rights on it."""

    ours: bool
    grants: Sequence[str]


def _public_view() -> Flow[_PublicView | None]:
    rows = yield Query(SQL["public_view"])
    return _PublicView(*rows[0]) if rows else None


def _create_view(grants: Sequence[str]) -> Flow[None]:
    yield Script(";\n".join([SQL["create_view"], SQL["sign_view"], *grants]))


@alters
def shift_clock(self: Context, seconds: float) -> Flow[None]:
    ((offset,),) = yield Query(SQL["shift"], (round(seconds * MICROSECONDS),))
    yield Script(fill(SQL["clock"], offset=str(int(offset))))
