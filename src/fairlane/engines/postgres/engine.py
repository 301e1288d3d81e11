"""The PostgreSQL engine: its operations, and how to open it."""

from __future__ import annotations

from fairlane.core import audit, facts, queries, roles, schedules, settlement, tokens
from fairlane.core.backend import Backend
from fairlane.core.priority import Aging
from fairlane.engines.postgres import (
    apply,
    claim,
    control,
    deletion,
    documents,
    events,
    find,
    inspect,
    leases,
    overview,
    schema,
    submit,
)
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.driver import PostgresDriver


class PostgresOperations(Context):
    """The operations on a PostgreSQL store."""

    submit = submit.submit
    claim = claim.claim
    apply = apply.apply
    settle = settlement.settle
    start = leases.start
    progress = leases.progress
    heartbeat = leases.heartbeat
    expired = leases.expired
    prune = deletion.prune
    sample = facts.sample
    elect = roles.elect
    register = leases.register
    mark = leases.mark
    bury = leases.bury
    forget = leases.forget
    pause = control.pause
    limit = control.limit
    cancel = control.cancel
    replay = control.replay
    delete = deletion.delete
    cancel_where = queries.cancel_where
    replay_where = queries.replay_where
    delete_where = queries.delete_where
    put_schedule = schedules.put_schedule
    drop_schedule = schedules.drop_schedule
    fire = schedules.fire
    put_token = tokens.put_token
    retire_token = tokens.retire_token
    drop_token = tokens.drop_token
    record = audit.record
    get = inspect.get
    workers = inspect.workers
    controls = inspect.controls
    tail = events.tail
    events = events.events
    find = find.find
    samples = facts.samples
    facts = overview.facts
    schedules = schedules.schedules
    token = tokens.token
    tokens = tokens.tokens
    audit = audit.audit
    page = queries.page
    total = queries.total
    stats = queries.stats
    position = queries.position
    why = queries.why
    dlq_analysis = queries.dlq_analysis
    version = schema.version
    migrate = schema.migrate
    verify = schema.verify
    shift_clock = schema.shift_clock
    read_documents = documents.read_documents
    find_document = documents.find_document
    list_documents = documents.list_documents
    write_documents = documents.write_documents
    expire_documents = documents.expire_documents


def connect(
    url: str,
    *,
    aging: Aging = Aging(),  # noqa: B008
    patience: float = 10.0,
    connections: int = 8,
) -> Backend:
    """Return a backend for the database at `url`, with up to `connections` connections.

    It connects when it is first used.
    """
    operations = PostgresOperations(aging)
    driver = PostgresDriver(
        url, verify=operations.verify, patience=patience, connections=connections
    )
    return Backend(operations, driver)
