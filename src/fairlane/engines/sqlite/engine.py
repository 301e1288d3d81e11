"""The SQLite engine: its verbs, each at home in its own module."""

from __future__ import annotations

from pathlib import Path

from fairlane.core.priority import Aging
from fairlane.core.store import Backend
from fairlane.engines.sqlite import claim, control, inspect, leases, schema, settle, submit
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.driver import SqliteDriver


class SqliteOperations(Context):
    """What can be asked of a SQLite store."""

    submit = submit.submit
    claim = claim.claim
    settle = settle.settle
    start = leases.start
    progress = leases.progress
    heartbeat = leases.heartbeat
    expired = leases.expired
    register = leases.register
    mark = leases.mark
    bury = leases.bury
    forget = leases.forget
    pause = control.pause
    limit = control.limit
    cancel = control.cancel
    replay = control.replay
    get = inspect.get
    workers = inspect.workers
    controls = inspect.controls
    tallies = inspect.tallies
    depths = inspect.depths
    events = inspect.events
    version = schema.version
    migrate = schema.migrate
    verify = schema.verify
    shift_clock = schema.shift_clock


def connect(
    path: Path | None,
    *,
    aging: Aging = Aging(),  # noqa: B008
    synchronous: str = "FULL",
    patience: float = 10.0,
) -> Backend:
    """A backend on a file, or in memory when `path` is None. Opens nothing yet."""
    operations = SqliteOperations(aging)
    driver = SqliteDriver(
        path,
        verify=operations.verify,
        rolled_back=operations.catalogue.forget,
        synchronous=synchronous,
        patience=patience,
    )
    return Backend(operations, driver)
