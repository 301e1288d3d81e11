"""Commands `cancel`, `replay` and `delete`."""

from __future__ import annotations

from functools import partial

import click

from fairlane.cli.bulk_changes import BulkChange, change_filtered, change_ids
from fairlane.cli.options import filter_options, json_option, need_choice, store_option
from fairlane.cli.store import open_store
from fairlane.core.filters import Filter
from fairlane.core.machine import Verb
from fairlane.core.priority import level_of, priority_of

CANCEL = BulkChange(Verb.CANCEL, "cancel", "cancelled")
REPLAY = BulkChange(Verb.REPLAY, "replay", "replayed")
DELETE = BulkChange(Verb.DELETE, "delete", "deleted")

ids_argument = click.argument("task_ids", metavar="[ID]...", nargs=-1)
all_option = click.option("--all", "everything", is_flag=True, help="All tasks.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
priority_option = click.option(
    "--new-priority", metavar="P", help="Give them another priority: a name or 0 to 10."
)
keep_option = click.option(
    "--keep-retry-count", is_flag=True, help="Keep the number of retries so far."
)


@click.command("cancel")
@ids_argument
@filter_options()
@all_option
@yes_option
@store_option
@json_option
def cancel_command(
    task_ids: tuple[str, ...],
    chosen: Filter,
    everything: bool,
    yes: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Cancel tasks, by id or by filter.

    Running tasks are cancelled too, and their results are refused.
    """
    need_choice(task_ids, chosen, everything=everything)
    with open_store(store) as app:
        ops = app.backend.ops
        if task_ids:
            change_ids(app, CANCEL, task_ids, ops.cancel, as_json=as_json)
        else:
            change_filtered(app, CANCEL, chosen, ops.cancel_where, yes=yes, as_json=as_json)


@click.command("replay")
@ids_argument
@filter_options()
@all_option
@priority_option
@keep_option
@yes_option
@store_option
@json_option
def replay_command(
    task_ids: tuple[str, ...],
    chosen: Filter,
    everything: bool,
    new_priority: str | None,
    keep_retry_count: bool,
    yes: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Make failed, dead or cancelled tasks ready again.

    Scheduled tasks and those that wait for a retry become ready at once.
    """
    need_choice(task_ids, chosen, everything=everything)
    replay(
        task_ids,
        chosen,
        new_priority=new_priority,
        reset=not keep_retry_count,
        yes=yes,
        store=store,
        as_json=as_json,
    )


def replay(
    task_ids: tuple[str, ...],
    chosen: Filter,
    *,
    new_priority: str | None,
    reset: bool,
    yes: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Replay tasks by id or, without ids, those that match the filter."""
    level = None if new_priority is None else level_of(priority_of(new_priority))
    with open_store(store) as app:
        ops = app.backend.ops
        if task_ids:
            by_id = partial(ops.replay, reset_retry_count=reset, level=level, among=chosen.states)
            change_ids(app, REPLAY, task_ids, by_id, as_json=as_json, among=chosen.states)
        else:
            by_filter = partial(ops.replay_where, reset_retry_count=reset, level=level)
            change_filtered(app, REPLAY, chosen, by_filter, yes=yes, as_json=as_json)


@click.command("delete")
@ids_argument
@filter_options()
@all_option
@yes_option
@store_option
@json_option
def delete_command(
    task_ids: tuple[str, ...],
    chosen: Filter,
    everything: bool,
    yes: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Delete tasks that have ended.

    Tasks that wait to be retried are cancelled first.
    """
    need_choice(task_ids, chosen, everything=everything)
    with open_store(store) as app:
        ops = app.backend.ops
        if task_ids:
            change_ids(app, DELETE, task_ids, ops.delete, as_json=as_json)
        else:
            change_filtered(app, DELETE, chosen, ops.delete_where, yes=yes, as_json=as_json)
