"""The PostgreSQL engine: its operations, and how to open it."""

from __future__ import annotations

from fairlane.core.backend import Backend
from fairlane.core.composed import Composed
from fairlane.engines.postgres import (
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
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.driver import PostgresDriver


class PostgresOperations(Composed, Context):
    """The operations on a PostgreSQL store."""

    submit_along = submit.submit_along
    submit = submit.submit
    claim = claim.claim
    move_due = due.move_due
    apply = apply.apply
    start = leases.start
    progress = leases.progress
    heartbeat = leases.heartbeat
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
    url: str,
    *,
    patience: float = 10.0,
    connections: int = 8,
) -> Backend:
    """Return a backend for the database at `url`, with up to `connections` connections.

    It connects when it is first used.
    """
    operations = PostgresOperations()
    driver = PostgresDriver(
        url, verify=operations.verify, patience=patience, connections=connections
    )
    return Backend(operations, driver)
