"""The Redis engine: its operations, each defined in its own module."""

from __future__ import annotations

from fairlane.core.backend import Backend
from fairlane.core.composed import Composed
from fairlane.engines.redis import (
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
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.driver import RedisDriver
from fairlane.engines.redis.keys import NAMES, checked_prefix


class RedisOperations(Composed, Context):
    """The operations on a Redis store."""

    submit_along = submit.submit_along
    submit = submit.submit
    claim = claim.claim
    move_due = due.move_due
    apply = apply.apply
    start = leases.start
    prune = deletion.prune
    progress = leases.progress
    heartbeat = leases.heartbeat
    expired = leases.expired
    bring_back = clocks.bring_back
    register = leases.register
    mark = leases.mark
    bury = leases.bury
    forget = leases.forget
    pause = control.pause
    limit = control.limit
    cancel = control.cancel
    replay = control.replay
    rerun = reruns.rerun
    delete = control.delete
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
    prefix: str = "fairlane",
    patience: float = 10.0,
) -> Backend:
    """Return a backend for a Redis or Valkey server. The first operation connects."""
    operations = RedisOperations(checked_prefix(prefix))
    driver = RedisDriver(
        url,
        verify=operations.verify,
        channel=operations.prefix + NAMES["WAKE"],
        patience=patience,
    )
    return Backend(operations, driver)
