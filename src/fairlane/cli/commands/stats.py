"""Command `stats`: the store at a glance."""

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

_STATE_STYLES = {State.RETRYING: "yellow", State.FAILED: "red", State.DEAD_LETTER: "red"}
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
    """Yield the lines of the overview."""
    yield from table(BAND_COLUMNS, (_band(band, stats) for band in reversed(Band)), width)
    yield text()
    yield from fields(summary(stats), width)
    if stats.by_type:
        yield text()
        yield from types(stats, width)


def summary(stats: Stats) -> Iterator[tuple[str, str]]:
    """Yield names and values that are not in the tables."""
    workers, throughput, recovery = stats.workers, stats.throughput, stats.recovery
    states = [f"{stats.by_status[state]:,} {state}" for state in _STATES if stats.by_status[state]]
    yield "tasks", ", ".join(states) or "none"
    counts = [f"{workers.active:,} active"]
    for name in ("draining", "unhealthy", "dead"):
        number: int = getattr(workers, name)
        if number:
            counts.append(f"{number:,} {name}")
    slots = f"{workers.used_capacity:,} of {workers.total_capacity:,} slots in use"
    yield "workers", f"{', '.join(counts)}; {slots}"
    minute = f"{throughput.submitted_last_minute:,} submitted, "
    minute += f"{throughput.completed_last_minute:,} completed, "
    minute += f"{throughput.failed_last_minute:,} failed"
    if throughput.avg_task_duration_seconds is not None:
        minute += f"; {span(throughput.avg_task_duration_seconds)} a run"
    yield "last minute", minute
    yield "last hour", f"{throughput.completed_last_hour:,} completed"
    if stats.by_status[State.QUEUED]:
        half, most = span(stats.p50_age_seconds), span(stats.p95_age_seconds)
        yield "waiting", f"half at most {half}, 95 % at most {most}"
    hour = f"timeouts {recovery.timeouts_last_hour:,}, "
    hour += f"lost workers {recovery.lost_workers_last_hour:,}, "
    yield "last hour", f"{hour}stale results {recovery.stale_results_last_hour:,}"


def _band(band: Band, stats: Stats) -> Row:
    found = stats.queues[band]
    return (
        band.value,
        count(found.depth),
        span(found.oldest_age_seconds) if found.depth else Cell(NONE, "dim"),
    )


def types(stats: Stats, width: int) -> list[Text]:
    """Return the table of tasks by type and state."""
    rows: list[Row] = [
        (name, *(count(counts[state], _STATE_STYLES.get(state, "")) for state in _STATES))
        for name, counts in stats.by_type.items()
    ]
    return table(TYPE_COLUMNS, rows, width)
