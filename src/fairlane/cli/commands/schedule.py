"""Command `schedule`: tasks that are submitted again and again, by a rule."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from fairlane.cli import json_output
from fairlane.cli.commands import schedule_changes
from fairlane.cli.commands.schedule_put import put_command
from fairlane.cli.options import cursor_option, json_option, store_option, utc_option
from fairlane.cli.schedule_rules import every_option, offset_option, tz_option
from fairlane.cli.schedules import find, id_argument, show, show_table, show_ticks
from fairlane.cli.store import open_store
from fairlane.core import limits
from fairlane.core.model import microseconds_of
from fairlane.core.recurrence import preview, rule_of
from fairlane.wire.schedule_changes import PREVIEW_TICKS, PreviewView
from fairlane.wire.schedule_views import ScheduleList, encode_listed, encode_ticks


@click.group("schedule")
def schedule_command() -> None:
    """Submit tasks again and again: by a cron rule, or every 5m."""


@schedule_command.command("list")
@click.option(
    "--limit",
    type=click.IntRange(1, limits.SCHEDULE_PAGE),
    default=limits.SCHEDULE_PAGE,
    help="At most this many.",
    show_default=True,
)
@cursor_option
@store_option
@utc_option
@json_option
def list_command(
    limit: int, cursor: str | None, store: str | None, utc: bool, as_json: bool
) -> None:
    """List schedules, those first that are due next."""
    with open_store(store) as app:
        page = app.run_sync(app.backend.ops.schedule_page(cursor, limit))
    schedules = encode_listed(page.schedules)
    if as_json:
        json_output.emit(ScheduleList(schedules, page.next_cursor))
    else:
        show_table(schedules, page.next_cursor, utc=utc)


@schedule_command.command("show")
@id_argument
@store_option
@utc_option
@json_option
def show_command(schedule_id: str, store: str | None, utc: bool, as_json: bool) -> None:
    """Show a schedule, its next ticks and its last runs."""
    with open_store(store) as app:
        found = find(app, schedule_id)
    show(found, utc=utc, as_json=as_json)


@schedule_command.command("preview")
@click.argument("expression", metavar="[RULE]", required=False)
@tz_option
@every_option
@offset_option
@click.option(
    "-n",
    "count",
    type=click.IntRange(1, PREVIEW_TICKS),
    default=5,
    show_default=True,
    help="How many ticks.",
)
@json_option
def preview_command(
    expression: str | None,
    tz: str | None,
    every: float | None,
    offset: float | None,
    count: int,
    as_json: bool,
) -> None:
    """Show what a rule means, and its next ticks. Needs no store.

    \b
    fairlane schedule preview "30 2 * * *" --tz Europe/Berlin
    """
    rule = rule_of(expression, tz, every, offset)
    ticks = encode_ticks(preview(rule, microseconds_of(datetime.now(UTC)), count))
    if as_json:
        json_output.emit(PreviewView(rule.in_words(), ticks))
        return
    click.echo(rule.in_words())
    show_ticks(ticks)


for each in (
    put_command,
    schedule_changes.pause_command,
    schedule_changes.resume_command,
    schedule_changes.run_command,
    schedule_changes.backfill_command,
    schedule_changes.delete_command,
):
    schedule_command.add_command(each)
