"""Submissions as `/api/v1` has them, and what they become."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.dependencies import OnParentFailure
from fairlane.core.errors import InvalidTask
from fairlane.core.model import NewTask
from fairlane.core.priority import DEFAULT
from fairlane.core.states import State
from fairlane.core.submission import (
    DEFAULT_QUEUE,
    UNSET,
    Form,
    checked_payload,
    new_form,
    new_task,
)
from fairlane.core.uniqueness import Mode, Unique
from fairlane.wire.policies import RetryView
from fairlane.wire.times import Moment
from fairlane.wire.values import (
    SOME,
    Capabilities,
    Delay,
    Due,
    Key,
    Level,
    NameText,
    Parents,
    Period,
    PriorityName,
    Retries,
    Tags,
    TagText,
    TaskId,
    Timeout,
    Trace,
)

JsonObject = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
"""An object that is stored as it was sent; empty when it was left out."""


class UniqueRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a task is the only one of its kind. `arguments`: the parameters that count, all if left
    out; `states`: in which it counts, all that are not terminal if left out."""

    arguments: Annotated[tuple[TagText, ...], SOME] | None = None
    states: Annotated[frozenset[State], SOME] | None = None
    period_seconds: Period | None = None
    mode: Mode = Mode.EXISTING

    def unique(self) -> Unique:
        """The same in the core's words."""
        given: dict[str, Any] = {} if self.states is None else {"states": self.states}
        return Unique(arguments=self.arguments, period=self.period_seconds, mode=self.mode, **given)


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task to be submitted. `type` and `payload` are other names of `task_type` and
    `parameters`."""

    task_type: NameText | None = None
    parameters: JsonObject = msgspec.field(default_factory=msgspec.Raw)
    type: NameText | None = None
    payload: JsonObject = msgspec.field(default_factory=msgspec.Raw)
    priority: PriorityName | Level = DEFAULT
    queue: NameText = DEFAULT_QUEUE
    required_capabilities: Capabilities = ()
    timeout_seconds: Timeout | msgspec.UnsetType | None = msgspec.UNSET
    max_retries: Retries | None = None
    delay_seconds: Delay = 0.0
    run_at: Due | None = None
    expires_at: Due | None = None
    idempotency_key: Key | None = None
    unique: bool | UniqueRequest | None = None
    tags: Tags | None = None
    depends_on: Parents = ()
    on_parent_failure: OnParentFailure = OnParentFailure.CANCEL
    trace_id: Trace | None = None
    traceparent: Trace | None = None
    retry_policy: RetryView | None = None
    task_id: TaskId | None = None
    """An id of one's own making, a UUID: the same again is answered with the task that is there."""

    def task(self, idempotency_key: str | None = None) -> NewTask:
        """What it asks for, checked. `idempotency_key`: from the header."""
        type = _one("task_type", self.task_type, "type", self.type) or ""
        payload = _one("parameters", _bytes(self.parameters), "payload", _bytes(self.payload))
        if idempotency_key is None and self._extras == NO_EXTRAS:
            # Nearly always: what such requests have in common need not be checked each time.
            form = _form(type, self.queue, self.priority)
            return form.filled(checked_payload(payload or b"{}", limits.PAYLOAD_BYTES))
        unique = self.unique
        return new_task(
            type,
            payload,
            queue=self.queue,
            priority=self.priority,
            required_capabilities=self.required_capabilities,
            max_retries=self.max_retries,
            timeout_seconds=(
                UNSET
                if isinstance(self.timeout_seconds, msgspec.UnsetType)
                else self.timeout_seconds
            ),
            delay_seconds=self.delay_seconds,
            run_at=self.run_at,
            expires_at=self.expires_at,
            idempotency_key=_one(
                "the header Idempotency-Key",
                idempotency_key,
                "idempotency_key",
                self.idempotency_key,
            ),
            unique=unique.unique() if isinstance(unique, UniqueRequest) else unique,
            tags=self.tags,
            depends_on=self.depends_on,
            on_parent_failure=self.on_parent_failure,
            trace_id=self.trace_id,
            traceparent=self.traceparent,
            retry_policy=None if self.retry_policy is None else self.retry_policy.policy(),
            task_id=self.task_id,
        )

    @property
    def _extras(self) -> tuple[Any, ...]:
        """What is asked for beyond a type, a payload, a queue and a priority."""
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
            self.trace_id,
            self.traceparent,
            self.retry_policy,
            self.task_id,
        )


NO_EXTRAS: Final = TaskRequest()._extras


@lru_cache(maxsize=1024)
def _form(type: str, queue: str, priority: str | int) -> Form:
    return new_form(type, queue=queue, priority=priority)


# What holds between fields; a struct's own description cannot say it.
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
"""One task of a batch: read by itself, so that each that does not fit can be named."""


class BatchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Up to 1,000 tasks to be submitted, all or none."""

    tasks: Annotated[
        tuple[Unread, ...],
        msgspec.Meta(extra_json_schema={"minItems": 1, "maxItems": limits.SUBMIT_BATCH}),
    ]


class TaskAccepted(msgspec.Struct, frozen=True):
    """A task that was accepted. Its position and its wait are estimates; None while it is not
    queued, or while nothing completes."""

    task_id: str
    status: State
    priority: str | int
    effective_priority: str | int
    queue_position: int | None
    estimated_wait_seconds: float | None
    created_at: Moment
    trace_id: str


class BatchItem(msgspec.Struct, frozen=True):
    """One task of a batch that was accepted. `known`: it was there before, under the same key."""

    task_id: str
    status: State
    created_at: Moment
    known: bool


class BatchAccepted(msgspec.Struct, frozen=True):
    """A batch that was accepted, in the order it was sent."""

    tasks: tuple[BatchItem, ...]


def _one(name: str, value: Any, other: str, alias: Any) -> Any:
    """One of two ways to say something."""
    if value is not None and alias is not None and value != alias:
        raise InvalidTask(f"Give either {name} or {other}, not both.")
    return value if alias is None else alias


def _bytes(raw: msgspec.Raw) -> bytes | None:
    return bytes(raw) or None
