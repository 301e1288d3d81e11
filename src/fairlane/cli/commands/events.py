"""The journal: what happened, and what happens."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

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

POLL_SECONDS = 0.2
_STYLES = {
    "complete": "green",
    "fail": "red",
    "dead_letter": "red",
    "retry": "yellow",
    "claim": "cyan",
}


@click.command("events")
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens from now on.")
@click.option("--after", metavar="CURSOR", help="Begin after this cursor of an earlier event.")
@click.option(
    "--limit",
    type=click.IntRange(1, limits.PAGE),
    default=50,
    show_default=True,
    help="At most so many of what happened; the newest, unless --after is given.",
)
@store_option
@utc_option
@json_option
def events_command(
    follow: bool, after: str | None, limit: int, store: str | None, utc: bool, as_json: bool
) -> None:
    """Show what happened lately, or as it happens.

    JSON is printed one event a line.
    """
    show = _printer(utc=utc, as_json=as_json)
    with open_store(store) as app:
        if follow:
            _follow(app, after, show)
            return
        past = _newest(app, limit) if after is None else _from(app, after, limit)
        if not past:
            note("No events.")
        for event in past:
            show(event)


def _newest(app: Fairlane, limit: int) -> list[Event]:
    """The last events. Journals are read forwards, and bounded."""
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
        note("What came right after that cursor is no longer kept: something is missing here.")
    return stretch.events


def _follow(app: Fairlane, after: str | None, show: Callable[[Event], None]) -> None:
    ops = app.backend.ops
    cursor = app.run_sync(ops.tail()) if after is None else after
    try:
        while True:
            stretch = app.run_sync(ops.events(cursor, limits.PAGE))
            if stretch.reset:
                note("Some events were missed: they are no longer kept.")
            for event in stretch.events:
                show(event)
            cursor = stretch.cursor
            if not stretch.events:
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return


def _printer(*, utc: bool, as_json: bool) -> Callable[[Event], None]:
    if as_json:
        return lambda event: json_output.emit_line(json_output.event(event))
    out = console()

    def show(event: Event) -> None:
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

    return show
