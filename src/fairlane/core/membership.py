"""Tasks of a workflow: what each knows of it.

The tasks of a workflow have the ids that follow its own, so they are found without an index. No
task has the id of the workflow itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.dependencies import checked_parents
from fairlane.core.errors import InvalidWorkflow
from fairlane.core.ids import checked as checked_id
from fairlane.core.ids import numbered
from fairlane.core.inputs import Input, checked_inputs
from fairlane.core.model import Membership, NewTask, OnFailure
from fairlane.core.text import is_plain, shown


def ids_of(workflow_id: str, first: int = 1, last: int = limits.WORKFLOW_NODES) -> list[str]:
    """Return the ids that the tasks of a workflow have, if it has so many."""
    return [numbered(workflow_id, number) for number in range(first, last + 1)]


def checked_membership(
    workflow_id: object, membership: Membership | None, task_id: str | None
) -> Membership | None:
    """Return a task's place in a workflow. Raises InvalidWorkflow if it cannot have it."""
    if workflow_id is None and membership is None:
        return None
    if workflow_id is None or membership is None or task_id is None:
        raise InvalidWorkflow(
            "A task of a workflow has three things: workflow_id, its place in the workflow, and a "
            "task_id."
        )
    nodes: object = membership.nodes
    if type(nodes) is not int or not 1 <= nodes <= limits.WORKFLOW_NODES:
        raise InvalidWorkflow(
            f"A workflow has 1 to {limits.WORKFLOW_NODES} tasks. Got {shown(nodes)}."
        )
    checked_name(membership.node)
    if membership.name is not None:
        checked_name(membership.name)
    first = checked_id(workflow_id)
    ahead = int(checked_id(task_id).replace("-", ""), 16) - int(first.replace("-", ""), 16)
    if not 1 <= ahead % 2**128 <= nodes:
        raise InvalidWorkflow(
            f"The {nodes} tasks of workflow {first} have the ids that follow its own. Got "
            f"{shown(task_id)}."
        )
    return membership


def checked_name(name: object) -> str:
    """Return the name of a workflow, or of a task in it."""
    if is_plain(name) and name:
        return name
    raise InvalidWorkflow(
        f"The name of a workflow, and of a task in it, has 1 to {limits.NAME_LENGTH} characters, "
        f"without control characters. Got {shown(name)}."
    )


def checked_on_failure(policy: object) -> OnFailure:
    """Return what a caller means by `on_failure`."""
    try:
        return OnFailure(policy)  # type: ignore[arg-type]
    except ValueError:
        raise InvalidWorkflow(
            f"on_failure is {' or '.join(OnFailure)}. Got {shown(policy)}."
        ) from None


def placed(
    task: NewTask,
    workflow_id: str,
    number: int,
    membership: Membership,
    parents: Sequence[str],
    inputs: dict[str, Input],
) -> NewTask:
    """Return a submission as a task of a workflow, the first of which has the number 1.

    `parents`: what it depends on, besides what the submission says. `inputs` have positions in
    them.
    """
    if task.idempotency_key is not None or task.unique is not None or task.chosen:
        raise InvalidWorkflow(
            f"The task {membership.node} cannot have an idempotency key, be unique or have an id "
            "of its own: the tasks of a workflow are stored together, all or none."
        )
    task_id = numbered(workflow_id, number)
    depends_on = checked_parents((*parents, *task.depends_on))
    spec = replace(
        task.spec,
        workflow_id=workflow_id,
        membership=checked_membership(workflow_id, membership, task_id),
        depends_on=depends_on,
        inputs=checked_inputs(inputs, depends_on, task.payload),
    )
    return replace(task, task_id=task_id, spec=spec)
