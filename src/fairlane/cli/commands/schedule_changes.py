"""Commands `schedule pause`, `resume`, `run`, `backfill` and `delete`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.bulk_changes import confirm
from fairlane.cli.commands.changes import yes_option
from fairlane.cli.errors import note
from fairlane.cli.options import json_option, store_option
from fairlane.cli.parsing import instant, past
from fairlane.cli.schedule_rules import overlap_option
from fairlane.cli.schedules import find, id_argument, missing, say
from fairlane.cli.store import open_store
from fairlane.core.audit import Action
from fairlane.core.ids import new_id
from fairlane.core.schedules import Missed, Overlap, checked_time
from fairlane.core.scheduling import backfilled
from fairlane.wire.schedule_changes import BackfillReply, RunReply


@click.command("pause")
@id_argument
@click.option("--note", "reason", default="", metavar="TEXT", help="Why.")
@click.option("--until", type=instant, metavar="TIME", help="Resume it then: 2026-01-31T12:00Z.")
@store_option
@json_option
def pause_command(
    schedule_id: str, reason: str, until: datetime | None, store: str | None, as_json: bool
) -> None:
    """Fire no ticks until the schedule is resumed."""
    end = None if until is None else checked_time("until", until)
    with open_store(store) as app:
        op = app.backend.ops.pause_schedule(schedule_id, note=reason, until=end)
        found = app.run_sync(op)
        record(app, Action.PAUSE_SCHEDULE, schedule_id, note=reason, until=until)
    say(found, f"Schedule {schedule_id} is paused.", as_json=as_json)


@click.command("resume")
@id_argument
@click.option(
    "--missed",
    type=click.Choice([each.value for each in Missed]),
    default=Missed.SKIP.value,
    show_default=True,
    help="The ticks of the pause: fire none, the newest, or all of them.",
)
@store_option
@json_option
def resume_command(schedule_id: str, missed: str, store: str | None, as_json: bool) -> None:
    """Fire ticks again after a pause."""
    with open_store(store) as app:
        found = app.run_sync(app.backend.ops.resume_schedule(schedule_id, missed=Missed(missed)))
        record(app, Action.RESUME_SCHEDULE, schedule_id, missed=missed)
    say(found, f"Schedule {schedule_id} is resumed.", as_json=as_json)


@click.command("run")
@id_argument
@click.option(
    "--at", type=instant, metavar="TIME", help="The tick that its handler is told. [default: now]"
)
@store_option
@json_option
def run_command(schedule_id: str, at: datetime | None, store: str | None, as_json: bool) -> None:
    """Submit a task of a schedule now, besides its ticks. Prints the id of the task."""
    tick = None if at is None else checked_time("at", at)
    with open_store(store) as app:
        op = app.backend.ops.run_schedule(schedule_id, new_id(), tick=tick)
        task_id = app.run_sync(op)
        record(app, Action.RUN_SCHEDULE, schedule_id, task_id=task_id, at=at)
    if as_json:
        json_output.emit(RunReply(task_id))
    else:
        click.echo(task_id)


@click.command("backfill")
@id_argument
@click.option(
    "--since", type=past, required=True, metavar="TIME", help="From 7d (ago), 2026-01-31T12:00Z."
)
@click.option("--until", type=past, metavar="TIME", help="To before this time. [default: now]")
@overlap_option
@yes_option
@store_option
@json_option
def backfill_command(
    schedule_id: str,
    since: datetime,
    until: datetime | None,
    overlap: str | None,
    yes: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Submit the tasks of ticks of the past again.

    Up to 1,000 at once. Unless they may overlap, each waits for the one before.
    """
    begin = checked_time("since", since)
    end = checked_time("until", datetime.now(UTC) if until is None else until)
    with open_store(store) as app:
        count = len(backfilled(find(app, schedule_id), begin, end))
        task_ids: list[str] = []
        if count:
            ticks = "tick" if count == 1 else "ticks"
            if not yes:
                confirm(f"Submit the tasks of {count:,} {ticks}?", as_json=as_json)
            how = None if overlap is None else Overlap(overlap)
            op = app.backend.ops.backfill_schedule(schedule_id, new_id(), begin, end, overlap=how)
            task_ids = app.run_sync(op)
            record(app, Action.BACKFILL_SCHEDULE, schedule_id, since=since, until=until)
    if as_json:
        json_output.emit(BackfillReply(len(task_ids), tuple(task_ids)))
        return
    for task_id in task_ids:
        click.echo(task_id)
    if not count:
        note("No tick lies in this time.")


@click.command("delete")
@id_argument
@click.option("--if-version", type=int, metavar="N", help="Only if it has this version.")
@store_option
@json_option
def delete_command(
    schedule_id: str, if_version: int | None, store: str | None, as_json: bool
) -> None:
    """Delete a schedule. Its tasks stay."""
    with open_store(store) as app:
        op = app.backend.ops.drop_schedule(schedule_id, version=if_version)
        if not app.run_sync(op):
            raise missing(schedule_id)
        record(app, Action.DROP_SCHEDULE, schedule_id)
    if as_json:
        json_output.emit({"deleted": schedule_id})
    else:
        click.echo(f"Schedule {schedule_id} is deleted.")
