"""The store at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from fairlane.cli import json_output
from fairlane.cli.options import json_option, store_option
from fairlane.cli.render import NONE, Cell, Column, Row, console, count, fields, span, table, text
from fairlane.cli.store import open_store
from fairlane.core.priority import Band
from fairlane.core.states import State
from fairlane.core.stats import Stats

if TYPE_CHECKING:
    from rich.text import Text

_TROUBLE = {State.RETRYING: "yellow", State.FAILED: "red", State.DEAD_LETTER: "red"}
BAND_COLUMNS = (
    Column("priority"),
    Column("queued", right=True),
    Column("oldest", right=True),
)
TYPE_COLUMNS = (
    Column("type", least=10),
    Column("queued", right=True),
    Column("executing", right=True),
    Column("scheduled", right=True, wide=80),
    Column("retrying", right=True, wide=70),
    Column("completed", right=True),
    Column("failed", right=True, wide=80),
    Column("dead", right=True),
    Column("cancelled", right=True, wide=100),
)
_STATES = (
    State.QUEUED,
    State.EXECUTING,
    State.SCHEDULED,
    State.RETRYING,
    State.COMPLETED,
    State.FAILED,
    State.DEAD_LETTER,
    State.CANCELLED,
)


@click.command("stats")
@store_option
@json_option
def stats_command(store: str | None, as_json: bool) -> None:
    """Show depths, ages, workers and throughput."""
    with open_store(store) as app:
        stats = app.run_sync(app.backend.ops.stats())
    if as_json:
        json_output.emit(stats)
        return
    out = console()
    for line in overview(stats, out.width):
        out.print(line)


def overview(stats: Stats, width: int) -> Iterator[Text]:
    """The lines of it."""
    yield from table(BAND_COLUMNS, (_band(band, stats) for band in reversed(Band)), width)
    yield text()
    yield from fields(summary(stats), width)
    if stats.by_type:
        yield text()
        yield from types(stats, width)


def summary(stats: Stats) -> Iterator[tuple[str, str]]:
    """What there is to say besides the tables."""
    workers, flow, recovery = stats.workers, stats.throughput, stats.recovery
    states = [f"{stats.by_status[state]:,} {state}" for state in _STATES if stats.by_status[state]]
    yield "tasks", ", ".join(states) or "none"
    fleet = [f"{workers.active:,} active"]
    for name in ("draining", "unhealthy", "dead"):
        number: int = getattr(workers, name)
        if number:
            fleet.append(f"{number:,} {name}")
    slots = f"{workers.used_capacity:,} of {workers.total_capacity:,} slots in use"
    yield "workers", f"{', '.join(fleet)}; {slots}"
    told = f"{flow.submitted_last_minute:,} submitted, {flow.completed_last_minute:,} completed"
    told += f", {flow.failed_last_minute:,} failed"
    if flow.avg_task_duration_seconds is not None:
        told += f"; {span(flow.avg_task_duration_seconds)} a run"
    yield "last minute", told
    if stats.by_status[State.QUEUED]:
        half, most = span(stats.p50_age_seconds), span(stats.p95_age_seconds)
        yield "waiting", f"half at most {half}, 95 % at most {most}"
    told = f"timeouts {recovery.timeouts_last_hour:,}, "
    told += f"lost workers {recovery.lost_workers_last_hour:,}, "
    yield "last hour", f"{told}stale results {recovery.stale_results_last_hour:,}"


def _band(band: Band, stats: Stats) -> Row:
    found = stats.queues[band]
    return (
        band.value,
        count(found.depth),
        span(found.oldest_age_seconds) if found.depth else Cell(NONE, "dim"),
    )


def types(stats: Stats, width: int) -> list[Text]:
    """Tasks by type and state."""
    rows: list[Row] = [
        (name, *(count(counts[state], _TROUBLE.get(state, "")) for state in _STATES))
        for name, counts in stats.by_type.items()
    ]
    return table(TYPE_COLUMNS, rows, width)
