"""The SQLite engine: its operations, each defined in its own module."""

from __future__ import annotations

from pathlib import Path

from fairlane.core.backend import Backend
from fairlane.core.composed import Composed
from fairlane.engines.sqlite import (
    apply,
    claim,
    clocks,
    control,
    deletion,
    documents,
    due,
    events,
    find,
    inspect,
    lanes,
    leases,
    overview,
    reruns,
    schema,
    submit,
)
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.driver import SqliteDriver


class SqliteOperations(Composed, Context):
    """The operations on a SQLite store."""

    submit_along = submit.submit_along
    submit = submit.submit
    claim = claim.claim
    move_due = due.move_due
    apply = apply.apply
    start = leases.start
    progress = leases.progress
    heartbeat = leases.heartbeat
    shortest_lease = leases.shortest_lease
    expired = leases.expired
    bring_back = clocks.bring_back
    prune = deletion.prune
    register = leases.register
    mark = leases.mark
    bury = leases.bury
    forget = leases.forget
    pause = control.pause
    limit = control.limit
    cancel = control.cancel
    replay = control.replay
    rerun = reruns.rerun
    delete = deletion.delete
    get = inspect.get
    heads = inspect.heads
    workers = inspect.workers
    holdings = inspect.holdings
    controls = inspect.controls
    tail = events.tail
    events = events.events
    find = find.find
    facts = overview.facts
    version = schema.version
    migrate = schema.migrate
    verify = schema.verify
    publish_view = schema.publish_view
    shift_clock = schema.shift_clock
    read_documents = documents.read_documents
    find_document = documents.find_document
    list_documents = documents.list_documents
    write_documents = documents.write_documents
    expire_documents = documents.expire_documents
    write_settings = control.write_settings
    remove_lanes = lanes.remove_lanes


def connect(
    path: Path | None,
    *,
    synchronous: str = "FULL",
    patience: float = 10.0,
) -> Backend:
    """Return a backend on a file, or in memory when `path` is None. Opens nothing yet."""
    operations = SqliteOperations()
    driver = SqliteDriver(
        path,
        verify=operations.verify,
        rolled_back=operations.catalogue.forget,
        replaced=operations.catalogue.renew,
        shortest_lease=operations.shortest_lease,
        synchronous=synchronous,
        patience=patience,
    )
    return Backend(operations, driver)
