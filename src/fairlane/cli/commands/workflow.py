"""Command `workflow`: tasks that were stored together."""

from __future__ import annotations

from collections.abc import Iterator

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.commands.workflow_changes import (
    delete_command,
    found_workflow,
    id_argument,
    resume_command,
)
from fairlane.cli.options import cursor_option, json_option, store_option, utc_option
from fairlane.cli.render import NONE, Column, Row, console, state, table, when
from fairlane.cli.store import open_store
from fairlane.core import limits
from fairlane.core.audit import Action
from fairlane.core.states import LIVE
from fairlane.core.workflow_list import WorkflowPage
from fairlane.core.workflows import Workflow, WorkflowState
from fairlane.runtime.mermaid import mermaid
from fairlane.wire.changes import changes_of
from fairlane.wire.workflows import WorkflowList, WorkflowView

COLUMNS = (
    Column("node", least=12),
    Column("type", least=8, wide=90),
    Column("state"),
    Column("after", least=12),
    Column("started", wide=100),
    Column("ended", wide=75),
    Column("task", wide=110),
    Column("error", least=12),
)

LIST_COLUMNS = (
    Column("workflow", least=36),
    Column("name", least=8),
    Column("state"),
    Column("ended"),
    Column("submitted", wide=75),
    Column("at", wide=100),
)


@click.group("workflow")
def workflow_command() -> None:
    """List, show, cancel, resume or delete tasks that were stored together."""


workflow_command.add_command(resume_command)
workflow_command.add_command(delete_command)


@workflow_command.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice([state.value for state in WorkflowState]),
    multiple=True,
    help="Only those in this state; several times for several states.",
)
@click.option("--name", help="Only those with this name.")
@click.option(
    "--limit",
    type=click.IntRange(1, limits.WORKFLOW_PAGE),
    default=50,
    help="At most this many.",
    show_default=True,
)
@cursor_option
@store_option
@utc_option
@json_option
def list_command(
    states: tuple[str, ...],
    name: str | None,
    limit: int,
    cursor: str | None,
    store: str | None,
    utc: bool,
    as_json: bool,
) -> None:
    """List workflows, newest first."""
    with open_store(store) as app:
        page = app.workflows_sync(limit, cursor, state=states or None, name=name)
    if as_json:
        json_output.emit(WorkflowList.of(page))
    else:
        _show_list(page, utc=utc)


@workflow_command.command("show")
@id_argument
@click.option("--mermaid", "drawn", is_flag=True, help="Print a Mermaid flowchart.")
@store_option
@utc_option
@json_option
def show_command(
    workflow_id: str, drawn: bool, store: str | None, utc: bool, as_json: bool
) -> None:
    """Show a workflow and its tasks, those first that can run first."""
    with open_store(store) as app:
        found = found_workflow(app, workflow_id)
    if as_json:
        json_output.emit(WorkflowView.of(found))
    elif drawn:
        click.echo(mermaid(found))
    else:
        _show(found, utc=utc)


@workflow_command.command("cancel")
@id_argument
@store_option
@json_option
def cancel_command(workflow_id: str, store: str | None, as_json: bool) -> None:
    """Cancel the tasks of a workflow that have not ended.

    Running tasks are cancelled too, and their results are refused.
    """
    with open_store(store) as app:
        found_workflow(app, workflow_id)
        answers = app.run_sync(app.backend.ops.cancel_workflow(workflow_id))
        applied = sum(answer.applied for answer in answers)
        if applied:
            record(app, Action.CANCEL, workflow_id)
    if as_json:
        json_output.emit(changes_of(answers))
    else:
        click.echo(f"{applied:,} task{'' if applied == 1 else 's'} cancelled.")


def _show_list(page: WorkflowPage, *, utc: bool) -> None:
    if not page.workflows:
        click.echo("No workflows.")
    else:
        out = console()
        for line in table(LIST_COLUMNS, _list_rows(page, utc=utc), out.width):
            out.print(line)
    if page.next_cursor is not None:
        click.echo(f"There may be more: --cursor {page.next_cursor}")


def _list_rows(page: WorkflowPage, *, utc: bool) -> Iterator[Row]:
    for each in page.workflows:
        ended = sum(count for state, count in each.counts.items() if state not in LIVE)
        yield (
            each.workflow_id,
            each.name or NONE,
            str(each.state),
            f"{ended}/{each.tasks}",
            when(each.created_at, utc=utc),
            when(each.ended_at, utc=utc),
        )


def _show(found: Workflow, *, utc: bool) -> None:
    gone = "" if found.complete else " Some of its tasks have been deleted."
    click.echo(f"{found.name or found.workflow_id}: {found.state}.{gone}")
    out = console()
    for line in table(COLUMNS, _rows(found, utc=utc), out.width):
        out.print(line)


def _rows(found: Workflow, *, utc: bool) -> Iterator[Row]:
    names = {node.task_id: node.name for node in found.nodes}
    for node in found.nodes:
        yield (
            node.name,
            node.type,
            state(node.state),
            ", ".join(names.get(parent, parent) for parent in node.parents) or NONE,
            when(node.started_at, utc=utc),
            when(node.ended_at, utc=utc),
            node.task_id,
            node.error or "",
        )
