"""Command `schedule put`: create a schedule, or replace one."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli import task_files
from fairlane.cli.audit_log import record
from fairlane.cli.options import json_option, store_option, utc_option
from fairlane.cli.parsing import duration, instant, payload_of
from fairlane.cli.render import when
from fairlane.cli.schedule_rules import (
    every_option,
    offset_option,
    overlap_option,
    tz_option,
)
from fairlane.cli.schedules import id_argument, say
from fairlane.cli.store import open_store
from fairlane.cli.task_options import (
    as_is_option,
    capability_option,
    delay_option,
    options_of,
    priority_option,
    queue_option,
    retries_option,
    tag_option,
    templates_of,
    timeout_option,
)
from fairlane.core.audit import Action
from fairlane.core.model import moment
from fairlane.core.recurrence import rule_of
from fairlane.core.schedules import Missed, NewSchedule, new_schedule
from fairlane.wire.schedules import rule_fields

_POLICY = (
    *("missed", "most", "within", "overlap", "jitter", "starts_at", "ends_at", "count"),
    *("pause_after_failures", "note"),
)


@click.command("put")
@id_argument
@click.option("--cron", "expression", metavar="RULE", help='Five fields: "30 2 * * MON-FRI".')
@tz_option
@every_option
@offset_option
@click.option("--type", "type", metavar="NAME", required=True, help="The type of its tasks.")
@click.option("--payload", metavar="JSON|@FILE|-", help="Their payload. [default: {}]")
@priority_option
@queue_option
@delay_option
@retries_option
@timeout_option
@tag_option
@capability_option
@as_is_option
@click.option(
    "--missed",
    type=click.Choice([each.value for each in Missed]),
    help="If ticks were missed: fire none, the newest, or all of them. [default: once]",
)
@click.option("--most", type=int, metavar="N", help="Missed ticks to fire at most. [default: 100]")
@click.option(
    "--within", type=duration, metavar="TIME", help="Never fire older ticks. [default: 1d]"
)
@overlap_option
@click.option("--jitter", type=duration, metavar="TIME", help="Fire up to so much later.")
@click.option("--starts-at", type=instant, metavar="TIME", help="The first tick, or later.")
@click.option("--ends-at", type=instant, metavar="TIME", help="The last tick, or earlier.")
@click.option("--count", type=int, metavar="N", help="End after so many ticks.")
@click.option("--pause-after-failures", type=int, metavar="N", help="Pause after so many in a row.")
@click.option("--note", metavar="TEXT", help="What it is for.")
@click.option(
    "--allow-unknown-type", is_flag=True, help="Store it although no worker has this type yet."
)
@click.option(
    "--if-version", type=int, metavar="N", help="Only if it has this version; 0: if it is new."
)
@store_option
@utc_option
@json_option
def put_command(
    schedule_id: str,
    expression: str | None,
    tz: str | None,
    every: float | None,
    offset: float | None,
    type: str,
    payload: str | None,
    as_is: bool,
    allow_unknown_type: bool,
    if_version: int | None,
    store: str | None,
    utc: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Create a schedule, or replace one.

    \b
    fairlane schedule put nightly --cron "30 2 * * *" --tz Europe/Berlin --type report
    fairlane schedule put refresh --every 5m --offset 30s --type fetch --payload '{"all": true}'

    What is not said about its tasks is taken from the definition of their type, which workers
    publish. One that is the same as before stays as it is. If the rule changes, it goes on from
    now; a change of anything else moves no tick.
    """
    rule = rule_of(expression, tz, every, offset)
    policy = {name: value for name in _POLICY if (value := given.pop(name)) is not None}
    options = options_of(**given) | {"unique": False}  # its overlap takes the place
    content = payload_of(payload)

    def made(templates: task_files.Templates) -> NewSchedule:
        task = task_files.submission_of(type, content, options, templates)
        return new_schedule(schedule_id, rule, task, **policy)

    made({})  # what is wrong in itself needs no store to be refused
    with open_store(store, prepare=True) as app:
        templates = templates_of(app, type)
        new = made({} if as_is else templates)
        op = app.backend.ops.put_schedules(
            [new], version=if_version, allow_unknown_type=allow_unknown_type
        )
        (found,) = app.run_sync(op)
        record(app, Action.PUT_SCHEDULE, schedule_id, **rule_fields(rule), task_type=type)
    tick = found.standing.tick
    following = "" if tick is None else f" Its next tick is {when(moment(tick), utc=utc)}."
    say(found, f"{schedule_id}: {rule.in_words()}.{following}", as_json=as_json)
