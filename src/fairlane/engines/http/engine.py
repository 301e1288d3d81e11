"""A server as an engine: its verbs, each at home in its own module."""

from __future__ import annotations

from fairlane.core import queries
from fairlane.core.backend import Backend
from fairlane.engines.http import books, control, inspect, submit, work
from fairlane.engines.http.absent import OWN, SCHEDULES, TOKENS, TOLD, absent
from fairlane.engines.http.driver import HttpDriver


class HttpOperations:
    """What can be asked of a server."""

    submit = submit.submit
    claim = work.claim
    start = work.start
    settle = work.settle
    progress = work.progress
    heartbeat = work.heartbeat
    register = work.register
    forget = work.forget
    mark = control.mark
    pause = control.pause
    limit = control.limit
    cancel = control.cancel
    replay = control.replay
    delete = control.delete
    cancel_where = control.cancel_where
    replay_where = control.replay_where
    delete_where = control.delete_where
    get = inspect.get_tasks
    workers = inspect.workers
    controls = inspect.controls
    find = inspect.find
    page = inspect.page
    stats = inspect.stats
    samples = inspect.samples
    why = inspect.why
    dlq_analysis = inspect.dlq_analysis
    facts = books.facts
    tallies = books.tallies
    depths = books.depths
    events = books.events
    tail = books.tail
    audit = books.audit
    total = queries.total
    position = queries.position
    version = inspect.version
    migrate = inspect.migrate
    verify = inspect.verify
    durability = inspect.durability
    expired = absent("expired", OWN)
    prune = absent("prune", OWN)
    sample = absent("sample", OWN)
    elect = absent("elect", OWN)
    bury = absent("bury", OWN)
    fire = absent("fire", OWN)
    shift_clock = absent("shift_clock", OWN)
    record = absent("record", TOLD)
    schedules = absent("schedules", SCHEDULES)
    put_schedule = absent("put_schedule", SCHEDULES)
    drop_schedule = absent("drop_schedule", SCHEDULES)
    tokens = absent("tokens", TOKENS)
    token = absent("token", TOKENS)
    put_token = absent("put_token", TOKENS)
    retire_token = absent("retire_token", TOKENS)
    drop_token = absent("drop_token", TOKENS)


def connect(
    url: str, *, token: str | None = None, ca_file: str | None = None, patience: float = 10.0
) -> Backend:
    """A backend on a server. Connects to nothing yet.

    `ca_file`: certificates to trust, in PEM, where the system's own are not enough.
    """
    operations = HttpOperations()
    driver = HttpDriver(
        url, token=token, ca_file=ca_file, durability=operations.durability, patience=patience
    )
    return Backend(operations, driver)
