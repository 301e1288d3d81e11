"""Submitting a graph: its tasks are named, and get their ids from the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.errors import InvalidWorkflow
from fairlane.core.ids import numbered
from fairlane.core.inputs import TaskInput, spliced
from fairlane.core.model import Membership, OnFailure
from fairlane.core.raw_json import members_of
from fairlane.core.states import State
from fairlane.core.text import shown
from fairlane.core.workflow_graph import GraphNode, order
from fairlane.wire.values import NAME_PATTERN, InputName, InputPath, Nesting, NodeName, TaskId

_NODES: Final = msgspec.Meta(extra_json_schema={"maxItems": limits.WORKFLOW_NODES})


class NodeInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter that is the result of another task (`node`), or the list of the results of
    several (`nodes`). `path`: keys and indexes that lead to a part of each result. `nesting`: as
    for the inputs of a task."""

    node: NodeName | None = None
    nodes: Annotated[tuple[NodeName, ...], _NODES] | None = None
    path: InputPath = ()
    nesting: Nesting = ()

    @property
    def parents(self) -> tuple[str, ...]:
        """Return the names of the tasks."""
        return (self.node,) if self.node is not None else self.nodes or ()


class NodeTerms(msgspec.Struct, frozen=True):
    """What a task of a graph has besides what any task has: its name, the names of tasks that it
    waits for without their results, and parameters that are results. `on_exit`: it runs when all
    others have ended, and this parameter is the list of their outcomes."""

    node: NodeName
    after: Annotated[tuple[NodeName, ...], _NODES] = ()
    inputs: Mapping[InputName, NodeInput] = {}
    depends_on: tuple[TaskId, ...] = ()
    on_exit: InputName | None = None


_REFUSED: Final = ("task_id", "workflow_id", "workflow", "idempotency_key", "unique")

UnreadNode = Annotated[
    msgspec.Raw,
    msgspec.Meta(
        extra_json_schema={
            "type": "object",
            "description": "A task as in `POST /api/v1/tasks/batch`, without task_id, workflow_id, "
            "workflow, idempotency_key and unique, and with these fields.",
            "required": ["node", "task_type"],
            "properties": {
                "node": {"type": "string", "minLength": 1, "description": "Its name."},
                "task_type": {"type": "string", "pattern": NAME_PATTERN},
                "after": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The names of tasks to wait for.",
                },
                "on_exit": {
                    "type": ["string", "null"],
                    "description": "It runs when all others have ended, whatever became of them: "
                    "the name of the parameter that is the list of their outcomes.",
                },
                "inputs": {
                    "type": "object",
                    "description": "Parameters that are results of other tasks, by their names: "
                    "of a task (`node`), or a list of those of several (`nodes`).",
                },
            },
        }
    ),
]


class WorkflowRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A graph of 1 to 999 tasks, stored all or none. `returns`: the name of the task whose result
    is the workflow's, or a list of names. `on_failure`: when a task has ended badly, those go on
    that do not depend on it, or all are cancelled. `workflow_id`: a UUID that the client chooses,
    so that the request can be repeated."""

    tasks: Annotated[
        tuple[UnreadNode, ...],
        msgspec.Meta(extra_json_schema={"minItems": 1, "maxItems": limits.WORKFLOW_NODES}),
    ]
    name: NodeName | None = None
    returns: NodeName | Annotated[tuple[NodeName, ...], _NODES] | None = None
    on_failure: OnFailure = OnFailure.CONTINUE
    workflow_id: TaskId | None = None

    def take(self) -> tuple[msgspec.Raw, ...]:
        """Return the tasks, and hold them no longer: they keep the whole request in memory."""
        taken, self.tasks = self.tasks, ()
        return taken

    @property
    def answering(self) -> tuple[str, ...]:
        """Return the names of the tasks whose results are the workflow's."""
        return (self.returns,) if isinstance(self.returns, str) else self.returns or ()


class PlannedNode(msgspec.Struct, frozen=True):
    """A task of a graph, with its name and as a request for a task."""

    node: str
    request: msgspec.Raw


class NodeAccepted(msgspec.Struct, frozen=True):
    """A task of a workflow that was stored."""

    node: str
    task_id: str
    status: State


class WorkflowAccepted(msgspec.Struct, frozen=True):
    """A workflow that was stored, and its tasks, in an order in which they can run."""

    workflow_id: str
    tasks: tuple[NodeAccepted, ...]


