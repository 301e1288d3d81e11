"""Commands `list`, `status` and `why`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from fairlane.cli import json_output
from fairlane.cli.errors import CommandFailed, note
from fairlane.cli.escapes import harmless_json, printable_lines
from fairlane.cli.options import (
    cursor_option,
    filter_options,
    json_option,
    limit_option,
    store_option,
    utc_option,
)
from fairlane.cli.render import (
    NONE,
    Cell,
    Column,
    Row,
    console,
    fields,
    span,
    state,
    table,
    text,
    when,
)
from fairlane.cli.store import open_store
from fairlane.client.app import Fairlane
from fairlane.core.filters import Filter, Page
from fairlane.core.model import Attempt, Task
from fairlane.core.priority import shown_as
from fairlane.wire.tasks import encode_task
from fairlane.wire.tasks_read import encode_page, encode_why

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COLUMNS = (
    Column("task"),
    Column("status"),
    Column("type", least=8),
    Column("priority", wide=80),
    Column("queue", wide=95, least=6),
    Column("runs", right=True, wide=75),
    Column("submitted", wide=90),
)

ATTEMPT_COLUMNS = (
    Column("", right=True),
    Column("outcome"),
    Column("took", right=True),
    Column("ended"),
    Column("error", least=16),
)
INDENT = "  "


@click.command("list")
@filter_options()
@limit_option
@cursor_option
@store_option
@utc_option
@json_option
def list_command(
    chosen: Filter, limit: int, cursor: str | None, store: str | None, utc: bool, as_json: bool
) -> None:
    """List tasks, newest first."""
    with open_store(store) as app:
        page = page_of(app, chosen, limit, cursor)
    show_page(page, utc=utc, as_json=as_json)


@click.command("status")
@click.argument("task_id", metavar="ID")
@store_option
@utc_option
@json_option
def status_command(task_id: str, store: str | None, utc: bool, as_json: bool) -> None:
    """Show everything about a task."""
    with open_store(store) as app:
        (task,) = app.run_sync(app.backend.ops.get([task_id]))
    if task is None:
        raise no_such_task(task_id)
    if as_json:
        json_output.emit(encode_task(task))
    else:
        show_task(task, utc=utc)


@click.command("why")
@click.argument("task_id", metavar="ID")
@store_option
@json_option
def why_command(task_id: str, store: str | None, as_json: bool) -> None:
    """Show why a waiting task waits."""
    with open_store(store) as app:
        ops = app.backend.ops
        (task,) = app.run_sync(ops.get([task_id]))
        reasons = app.run_sync(ops.why(task_id))
    if task is None or reasons is None:
        raise no_such_task(task_id)
    if as_json:
        json_output.emit(encode_why(reasons))
        return
    out = console()
    if not reasons:
        out.print(text("The task does not wait: it is ", state(task.state), "."))
    for line in fields([(each.code, each.message) for each in reasons], out.width):
        out.print(line)


def no_such_task(task_id: str) -> CommandFailed:
    return CommandFailed(f"There is no task {task_id}: it was deleted, or never submitted here.")


def page_of(app: Fairlane, chosen: Filter, limit: int, cursor: str | None) -> Page:
    """Return as many tasks as asked for: an engine may return short pages."""
    tasks: list[Task] = []
    while True:
        page = app.run_sync(app.backend.ops.page(chosen, limit - len(tasks), cursor))
        tasks += page.tasks
        cursor = page.next_cursor
        if cursor is None or len(tasks) >= limit:
            return Page(tasks, cursor)


def show_page(page: Page, *, utc: bool, as_json: bool) -> None:
    """Print a page of tasks."""
    if as_json:
        json_output.emit(encode_page(page))
        return
    if not page.tasks:
        note("No tasks.")
        return
    out = console()
    for line in table(COLUMNS, (_row(task, utc=utc) for task in page.tasks), out.width):
        out.print(line)
    if page.next_cursor is not None:
        note(f"There are more: --cursor {page.next_cursor}")


def _row(task: Task, *, utc: bool) -> Row:
    return (
        task.task_id,
        state(task.state),
        task.type,
        str(shown_as(task.level)),
        task.queue,
        Cell(str(task.attempt), "" if task.attempt else "dim"),
        Cell(when(task.created_at, utc=utc), "dim"),
    )


def show_task(task: Task, *, utc: bool) -> None:
    """Print everything about a task."""
    out = console()
    pairs = [(name, value) for name, value in _facts(task, utc=utc) if value not in {"", NONE}]
    for line in fields(pairs, out.width):
        out.print(line)
    for title, content in (("payload", task.payload), ("result", task.result)):
        if content is not None:
            pretty = harmless_json(msgspec.json.format(content, indent=2).decode("utf-8"))
            _show_below(out, title, (text(line) for line in pretty.splitlines()))
    if task.attempts:
        rows = [_attempt(each, utc=utc) for each in task.attempts]
        _show_below(out, "attempts", table(ATTEMPT_COLUMNS, rows, out.width - len(INDENT))[1:])
    if task.error is not None and task.error.traceback:
        _show_below(out, "traceback", map(text, printable_lines(task.error.traceback)))


def _show_below(out: Console, title: str, lines: Iterable[Text]) -> None:
    out.print(text(Cell(title, "dim")))
    for line in lines:
        out.print(text(INDENT) + line, soft_wrap=True)


def _attempt(attempt: Attempt, *, utc: bool) -> Row:
    took = None
    if attempt.started_at is not None:
        took = (attempt.ended_at - attempt.started_at).total_seconds()
    return (
        str(attempt.number),
        attempt.outcome,
        span(took),
        when(attempt.ended_at, utc=utc),
        NONE if attempt.error is None else attempt.error.message,
    )


def _facts(task: Task, *, utc: bool) -> Iterator[tuple[str, str | Cell]]:
    priority = str(shown_as(task.level))
    if task.effective_level != task.level:
        priority += f", counts as {shown_as(task.effective_level)} by now"
    yield "task", Cell(task.task_id, "bold")
    yield "type", task.type
    yield "status", state(task.state)
    if task.error is not None:
        error = ": ".join(filter(None, [task.error.code, task.error.message]))
        reason = f" ({task.error.reason})" if task.error.reason else ""
        yield "error", Cell(error + reason, "red")
    if task.progress is not None:
        percent = "" if task.progress.percent is None else f"{task.progress.percent:g} %"
        yield "progress", "  ".join(filter(None, [percent, task.progress.message]))
    yield "queue", task.queue
    yield "priority", priority
    yield (
        "runs",
        f"{task.attempt}, of which {task.retry_count} failed; at most {task.max_retries} retries",
    )
    yield "timeout", span(task.timeout)
    yield "submitted", when(task.created_at, utc=utc)
    if task.run_at != task.created_at:
        yield "due", when(task.run_at, utc=utc)
    yield "started", when(task.started_at, utc=utc)
    yield "ended", when(task.completed_at, utc=utc)
    yield "tried again", when(task.next_retry_at, utc=utc)
    yield "expires", when(task.expires_at, utc=utc)
    yield "worker", task.worker_id or ""
    yield "needs", ", ".join(task.capabilities)
    yield "tags", ", ".join(f"{name}={value}" for name, value in sorted(task.tags.items()))
    yield "key", task.idempotency_key or ""
    yield "owner", task.owner or ""
    yield "schedule", task.schedule_id or ""
    yield "tick", when(task.scheduled_for, utc=utc)
    yield "depends on", ", ".join(task.depends_on)
    yield "inputs", ", ".join(task.inputs)
    yield "trace", "" if task.traceparent is None else task.trace_id
