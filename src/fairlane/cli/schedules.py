"""Schedules on a terminal: as a table, as one, and the ticks to come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import click
import msgspec

from fairlane.cli import json_output
from fairlane.cli.errors import CommandFailed, note
from fairlane.cli.escapes import harmless_json
from fairlane.cli.render import NONE, Cell, Column, Row, console, fields, span, table, text, when
from fairlane.client.app import Fairlane
from fairlane.core.schedules import Schedule, ScheduleState
from fairlane.core.scheduling import unknown
from fairlane.wire.schedule_views import (
    RunView,
    ScheduledTaskView,
    ScheduleView,
    TickView,
    encode_schedule,
)
from fairlane.wire.times import time_of

id_argument = click.argument("schedule_id", metavar="ID")

RUNS = 10
"""How many of the last runs are shown."""

COLUMNS = (
    Column("schedule", least=12),
    Column("state"),
    Column("when", least=20),
    Column("type", least=8, wide=90),
    Column("next", wide=60),
    Column("last", wide=75),
    Column("fired", right=True, wide=110),
    Column("skipped", right=True, wide=120),
    Column("missed", right=True, wide=120),
)
TICK_COLUMNS = (Column("at"), Column("local"), Column("", least=16))
RUN_COLUMNS = (
    Column("tick"),
    Column("outcome"),
    Column("ticks", right=True),
    Column("task", wide=90),
    Column("reason", least=12),
)
INDENT = "  "

_STATES = {ScheduleState.ACTIVE: "green", ScheduleState.PAUSED: "yellow"}
_OUTCOMES = {"fired": "green", "manual": "cyan", "missed": "red", "refused": "red"}


def find(app: Fairlane, schedule_id: str) -> Schedule:
    """Return a schedule. Raises CommandFailed if there is none."""
    (found,) = app.run_sync(app.backend.ops.schedules([schedule_id]))
    if found is None:
        raise missing(schedule_id)
    return found


def missing(schedule_id: str) -> CommandFailed:
    """Return the error for a schedule that does not exist."""
    return CommandFailed(f"{unknown(schedule_id).message} See `fairlane schedule list`.")


def show(found: Schedule, *, utc: bool, as_json: bool) -> None:
    """Print everything about a schedule."""
    if as_json:
        json_output.emit(encode_schedule(found))
    else:
        show_schedule(encode_schedule(found), utc=utc)


def say(found: Schedule, sentence: str, *, as_json: bool) -> None:
    """Print what was done with a schedule."""
    if as_json:
        json_output.emit(encode_schedule(found))
    else:
        click.echo(sentence)


def show_table(schedules: Sequence[ScheduleView], next_cursor: str | None, *, utc: bool) -> None:
    """Print a page of schedules."""
    if not schedules:
        note("No schedules: make one with `fairlane schedule put`.")
        return
    out = console()
    for line in table(COLUMNS, (_row(each, utc=utc) for each in schedules), out.width):
        out.print(line)
    if next_cursor is not None:
        note(f"There are more: --cursor {next_cursor}")


def _row(schedule: ScheduleView, *, utc: bool) -> Row:
    totals = schedule.totals
    last = schedule.runs[0].outcome if schedule.runs else NONE
    return (
        schedule.schedule_id,
        _state(schedule),
        schedule.in_words,
        schedule.task.task_type,
        _when(schedule.next_at, utc=utc),
        Cell(last, _OUTCOMES.get(last, "")),
        f"{totals.fired:,}",
        f"{totals.skipped:,}",
        Cell(f"{totals.missed:,}", "red" if totals.missed else "dim"),
    )


def show_schedule(schedule: ScheduleView, *, utc: bool) -> None:
    """Print everything about a schedule, with its next ticks and its last runs."""
    out = console()
    pairs = [(name, value) for name, value in _facts(schedule, utc=utc) if value not in {"", NONE}]
    for line in fields(pairs, out.width):
        out.print(line)
    pretty = harmless_json(msgspec.json.format(bytes(schedule.task.parameters)).decode("utf-8"))
    out.print(text(Cell("payload", "dim")))
    for each in pretty.splitlines():
        out.print(text(INDENT) + text(each), soft_wrap=True)
    if schedule.upcoming:
        out.print(text(Cell("next ticks", "dim")))
        show_ticks(schedule.upcoming, indent=INDENT)
    if schedule.runs:
        shown = schedule.runs[:RUNS]
        out.print(text(Cell(f"last {len(shown)} of {len(schedule.runs)} runs", "dim")))
        rows = [_run(each, utc=utc) for each in shown]
        for line in table(RUN_COLUMNS, rows, out.width - len(INDENT)):
            out.print(text(INDENT) + line)


def show_ticks(ticks: Iterable[TickView], *, indent: str = "") -> None:
    """Print ticks to come, in UTC and in their zone, with what the clock does there."""
    out = console()
    rows = [
        (_exact(each.at), each.local.replace("T", " "), Cell(each.note or "", "yellow"))
        for each in ticks
    ]
    for line in table(TICK_COLUMNS, rows, out.width - len(indent)):
        out.print(text(indent) + line)


def _facts(schedule: ScheduleView, *, utc: bool) -> Iterator[tuple[str, str | Cell]]:
    yield "schedule", Cell(schedule.schedule_id, "bold")
    yield "state", _state(schedule)
    if schedule.problem is not None:
        yield "problem", Cell(schedule.problem, "red")
    pause = schedule.pause
    if pause is not None:
        until = "somebody resumes it" if pause.until is None else _when(pause.until, utc=utc)
        because = f": {pause.note}" if pause.note else ""
        yield "paused", f"{_when(pause.since, utc=utc)}, until {until}{because}"
    yield "when", schedule.in_words
    yield "rule", _rule(schedule)
    yield "note", schedule.note
    yield "starts", _when(schedule.starts_at, utc=utc)
    yield "ends", _when(schedule.ends_at, utc=utc)
    if schedule.count is not None:
        yield "count", f"{schedule.remaining:,} of {schedule.count:,} ticks are left"
    yield from _policies(schedule)
    yield from _task(schedule.task)
    yield "declared by", "" if schedule.owner is None else f"the code of {schedule.owner}"
    yield "version", str(schedule.version)
    yield "changed", _when(schedule.updated_at, utc=utc)
    yield "last tick", _when(schedule.last_at, utc=utc)
    yield "last task", schedule.last_task_id or ""
    totals = schedule.totals
    yield "ticks", f"{totals.fired:,} fired, {totals.skipped:,} skipped, {totals.missed:,} missed"
    if schedule.failures:
        yield "failures", Cell(f"{schedule.failures:,} in a row", "red")


def _rule(schedule: ScheduleView) -> str:
    if schedule.cron is not None:
        return f"{schedule.cron}, {schedule.tz}"
    offset = f", {schedule.offset_seconds:g} s later" if schedule.offset_seconds else ""
    return f"every {schedule.every_seconds:g} s{offset}, counted from 1970"


def _policies(schedule: ScheduleView) -> Iterator[tuple[str, str]]:
    most = f", at most {schedule.most:,}" if schedule.missed == "all" else ""
    yield "missed ticks", f"{schedule.missed}{most}, within {span(schedule.within_seconds)}"
    yield "overlap", schedule.overlap
    if schedule.jitter_seconds:
        yield "jitter", f"up to {span(schedule.jitter_seconds)}"
    if schedule.pause_after_failures is not None:
        yield "pauses", f"after {schedule.pause_after_failures:,} failures in a row"


def _task(task: ScheduledTaskView) -> Iterator[tuple[str, str]]:
    yield "type", task.task_type
    yield "queue", task.queue
    yield "priority", str(task.priority)
    yield "retries", f"at most {task.max_retries:,}"
    if not isinstance(task.timeout_seconds, msgspec.UnsetType):
        yield "timeout", span(task.timeout_seconds)
    yield "delay", span(task.delay_seconds) if task.delay_seconds else ""
    yield "needs", ", ".join(task.required_capabilities)
    yield "tags", ", ".join(f"{name}={value}" for name, value in sorted(task.tags.items()))


def _run(run: RunView, *, utc: bool) -> Row:
    return (
        _when(run.tick, utc=utc),
        Cell(run.outcome, _OUTCOMES.get(run.outcome, "")),
        f"{run.count:,}",
        run.task_id or NONE,
        run.reason,
    )


def _state(schedule: ScheduleView) -> Cell:
    if schedule.problem is not None:
        return Cell(f"{schedule.state}, not here", "red")
    return Cell(schedule.state.value, _STATES.get(schedule.state, "dim"))


def _when(time: str | None, *, utc: bool) -> str:
    return when(None if time is None else time_of(time), utc=utc)


def _exact(time: str) -> str:
    return when(datetime.fromisoformat(time), utc=True)
