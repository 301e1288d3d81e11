"""Submissions: the requests of `/api/v1`, and the new tasks that they describe."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.definitions import Template
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.errors import InvalidTask
from fairlane.core.inputs import TaskInput, named_inputs, numbered_inputs
from fairlane.core.model import Membership, NewTask, OnFailure
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.submission import checked_json, new_task
from fairlane.core.uniqueness import Hold, Mode, Unique, unmask
from fairlane.wire.policies import RetryView
from fairlane.wire.times import Moment, iso_of
from fairlane.wire.values import (
    SOME,
    Capabilities,
    Delay,
    Due,
    InputName,
    InputPath,
    Key,
    Level,
    NameText,
    Nesting,
    NodeName,
    Nodes,
    Parents,
    Period,
    PriorityName,
    Repeated,
    Retries,
    Tags,
    TagText,
    TaskId,
    Timeout,
    Trace,
)

JsonObject = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
"""A JSON object that is stored as it was sent; empty if it was left out."""


class UniqueRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes a task unique. `arguments`: the parameters to compare, all if left out; `states`:
    the states in which another task blocks it, all that are not terminal if left out."""

    arguments: Annotated[tuple[TagText, ...], SOME] | None = None
    states: Annotated[frozenset[State], SOME] | None = None
    period_seconds: Period | None = None
    mode: Mode = Mode.EXISTING

    def unique(self) -> Unique:
        """Return the same for the core."""
        given: dict[str, Any] = {} if self.states is None else {"states": self.states}
        return Unique(arguments=self.arguments, period=self.period_seconds, mode=self.mode, **given)


class InputRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter that is the result of another task. `parents`: the task, or with `many` any
    number of tasks, whose results are a list then. `path`: keys and indexes that lead to a part of
    each result. `nesting`: the list has lists in it. In the order of all elements, -1 stands for a
    result, and any other number for a list of that many elements. `outcomes`, with `many`: the list
    has an object for each task, with `node`, `task_id`, `state`, `result`, `error` and `code`."""

    parents: Repeated
    many: bool = False
    path: InputPath = ()
    nesting: Nesting = ()
    outcomes: bool = False

    def input(self) -> TaskInput:
        """Return the same for the core."""
        return TaskInput(
            self.parents,
            self.many,
            self.path,
            self.nesting or msgspec.UNSET,
            self.outcomes or msgspec.UNSET,
        )


class MembershipRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of a task in its workflow. `node`: its name there; `nodes`: how many tasks the
    workflow has; `name`: the workflow's; `answers`: its result is the workflow's, or one of those
    of which the workflow's is a list; `on_failure`: what becomes of the workflow when a task ends
    badly; `on_exit`: it runs when all others have ended, whatever became of them."""

    node: NodeName
    nodes: Nodes
    name: NodeName | None = None
    answers: bool = False
    on_failure: OnFailure = OnFailure.CONTINUE
    on_exit: bool = False

    def membership(self) -> Membership:
        """Return the same for the core."""
        return Membership(
            self.node, self.nodes, self.name, self.answers, self.on_failure, self.on_exit
        )


