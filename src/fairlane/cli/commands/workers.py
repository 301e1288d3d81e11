"""Commands `workers` and `drain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.errors import CommandFailed, UsageError, note
from fairlane.cli.options import json_option, store_option, utc_option
from fairlane.cli.render import Cell, Column, Row, console, names, table, text, when
from fairlane.cli.store import open_store
from fairlane.core.audit import Action
from fairlane.core.held_back import held_back
from fairlane.core.model import Worker, WorkerStatus
from fairlane.core.text import NAME_RULE, is_name, shown
from fairlane.core.why import NOBODY
from fairlane.wire.workers import WorkerState, workers_of

if TYPE_CHECKING:
    from rich.text import Text

WORKER_COLUMNS = (
    Column("worker"),
    Column("status"),
    Column("load", right=True),
    Column("host", least=10, wide=75),
    Column("queues", least=6, wide=95),
    Column("can", least=6, wide=120),
    Column("heartbeat", wide=85),
    Column("version", wide=110),
)
_STYLES = {
    WorkerStatus.ACTIVE: "green",
    WorkerStatus.DRAINING: "yellow",
    WorkerStatus.UNHEALTHY: "red",
    WorkerStatus.DEAD: "red",
}


@click.command("workers")
@store_option
@utc_option
@json_option
def workers_command(store: str | None, utc: bool, as_json: bool) -> None:
    """List the workers."""
    with open_store(store) as app:
        workers = app.run_sync(app.backend.ops.workers())
    workers.sort(key=lambda worker: worker.worker_id)
    if as_json:
        json_output.emit(workers_of(workers))
        return
    if not workers:
        note(NOBODY)
        return
    out = console()
    for line in table(
        WORKER_COLUMNS, (worker_row(worker, utc=utc) for worker in workers), out.width
    ):
        out.print(line)
    for line in held_back_lines(workers):
        out.print(line)


@click.command("drain")
@click.argument("worker_id", metavar="WORKER")
@store_option
@json_option
def drain_command(worker_id: str, store: str | None, as_json: bool) -> None:
    """Let a worker finish its running tasks and leave."""
    if not is_name(worker_id):
        raise UsageError(f"The id of a worker has {NAME_RULE}. Got {shown(worker_id)}.")
    with open_store(store) as app:
        known = app.run_sync(app.backend.ops.mark(worker_id, WorkerStatus.DRAINING))
        if known:
            record(app, Action.DRAIN, worker_id)
    if not known:
        raise CommandFailed(
            f"There is no worker {worker_id}, or it is dead: see `fairlane workers`."
        )
    if as_json:
        json_output.emit(WorkerState(worker_id, WorkerStatus.DRAINING))
    else:
        click.echo(f"Worker {worker_id} takes no more tasks.")


def held_back_lines(workers: Iterable[Worker]) -> Iterator[Text]:
    """Yield a line for each worker that holds types back, to be shown below the table."""
    for worker in workers:
        types = held_back(worker)
        if types and worker.status is not WorkerStatus.DEAD and not worker.lost:
            said = f"{worker.worker_id} holds back {names(types)}: handlers hang."
            yield text(Cell(said, "yellow"))


def worker_row(worker: Worker, *, utc: bool = False) -> Row:
    """Return a worker as a row of the table."""
    status = WorkerStatus.DEAD if worker.lost else worker.status
    return (
        worker.worker_id,
        Cell(status.value, _STYLES[status]),
        f"{len(worker.current_tasks)}/{worker.capacity}",
        worker.host,
        names(worker.queues),
        names(worker.capabilities),
        Cell(when(worker.last_heartbeat, utc=utc), "dim"),
        worker.version,
    )
