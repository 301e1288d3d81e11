"""`/api/v1/tasks`: submitting tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge, InvalidInput
from fairlane.core.estimates import Position
from fairlane.core.model import NewTask
from fairlane.core.priority import shown_as
from fairlane.core.states import State
from fairlane.core.workflow_records import is_whole
from fairlane.server.errors import BodyTooLarge, InvalidRequest
from fairlane.server.large_bodies import LARGE_BYTES, Pace, call_aside
from fairlane.server.operations import BATCH_BYTES, MEBIBYTE, SUBMIT, Call, Operation
from fairlane.server.requests import decode
from fairlane.server.responses import Headers, Response
from fairlane.server.services import Services
from fairlane.server.tasks import submission, template_of
from fairlane.wire.submission import (
    BatchAccepted,
    BatchItem,
    BatchRequest,
    DescribedTask,
    TaskAccepted,
    TaskRequest,
)
from fairlane.wire.times import iso, iso_of

REPLAYED: Final[Headers] = ((b"idempotent-replayed", b"true"),)

OPTIONS_BYTES: Final = 4 * MEBIBYTE
"""The maximum size of everything but the payloads in a batch: as objects, texts take several times
the memory of their JSON."""

_reader: Final = msgspec.json.Decoder(TaskRequest)


async def submit(services: Services, call: Call[TaskRequest, None]) -> Response:
    """Submit a task. A second request with the same idempotency key returns the same task."""
    request, key = call.body, key_of(call)
    type = request.defined_type
    template = services.templates.current(type) or await template_of(services, type)
    if request.payload_size <= LARGE_BYTES:  # the common case, kept fast
        new = request.task(template, key)
    else:
        new = await call_aside(request.payload_size, partial(request.task, template, key))
    with submission(call, (new,)) as (task,):
        await services.admit(call.identity, call.address, [task])
        accepted = await services.submissions.send(task)
        while accepted.known:
            answer = await _known(services, accepted.task_id)
            if answer is not None:
                return answer
            accepted = await services.submissions.send(task)
    queued = accepted.state is State.QUEUED
    place = services.places.add(task.queue, task.level) if queued else None
    priority = shown_as(task.level)
    body = TaskAccepted(
        task_id=accepted.task_id,
        status=accepted.state,
        priority=priority,
        effective_priority=priority,
        queue_position=None if place is None else place.position,
        estimated_wait_seconds=None if place is None else place.wait_seconds,
        created_at=iso_of(accepted.created_at),
        trace_id=_trace_of(task),
    )
    return Response(body, 201)


async def submit_batch(services: Services, call: Call[BatchRequest, None]) -> Response:
    """Submit up to 1,000 tasks, all or none. The response names invalid tasks by their index.
    Without their payloads, the tasks have at most 4 MiB together."""
    with submission(call, await new_tasks(services, call.body.take())) as tasks:
        await services.admit(call.identity, call.address, tasks)
        store = services.ops.submit_workflow if is_whole(tasks) else services.ops.submit
        accepted = await services.run(store(tasks))
    for task, each in zip(tasks, accepted, strict=True):
        if each.state is State.QUEUED and not each.known:
            services.places.add(task.queue, task.level)
    items = tuple(
        BatchItem(each.task_id, each.state, iso_of(each.created_at), each.known)
        for each in accepted
    )
    return Response(BatchAccepted(items), 201)


async def _known(services: Services, task_id: str) -> Response | None:
    """Return the task that has this key already; None if it was deleted a moment ago, which frees
    the key."""
    (task,) = await services.run(services.ops.get([task_id]))
    if task is None:
        return None
    place: Position | None = None
    if task.state is State.QUEUED:
        (place,) = await services.run(services.ops.position([task_id]))
    body = TaskAccepted(
        task_id=task.task_id,
        status=task.state,
        priority=shown_as(task.level),
        effective_priority=shown_as(task.effective_level),
        queue_position=None if place is None else place.position,
        estimated_wait_seconds=None if place is None else place.wait_seconds,
        created_at=iso(task.created_at),
        trace_id=task.trace_id,
    )
    return Response(body, 200, REPLAYED)


async def new_tasks(services: Services, given: Sequence[msgspec.Raw]) -> list[NewTask]:
    """Return the tasks of a batch, checked. Raises InvalidBatch."""
    if not given:
        raise InvalidRequest("A batch has at least one task.")
    if len(given) > limits.SUBMIT_BATCH:
        raise BatchTooLarge(
            f"At most {limits.SUBMIT_BATCH:,} tasks are submitted at once, not {len(given):,}."
        )
    tasks, errors, pace = [], [], Pace()
    options = 0
    for index, raw in enumerate(given):
        try:
            request: TaskRequest = decode(_reader, bytes(raw))
            options += memoryview(raw).nbytes - request.payload_size
            type = request.defined_type
            template = services.templates.current(type) or await template_of(services, type)
            make = partial(request.task, template)
            tasks.append(await call_aside(request.payload_size, make))
        except (InvalidRequest, InvalidInput, BodyTooLarge) as error:
            errors.append({"index": index, "code": error.code, "message": error.message})
        if options > OPTIONS_BYTES:
            raise BodyTooLarge(
                f"Without their payloads, these tasks have more than {OPTIONS_BYTES:,} bytes: "
                "submit fewer at once."
            )
        await pace.rest()
    if errors:
        count = "One task does" if len(errors) == 1 else f"{len(errors):,} tasks do"
        raise InvalidBatch(
            f"{count} not fit, so none was submitted: see details.", details={"errors": errors}
        )
    return tasks


class InvalidBatch(InvalidRequest):
    """Some of the tasks do not fit, so none was submitted."""

    code = "invalid_batch"


def _trace_of(task: NewTask) -> str:
    return task.spec.trace_id or task.task_id.replace("-", "")


def key_of(call: Call[Any, None]) -> str | None:
    """Return what the header Idempotency-Key says."""
    key = call.headers.get(b"idempotency-key")
    if key is None:
        return None
    try:
        return key.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("The header Idempotency-Key is not UTF-8.") from None


OPERATIONS: Final = [
    Operation(
        "POST",
        "/api/v1/tasks",
        submit,
        SUBMIT,
        SUBMIT,
        body=DescribedTask,
        returns=TaskAccepted,
        status=201,
        further=(200,),
    ),
    Operation(
        "POST",
        "/api/v1/tasks/batch",
        submit_batch,
        SUBMIT,
        SUBMIT,
        body=BatchRequest,
        most=BATCH_BYTES,
        returns=BatchAccepted,
        status=201,
    ),
]
