"""Commands `workflow resume` and `workflow delete`."""

from __future__ import annotations

import click

from fairlane.cli import json_output
from fairlane.cli.audit_log import record
from fairlane.cli.errors import CommandFailed
from fairlane.cli.options import json_option, store_option
from fairlane.cli.store import open_store
from fairlane.client.app import Fairlane
from fairlane.core.audit import Action
from fairlane.core.workflows import Workflow
from fairlane.wire.changes import changes_of

id_argument = click.argument("workflow_id", metavar="ID")


@click.command("resume")
@id_argument
@click.option(
    "--from", "from_node", metavar="NODE", help="Rerun this task and all below it, even completed."
)
@store_option
@json_option
def resume_command(
    workflow_id: str, from_node: str | None, store: str | None, as_json: bool
) -> None:
    """Run the tasks of a workflow again that failed or were cancelled.

    Tasks that depend on them wait for them again. Completed ones keep their results.
    """
    with open_store(store) as app:
        found_workflow(app, workflow_id)
        op = app.backend.ops.resume_workflow(workflow_id, from_node=from_node)
        answers = app.run_sync(op)
        applied = sum(answer.applied for answer in answers)
        if applied:
            record(app, Action.REPLAY, workflow_id)
    if as_json:
        json_output.emit(changes_of(answers))
    elif not answers:
        click.echo("Nothing to resume: no task of it has failed or was cancelled.")
    else:
        left = len(answers) - applied
        rest = f" {left:,} stay as they are: a parent has not completed." if left else ""
        click.echo(f"{applied:,} task{'' if applied == 1 else 's'} resumed.{rest}")


@click.command("delete")
@id_argument
@store_option
@json_option
def delete_command(workflow_id: str, store: str | None, as_json: bool) -> None:
    """Delete the tasks of a workflow that has ended."""
    with open_store(store) as app:
        found_workflow(app, workflow_id)
        answers = app.run_sync(app.backend.ops.delete_workflow(workflow_id))
        applied = sum(answer.applied for answer in answers)
        if applied:
            record(app, Action.DELETE, workflow_id)
    if as_json:
        json_output.emit(changes_of(answers))
    else:
        click.echo(f"{applied:,} task{'' if applied == 1 else 's'} deleted.")


def found_workflow(app: Fairlane, workflow_id: str) -> Workflow:
    """Return a workflow. Raises CommandFailed if there is none."""
    found = app.run_sync(app.backend.ops.workflow(workflow_id))
    if found is None:
        raise CommandFailed(
            f"There is no workflow {workflow_id}: its tasks were deleted, or never submitted here."
        )
    return found