_terms: Final = msgspec.json.Decoder(NodeTerms)


def plan(
    request: WorkflowRequest, given: Sequence[msgspec.Raw], workflow_id: str
) -> list[PlannedNode]:
    """Return the tasks of a graph in an order in which they can run, as requests for tasks.

    Raises InvalidWorkflow.
    """
    terms = [_terms_of(number, raw) for number, raw in enumerate(given, 1)]
    last = _last(terms)
    names = [each.node for each in terms if each is not last]
    waits = [(*_parents(each), *(names if each is last else ())) for each in terms]
    places = order([GraphNode(each.node, waits[at]) for at, each in enumerate(terms)])
    ids = {terms[place].node: numbered(workflow_id, at) for at, place in enumerate(places, 1)}
    for name in request.answering:
        if name not in ids:
            raise InvalidWorkflow(f"returns names {shown(name)}, and no task has this name.")
    answering = set(request.answering)
    planned: list[PlannedNode] = []
    for place in places:
        each = terms[place]
        membership = Membership(
            each.node,
            len(terms),
            request.name,
            each.node in answering,
            request.on_failure,
            on_exit=each is last,
        )
        others = [ids[terms[at].node] for at in places if terms[at] is not last]
        made = {"workflow_id": workflow_id} | _made(each, ids, others, membership)
        planned.append(PlannedNode(each.node, _request(bytes(given[place]), each.node, made)))
    return planned


def _terms_of(number: int, raw: msgspec.Raw) -> NodeTerms:
    try:
        terms = _terms.decode(raw)
    except msgspec.ValidationError as error:
        raise InvalidWorkflow(f"Task {number} of the workflow does not fit: {error}.") from None
    for name, each in terms.inputs.items():
        if (each.node is None) == (each.nodes is None):
            raise InvalidWorkflow(
                f"The input {shown(name)} of the task {shown(terms.node)} has either node or nodes."
            )
    return terms


def _last(terms: Sequence[NodeTerms]) -> NodeTerms | None:
    """Return the task that runs when all others have ended, if there is one."""
    found = [each for each in terms if each.on_exit is not None]
    if len(found) > 1:
        raise InvalidWorkflow(
            f"One task runs at the end, not {', '.join(shown(each.node) for each in found[:10])}."
        )
    if found and found[0].on_exit in found[0].inputs:
        raise InvalidWorkflow(
            f"The parameter {shown(found[0].on_exit)} of the task {shown(found[0].node)} is in "
            "on_exit and in the inputs: give it once."
        )
    return found[0] if found else None


def _parents(terms: NodeTerms) -> tuple[str, ...]:
    sources = [name for each in terms.inputs.values() for name in each.parents]
    return tuple(dict.fromkeys([*sources, *terms.after]))


def _made(
    terms: NodeTerms, ids: Mapping[str, str], others: Sequence[str], membership: Membership
) -> dict[str, Any]:
    """Return what the server says of a task: its ids, its place and what it waits for."""
    inputs = {
        name: TaskInput(
            tuple(ids[parent] for parent in each.parents),
            each.nodes is not None,
            each.path,
            each.nesting or msgspec.UNSET,
        )
        for name, each in terms.inputs.items()
    }
    if terms.on_exit is not None:
        inputs[terms.on_exit] = TaskInput(tuple(others), many=True, outcomes=True)
    made: dict[str, Any] = {
        "task_id": ids[terms.node],
        "workflow": membership,
        "inputs": inputs,
        "depends_on": [*terms.depends_on, *(ids[name] for name in terms.after)],
    }
    if membership.on_exit:
        made["on_parent_failure"] = OnParentFailure.CONTINUE
    return made


def _request(raw: bytes, node: str, made: Mapping[str, Any]) -> msgspec.Raw:
    """Return a task of a graph as a request for a task."""
    members = members_of(raw)
    for name in _REFUSED:
        if name in members:
            raise InvalidWorkflow(
                f"The task {shown(node)} cannot have {name}: the tasks of a workflow are stored "
                "together, all or none, and get their ids from the server."
            )
    kept = {name: value for name, value in members.items() if name not in _OWN and name not in made}
    encoded = {name: msgspec.json.encode(value) for name, value in made.items()}
    return msgspec.Raw(spliced(b"{}", kept | encoded))


_OWN: Final = frozenset({"node", "after", "on_exit"})