Inputs = Annotated[
    Mapping[InputName, InputRequest],
    msgspec.Meta(extra_json_schema={"maxProperties": limits.INPUTS}),
]


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new task. `type` and `payload` are other names of `task_type` and `parameters`."""

    task_type: NameText | None = None
    parameters: JsonObject = msgspec.field(default_factory=msgspec.Raw)
    type: NameText | None = None
    payload: JsonObject = msgspec.field(default_factory=msgspec.Raw)
    priority: PriorityName | Level | msgspec.UnsetType = msgspec.UNSET
    queue: NameText | msgspec.UnsetType = msgspec.UNSET
    required_capabilities: Capabilities | msgspec.UnsetType = msgspec.UNSET
    timeout_seconds: Timeout | msgspec.UnsetType | None = msgspec.UNSET
    max_retries: Retries | None = None
    delay_seconds: Delay | msgspec.UnsetType = msgspec.UNSET
    run_at: Due | None = None
    expires_at: Due | None = None
    idempotency_key: Key | None = None
    unique: bool | UniqueRequest | None = None
    tags: Tags | None = None
    depends_on: Parents = ()
    on_parent_failure: OnParentFailure = OnParentFailure.CANCEL
    inputs: Inputs | None = None
    """Parameters that are results of other tasks. The task depends on these tasks."""
    trace_id: Trace | None = None
    traceparent: Trace | None = None
    retry_policy: RetryView | None = None
    task_id: TaskId | None = None
    """A UUID that the client chooses. If a task has this id already, that one is returned, or the
    request is refused if its type or parameters differ."""
    workflow_id: TaskId | None = None
    """The workflow that it is a task of: `task_id` is one of the ids that follow it."""
    workflow: MembershipRequest | None = None
    """Its place in that workflow."""

    use_definition: bool = True
    """False: what workers have published about the type neither adds to the task nor checks it."""

    @property
    def payload_size(self) -> int:
        """How many bytes the payload has."""
        return memoryview(self.parameters).nbytes or memoryview(self.payload).nbytes

    @property
    def defined_type(self) -> str | None:
        """The type whose definition counts; None if no definition does."""
        return (self.task_type or self.type) if self.use_definition else None

    def task(self, template: Template | None = None, idempotency_key: str | None = None) -> NewTask:
        """Return the new task, checked. `template`: that of `defined_type`, if it is defined;
        `idempotency_key`: from the header."""
        type = _one("task_type", self.task_type, "type", self.type) or ""
        payload, alias = bytes(self.parameters), bytes(self.payload)
        if alias:
            payload = _one("parameters", payload or None, "payload", alias)
        template = template or _undefined(type)
        task = self._new_task(type, payload or b"{}", template, idempotency_key)
        template.check(task.payload, task.spec.inputs)
        return task

    def _new_task(
        self, type: str, payload: bytes, template: Template, idempotency_key: str | None
    ) -> NewTask:
        if idempotency_key is None and self._extras == NO_EXTRAS:
            # The usual case: what such requests have in common is checked once.
            queue = None if isinstance(self.queue, msgspec.UnsetType) else self.queue
            priority = None if isinstance(self.priority, msgspec.UnsetType) else self.priority
            form = template.form(queue, priority)
            if form is not None:
                return form.filled(checked_json(payload, limits.PAYLOAD_BYTES))
        unique = self.unique
        said = {
            "queue": self.queue,
            "priority": self.priority,
            "required_capabilities": self.required_capabilities,
            "max_retries": self.max_retries,
            "timeout_seconds": self.timeout_seconds,
            "delay_seconds": self.delay_seconds,
            "run_at": self.run_at,
            "unique": unique.unique() if isinstance(unique, UniqueRequest) else unique,
            "tags": self.tags,
            "retry_policy": self.retry_policy and self.retry_policy.policy(),
        }
        given = {
            name: value
            for name, value in said.items()
            # Only a time limit can be null: the others are left out then.
            if value is not msgspec.UNSET and (value is not None or name == "timeout_seconds")
        }
        sources = {name: each.input() for name, each in (self.inputs or {}).items()}
        parents, inputs = numbered_inputs(sources, self.depends_on)
        return new_task(
            type,
            payload,
            **template.options(given),
            expires_at=self.expires_at,
            idempotency_key=_one(
                "the header Idempotency-Key",
                idempotency_key,
                "idempotency_key",
                self.idempotency_key,
            ),
            depends_on=parents,
            on_parent_failure=self.on_parent_failure,
            inputs=inputs,
            trace_id=self.trace_id,
            traceparent=self.traceparent,
            task_id=self.task_id,
            workflow_id=self.workflow_id,
            membership=None if self.workflow is None else self.workflow.membership(),
        )

    @property
    def _extras(self) -> tuple[Any, ...]:
        """Return all fields except type, payload, queue and priority."""
        return (
            self.required_capabilities,
            self.timeout_seconds,
            self.max_retries,
            self.delay_seconds,
            self.run_at,
            self.expires_at,
            self.idempotency_key,
            self.unique,
            self.tags,
            self.depends_on,
            self.on_parent_failure,
            self.inputs,
            self.trace_id,
            self.traceparent,
            self.retry_policy,
            self.task_id,
            self.workflow_id,
            self.workflow,
        )


NO_EXTRAS: Final = TaskRequest()._extras


@lru_cache(maxsize=1024)
def _undefined(type: str) -> Template:
    """Return the template of a type that no worker has published."""
    return Template(type)


def encode_submission(task: NewTask) -> dict[str, Any]:
    """Return a new task as a request body. Everything in it is resolved, except a delay."""
    spec = task.spec
    request: dict[str, Any] = {
        "task_id": task.task_id,
        "task_type": task.type,
        "parameters": msgspec.Raw(task.payload),
        "queue": task.queue,
        "priority": task.level,
        "max_retries": task.max_retries,
        **({"timeout_seconds": task.timeout} if spec.timed else {}),
        "retry_policy": RetryView.of(spec.retry),
        "use_definition": False,
    }
    optional = {
        "required_capabilities": task.capabilities,
        "delay_seconds": task.delay,
        "run_at": None if task.run_at is None else iso_of(task.run_at),
        "expires_at": None if task.expires_at is None else iso_of(task.expires_at),
        "idempotency_key": task.idempotency_key,
        "unique": None if task.unique is None else _encode_unique(task.unique),
        "tags": spec.tags,
        "depends_on": spec.depends_on,
        "on_parent_failure": OnParentFailure.CONTINUE if spec.tolerant else None,
        "inputs": named_inputs(spec.inputs, spec.depends_on),
        "workflow_id": spec.workflow_id,
        "workflow": spec.membership,
        "trace_id": spec.trace_id,
        "traceparent": spec.traceparent,
    }
    return request | {name: value for name, value in optional.items() if value}


def _encode_unique(hold: Hold) -> dict[str, Any]:
    return {
        "arguments": hold.arguments,
        "states": sorted(unmask(hold.states)),
        "period_seconds": None if hold.period is None else hold.period / MICROSECONDS,
        "mode": hold.mode,
    }


# Rules between fields, which the schema of a struct cannot express.
_RULES: Final[dict[str, Any]] = {
    "allOf": [
        {
            "oneOf": [
                {"required": [name], "properties": {name: {"type": "string"}}}
                for name in ("task_type", "type")
            ]
        },
        {"not": {"required": ["parameters", "payload"]}},
        {
            "not": {
                "required": ["run_at", "delay_seconds"],
                "properties": {
                    "run_at": {"type": "string"},
                    "delay_seconds": {"exclusiveMinimum": 0},
                },
            }
        },
    ]
}
DescribedTask = Annotated[TaskRequest, msgspec.Meta(extra_json_schema=_RULES)]

Unread = Annotated[
    msgspec.Raw,
    msgspec.Meta(extra_json_schema={"$ref": "#/components/schemas/TaskRequest", **_RULES}),
]
"""One task of a batch. Each is decoded by itself, so that the response can name invalid ones."""


class BatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Up to 1,000 new tasks, stored all or none."""

    tasks: Annotated[
        tuple[Unread, ...],
        msgspec.Meta(extra_json_schema={"minItems": 1, "maxItems": limits.SUBMIT_BATCH}),
    ]

    def take(self) -> tuple[msgspec.Raw, ...]:
        """Return the tasks, and hold them no longer: they keep the whole request in memory."""
        taken, self.tasks = self.tasks, ()
        return taken


class TaskAccepted(msgspec.Struct, frozen=True):
    """A task that was stored. Its position and wait are estimates. Both are null if it is not
    queued; the wait is also null if nobody can know it yet."""

    task_id: str
    status: State
    priority: str | int
    effective_priority: str | int
    queue_position: int | None
    estimated_wait_seconds: float | None
    created_at: Moment
    trace_id: str


class BatchItem(msgspec.Struct, frozen=True):
    """One task of a batch. `known`: it existed before, with the same key."""

    task_id: str
    status: State
    created_at: Moment
    known: bool


class BatchAccepted(msgspec.Struct, frozen=True):
    """The tasks of a batch, in the order of the request."""

    tasks: tuple[BatchItem, ...]


def _one(name: str, value: Any, other: str, alias: Any) -> Any:
    """Return the value that was given under one of two names. Raises InvalidTask if they differ."""
    if value is not None and alias is not None and value != alias:
        raise InvalidTask(f"Give either {name} or {other}, not both.")
    return value if alias is None else alias
