"""Command `events`: the journal of transitions."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import click

from fairlane.cli import json_output
from fairlane.cli.errors import note
from fairlane.cli.options import json_option, store_option, utc_option
from fairlane.cli.render import Cell, console, span, text
from fairlane.cli.store import open_store
from fairlane.client.app import Fairlane
from fairlane.core import limits
from fairlane.core.model import Event
from fairlane.core.priority import shown_as
from fairlane.wire.events import encode_events, tasks_with_progress
from fairlane.wire.runs import encode_progress

POLL_SECONDS = 0.2
Show = Callable[[Sequence[Event], str | None], None]
"""Prints events that were read after a cursor."""
_STYLES = {
    "complete": "green",
    "fail": "red",
    "dead_letter": "red",
    "retry": "yellow",
    "claim": "cyan",
}


@click.command("events")
@click.option("--follow", "-f", is_flag=True, help="Follow new events.")
@click.option("--after", metavar="CURSOR", help="Start after this cursor of an earlier event.")
@click.option(
    "--limit",
    type=click.IntRange(1, limits.PAGE),
    default=50,
    show_default=True,
    help="At most this many past events; the newest, unless --after is given.",
)
@store_option
@utc_option
@json_option
def events_command(
    follow: bool, after: str | None, limit: int, store: str | None, utc: bool, as_json: bool
) -> None:
    """Show the latest transitions, or follow them.

    JSON is printed one event per line, in the shape of GET /api/v1/events.
    """
    with open_store(store) as app:
        show = _json_printer(app) if as_json else _text_printer(utc=utc)
        if follow:
            _follow(app, after, show)
            return
        past = _newest(app, limit) if after is None else _from(app, after, limit)
        if not past:
            note("No events.")
        show(past, after)


def _newest(app: Fairlane, limit: int) -> list[Event]:
    """Return the last events. A journal is bounded, and can only be read forwards."""
    kept: deque[Event] = deque(maxlen=limit)
    cursor: str | None = None
    while True:
        stretch = app.run_sync(app.backend.ops.events(cursor, limits.PAGE))
        if not stretch.events:
            return list(kept)
        kept.extend(stretch.events)
        cursor = stretch.cursor


def _from(app: Fairlane, after: str, limit: int) -> list[Event]:
    stretch = app.run_sync(app.backend.ops.events(after, limit))
    if stretch.reset:
        note("The events right after that cursor are no longer kept: some are missing here.")
    return stretch.events


def _follow(app: Fairlane, after: str | None, show: Show) -> None:
    ops = app.backend.ops
    cursor = app.run_sync(ops.tail()) if after is None else after
    try:
        while True:
            stretch = app.run_sync(ops.events(cursor, limits.PAGE))
            if stretch.reset:
                note("Some events were missed: they are no longer kept.")
            show(stretch.events, cursor)
            cursor = stretch.cursor
            if not stretch.events:
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return


def _json_printer(app: Fairlane) -> Show:
    def show(events: Sequence[Event], after: str | None) -> None:
        reports = {}
        task_ids = tasks_with_progress(events)
        for start in range(0, len(task_ids), limits.BATCH):
            batch = task_ids[start : start + limits.BATCH]
            for task in app.run_sync(app.backend.ops.get(batch)):
                report = None if task is None else encode_progress(task.progress)
                if task is not None and report is not None:
                    reports[task.task_id] = report
        for _, event in encode_events(events, after, reports):
            json_output.emit_line(event)

    return show


def _text_printer(*, utc: bool) -> Show:
    out = console()

    def show_one(event: Event) -> None:
        if utc:
            at = event.at.strftime("%Y-%m-%d %H:%M:%S.%fZ")
        else:
            at = event.at.astimezone().strftime("%H:%M:%S.%f")[: 12 if out.width >= 80 else 8]
        parts: list[str | Cell] = [Cell(at, "dim"), "  "]
        parts.append(Cell(f"{event.verb:<12} ", _STYLES.get(event.verb, "")))
        if event.task_id is None:
            parts.append(f"worker {event.worker_id}")
        else:
            parts.append(event.task_id)
            if out.width >= 80:
                parts.append(f"  {event.type or ''}")
            if out.width >= 100:
                level = "" if event.level is None else str(shown_as(event.level))
                parts.append(Cell(f"  {level}", "dim"))
            if event.seconds is not None and out.width >= 80:
                parts.append(Cell(f"  {span(event.seconds)}", "dim"))
        line = text(*parts)
        line.truncate(out.width, overflow="ellipsis")
        out.print(line)

    def show(events: Sequence[Event], after: str | None) -> None:  # noqa: ARG001
        for event in events:
            show_one(event)

    return show
