"""The record of a workflow: what its tasks do not tell, and what is left of it when they are gone.

A record is a document, stored in the step that stores the tasks (`submit_along`): both, or neither.
It is dated by that moment, so that records are listed by time. Beside it stands a second document
as long as the workflow runs, dated by the time at which somebody has to look at it next. These are
of the same kind, so that one step can write both, and dated before the year 1 of all records (see
`watched_at`): the first documents of the kind are those that are due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, Overtaken, rewrites
from fairlane.core.errors import InvalidWorkflow, TaskIdConflict
from fairlane.core.flow import Flow, Op
from fairlane.core.model import Accepted, Membership, NewTask, Task, microseconds_of
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.workflows import Workflow, WorkflowState

KIND: Final = "workflow"
ENDS: Final = "#ends"
"""The document with the counts of all ends. No workflow could have this id."""
_WATCH: Final = "#watch"
_FAR: Final = 2**53
"""Engines keep times as numbers that are exact up to this one."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of a workflow besides its tasks.

    `queues` and `tags`: the queues of its tasks, and the tags that all of them have. `state`,
    `ended_at` and `counts` (of its tasks by state) are those of its end, once that was noticed.
    """

    name: str | None
    tasks: int
    owner: str | None = None
    queues: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    state: WorkflowState = WorkflowState.RUNNING
    ended_at: int | None = None
    counts: dict[State, int] = {}

    @property
    def is_open(self) -> bool:
        """Return whether nobody has noticed its end."""
        return self.state is WorkflowState.RUNNING


class Recorded(Documents, Protocol):
    """What an engine implements besides documents."""

    def submit_along(
        self, tasks: Sequence[NewTask], kind: str, puts: Sequence[Document]
    ) -> Flow[list[Accepted] | None]: ...
    def submit(self, tasks: Sequence[NewTask]) -> Op[list[Accepted]]: ...
    def heads(self, task_ids: Sequence[str]) -> Op[list[Task | None]]: ...


# -- as documents ----------------------------------------------------------------------------------

_decoder: Final = msgspec.json.Decoder(Record)


def record_of(stored: Document | None) -> Record | None:
    """Return a stored record; None if there is none, or another version has stored it otherwise."""
    if stored is None:
        return None
    try:
        return _decoder.decode(stored.value)
    except msgspec.MsgspecError:
        return None


def document_of(
    workflow_id: str, record: Record, at: int, version: int = 0, expires_at: int | None = None
) -> Document:
    """Return a record as it is stored. `at`: when the workflow was submitted."""
    value = msgspec.json.encode(record)
    return Document(workflow_id, value, at, expires_at, version=version)


def watch_of(workflow_id: str, at: int, pause: float, version: int = 0) -> Document:
    """Return the document that says when to look at a workflow, and after what pause."""
    value = msgspec.json.encode(pause)
    return Document(watch_id(workflow_id), value, at - _FAR, version=version)


def watch_id(workflow_id: str) -> str:
    """Return the id of the document that says when to look at a workflow."""
    return workflow_id + _WATCH


def watched_id(watch: Document) -> str:
    """Return the id of the workflow that a document says when to look at."""
    return watch.id.removesuffix(_WATCH)


def watched_at(watch: Document) -> int:
    """Return when to look at a workflow."""
    return watch.at + _FAR


def pause_after(watch: Document, most: float = limits.WORKFLOW_WATCH_SECONDS_MOST) -> float:
    """Return after what pause to look again, which grows."""
    try:
        before = msgspec.json.decode(watch.value, type=float)
    except msgspec.MsgspecError:
        before = limits.WORKFLOW_WATCH_SECONDS
    return min(before * 1.5, most)


# -- rules -----------------------------------------------------------------------------------------


def is_whole(tasks: Sequence[NewTask]) -> bool:
    """Return whether tasks are all tasks of a workflow, and no others."""
    first = tasks[0].spec if tasks else None
    if first is None or first.membership is None or first.membership.nodes != len(tasks):
        return False
    whole = (first.workflow_id, *_terms(first.membership))
    return all(
        task.spec.membership is not None
        and (task.spec.workflow_id, *_terms(task.spec.membership)) == whole
        for task in tasks
    ) and len({task.task_id for task in tasks}) == len(tasks)


def _terms(membership: Membership) -> tuple[object, ...]:
    """Return what all tasks of a workflow have in common."""
    return (membership.nodes, membership.name, membership.on_failure)


def new_record(tasks: Sequence[NewTask]) -> tuple[str, Record]:
    """Return the id of a workflow and its record. Raises InvalidWorkflow."""
    if not is_whole(tasks):
        raise InvalidWorkflow(
            "A workflow is submitted with all of its tasks at once, which say the same of it."
        )
    first = tasks[0].spec
    assert first.workflow_id is not None
    assert first.membership is not None
    tags = dict(first.tags)
    for task in tasks:
        tags = dict(tags.items() & task.spec.tags.items())
    record = Record(
        name=first.membership.name,
        tasks=len(tasks),
        owner=first.owner,
        queues=tuple(sorted({task.queue for task in tasks})),
        tags=tags,
    )
    return first.workflow_id, record


def ended(record: Record, found: Workflow, now: int) -> Record:
    """Return the record of a workflow that has ended."""
    at = now if found.ended_at is None else microseconds_of(found.ended_at)
    return msgspec.structs.replace(record, state=found.state, ended_at=at, counts=counts_of(found))


def reopened(record: Record) -> Record:
    """Return the record of a workflow that runs again."""
    return msgspec.structs.replace(record, state=WorkflowState.RUNNING, ended_at=None, counts={})


def counts_of(found: Workflow) -> dict[State, int]:
    """Return how many tasks of a workflow are in which state."""
    return dict(Counter(node.state for node in found.nodes))


# -- submission ------------------------------------------------------------------------------------


@rewrites
def submit_workflow(self: Recorded, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    workflow_id, record = new_record(tasks)
    now, (stored, watch) = yield from self.read_documents(
        KIND, [workflow_id, watch_id(workflow_id)]
    )
    before = record_of(stored)
    if before is not None and (before.name, before.tasks) != (record.name, record.tasks):
        raise TaskIdConflict(
            f"The workflow {workflow_id} was submitted before, as another one: make a new graph."
        )
    if stored is not None:
        heads = yield from self.heads([task.task_id for task in tasks]).flow()
        if all(heads):
            return (yield from self.submit(tasks).flow())
    pause = limits.WORKFLOW_WATCH_SECONDS
    puts = [
        document_of(workflow_id, record, now, 0 if stored is None else stored.version),
        watch_of(
            workflow_id,
            now + int(pause * MICROSECONDS),
            pause,
            0 if watch is None else watch.version,
        ),
    ]
    answers = yield from self.submit_along(tasks, KIND, puts)
    if answers is None:
        raise Overtaken
    return answers
