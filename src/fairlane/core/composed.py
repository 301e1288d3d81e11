"""Operations that the core composes, once for all engines, from what an engine implements."""

from __future__ import annotations

from fairlane.core import (
    audit,
    blobs,
    client_limits,
    clocks,
    definitions,
    encryption,
    facts,
    holdings,
    lane_shares,
    queries,
    quotas,
    resuming,
    roles,
    scheduling,
    settlement,
    store_settings,
    tokens,
    unused_lanes,
    workflow_keys,
    workflow_list,
    workflow_records,
    workflow_watch,
    workflows,
)


class Composed:
    """The base of every engine's operations: the engine adds those that touch its store."""

    settle = settlement.settle
    disown = holdings.disown
    cancel_where = queries.cancel_where
    completions = queries.completions
    delete_where = queries.delete_where
    dlq_analysis = queries.dlq_analysis
    page = queries.page
    position = queries.position
    replay_where = queries.replay_where
    stats = queries.stats
    total = queries.total
    why = queries.why
    workflow = workflows.workflow
    cancel_workflow = workflows.cancel_workflow
    submit_workflow = workflow_records.submit_workflow
    workflow_id_for = workflow_keys.workflow_id_for
    workflow_page = workflow_list.workflow_page
    workflow_news = workflow_watch.workflow_news
    watch_workflows = workflow_watch.watch_workflows
    reopen_workflow = workflow_watch.reopen_workflow
    forget_workflow = workflow_watch.forget_workflow
    resume_workflow = resuming.resume_workflow
    delete_workflow = resuming.delete_workflow
    put_schedules = scheduling.put_schedules
    sweep_schedules = scheduling.sweep_schedules
    drop_schedule = scheduling.drop_schedule
    pause_schedule = scheduling.pause_schedule
    resume_schedule = scheduling.resume_schedule
    run_schedule = scheduling.run_schedule
    backfill_schedule = scheduling.backfill_schedule
    due_schedules = scheduling.due_schedules
    fire_due = scheduling.fire_due
    schedule_page = scheduling.schedule_page
    schedules = scheduling.schedules
    tick_counts = scheduling.tick_counts
    drop_token = tokens.drop_token
    put_token = tokens.put_token
    retire_token = tokens.retire_token
    token = tokens.token
    tokens = tokens.tokens
    settings = store_settings.settings
    change_settings = store_settings.change_settings
    set_encryption = encryption.set_encryption
    encryption = encryption.encryption
    definition = definitions.definition
    publish = definitions.publish
    drop_definition = definitions.drop_definition
    take_quota = quotas.take_quota
    definition_page = definitions.definition_page
    definitions = definitions.definitions
    put_blob = blobs.put_blob
    blob = blobs.blob
    drop_blob = blobs.drop_blob
    old_blobs = blobs.old_blobs
    blob_owner = blobs.blob_owner
    record = audit.record
    trim_audit = audit.trim_audit
    audit = audit.audit
    elect = roles.elect
    watch_clock = clocks.watch_clock
    reserve = client_limits.reserve
    sample = facts.sample
    samples = facts.samples
    take_lanes = lane_shares.take_lanes
    drop_lanes = unused_lanes.drop_lanes
