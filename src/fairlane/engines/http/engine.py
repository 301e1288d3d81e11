"""A server as an engine: its operations."""

from __future__ import annotations

from fairlane.core import definitions, queries, workflows
from fairlane.core.backend import Backend
from fairlane.engines.http import (
    control,
    events,
    inspect,
    schedules,
    submit,
    workers,
    workflow_changes,
)
from fairlane.engines.http import workflows as http_workflows
from fairlane.engines.http.driver import HttpDriver
from fairlane.engines.http.unsupported import (
    AUDIT,
    BLOBS,
    ENCRYPTION,
    OWN,
    TOKENS,
    unsupported,
)


class HttpOperations:
    """The operations of a server."""

    submit = submit.submit
    claim = workers.claim
    start = workers.start
    settle = workers.settle
    progress = workers.progress
    heartbeat = workers.heartbeat
    publish = workers.publish
    drop_definition = control.drop_definition
    register = workers.register
    holdings = workers.holdings
    completions = workers.completions
    disown = workers.disown
    forget = workers.forget
    mark = control.mark
    pause = control.pause
    limit = control.limit
    change_settings = control.change_settings
    cancel = control.cancel
    replay = control.replay
    delete = control.delete
    cancel_where = control.cancel_where
    replay_where = control.replay_where
    delete_where = control.delete_where
    get = inspect.get_tasks
    heads = inspect.heads
    workers = inspect.workers
    controls = inspect.controls
    settings = inspect.settings
    definition = inspect.definition
    definition_page = inspect.definition_page
    definitions = definitions.definitions
    find = inspect.find
    page = inspect.page
    stats = inspect.stats
    samples = inspect.samples
    why = inspect.why
    dlq_analysis = inspect.dlq_analysis
    put_schedules = schedules.put_schedules
    schedule_page = schedules.schedule_page
    drop_schedule = schedules.drop_schedule
    pause_schedule = schedules.pause_schedule
    resume_schedule = schedules.resume_schedule
    run_schedule = schedules.run_schedule
    backfill_schedule = schedules.backfill_schedule
    schedules = schedules.schedules
    facts = events.facts
    tail = events.tail
    audit = events.audit
    events = events.events
    total = inspect.total
    workflow = workflows.workflow
    cancel_workflow = workflows.cancel_workflow
    submit_workflow = http_workflows.submit_workflow
    workflow_page = http_workflows.workflow_page
    resume_workflow = workflow_changes.resume_workflow
    delete_workflow = workflow_changes.delete_workflow
    position = queries.position
    version = inspect.version
    migrate = inspect.migrate
    verify = inspect.verify
    durability = inspect.durability
    move_due = unsupported("move_due", OWN)
    rerun = unsupported("rerun", OWN)
    expired = unsupported("expired", OWN)
    watch_clock = unsupported("watch_clock", OWN)
    bring_back = unsupported("bring_back", OWN)
    prune = unsupported("prune", OWN)
    drop_lanes = unsupported("drop_lanes", OWN)
    sample = unsupported("sample", OWN)
    elect = unsupported("elect", OWN)
    bury = unsupported("bury", OWN)
    due_schedules = unsupported("due_schedules", OWN)
    fire_due = unsupported("fire_due", OWN)
    sweep_schedules = unsupported("sweep_schedules", OWN)
    tick_counts = unsupported("tick_counts", OWN)
    workflow_id_for = unsupported("workflow_id_for", OWN)
    workflow_news = unsupported("workflow_news", OWN)
    watch_workflows = unsupported("watch_workflows", OWN)
    reopen_workflow = unsupported("reopen_workflow", OWN)
    forget_workflow = unsupported("forget_workflow", OWN)
    publish_view = unsupported("publish_view", OWN)
    shift_clock = unsupported("shift_clock", OWN)
    reserve = unsupported("reserve", OWN)
    take_quota = unsupported("take_quota", OWN)
    take_lanes = unsupported("take_lanes", OWN)
    record = unsupported("record", AUDIT)
    encryption = unsupported("encryption", ENCRYPTION)
    set_encryption = unsupported("set_encryption", ENCRYPTION)
    trim_audit = unsupported("trim_audit", OWN)
    put_blob = unsupported("put_blob", BLOBS)
    blob = unsupported("blob", BLOBS)
    drop_blob = unsupported("drop_blob", BLOBS)
    old_blobs = unsupported("old_blobs", BLOBS)
    blob_owner = unsupported("blob_owner", BLOBS)
    tokens = unsupported("tokens", TOKENS)
    token = unsupported("token", TOKENS)
    put_token = unsupported("put_token", TOKENS)
    retire_token = unsupported("retire_token", TOKENS)
    drop_token = unsupported("drop_token", TOKENS)


def connect(
    url: str, *, token: str | None = None, ca_file: str | None = None, patience: float = 10.0
) -> Backend:
    """Return a backend for a server. Does not connect yet.

    `ca_file`: certificates to trust, in PEM, instead of the system's.
    """
    operations = HttpOperations()
    driver = HttpDriver(
        url, token=token, ca_file=ca_file, durability=operations.durability, patience=patience
    )
    return Backend(operations, driver)
