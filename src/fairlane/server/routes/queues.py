"""`/api/v1/{queues,types,control}`: what flows, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.core.audit import Action
from fairlane.core.breakdown import queues_of, types_of
from fairlane.core.flow import Op
from fairlane.core.lanes import UNRULED, Controls, checked_scope
from fairlane.server.answers import Answer
from fairlane.server.operations import ADMIN, READ, Call, Operation
from fairlane.server.services import Services
from fairlane.wire.limits import (
    ControlPatch,
    ControlsView,
    QueueList,
    QueueState,
    TypeList,
    TypePatch,
    TypeRules,
    controls_of,
    queue_of,
    type_of,
    type_rules,
)


async def queues(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """All queues, with what is in them."""
    facts = await services.run(services.ops.facts())
    return Answer(QueueList(tuple(map(queue_of, queues_of(facts)))))


async def pause(services: Services, call: Call[None, None]) -> Answer:
    """Stop claims of a queue; what runs goes on."""
    return await _set_pause(services, call.path["queue"], paused=True)


async def resume(services: Services, call: Call[None, None]) -> Answer:
    """Let claims of a queue go on."""
    return await _set_pause(services, call.path["queue"], paused=False)


async def _set_pause(services: Services, queue: str, *, paused: bool) -> Answer:
    controls = await services.run(services.ops.pause(paused, queue=queue))
    return Answer(QueueState(queue=queue, paused=queue in controls.paused_queues))


async def types(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """All types, with what is set for them and how many tasks of them there are."""
    facts = await services.run(services.ops.facts())
    return Answer(TypeList(tuple(map(type_of, types_of(facts)))))


async def patch_type(services: Services, call: Call[TypePatch, None]) -> Answer:
    """Set what is given for a type. It holds across all workers, from the next claim on."""
    patch, ops = call.body, services.ops
    type = call.path["type"]
    checked_scope(type)
    limits: dict[str, Any] = {
        "rate": patch.rate,
        "concurrency": patch.most,
        "breaker": patch.breaker,
    }
    changes = []
    if any(limit is not None for limit in limits.values()):
        changes.append(ops.limit(type, **limits))
    if not isinstance(patch.paused, msgspec.UnsetType):
        changes.append(ops.pause(patch.paused, type=type))
    controls = await _set(services, changes)
    return Answer(type_rules(type, controls.types.get(type, UNRULED)))


async def control(services: Services, call: Call[None, None]) -> Answer:  # noqa: ARG001
    """What is paused and limited."""
    return Answer(controls_of(await services.run(services.ops.controls())))


async def set_control(services: Services, call: Call[ControlPatch, None]) -> Answer:
    """Pause or resume everything, or limit the rate of all types together."""
    patch, ops = call.body, services.ops
    changes = []
    if patch.rate is not None:
        changes.append(ops.limit(None, rate=patch.rate))
    if not isinstance(patch.paused, msgspec.UnsetType):
        changes.append(ops.pause(patch.paused))
    return Answer(controls_of(await _set(services, changes)))


async def _set(services: Services, changes: Sequence[Op[Controls]]) -> Controls:
    """Make changes, limits first: if one of those cannot be, nothing is changed."""
    for change in changes[:-1]:
        await services.run(change)
    return await services.run(changes[-1] if changes else services.ops.controls())


OPERATIONS: Final = [
    Operation(
        method="GET",
        path="/api/v1/queues",
        handler=queues,
        summary="List queues",
        scopes=READ,
        returns=QueueList,
    ),
    Operation(
        method="POST",
        path="/api/v1/queues/{queue}/pause",
        handler=pause,
        summary="Pause a queue",
        scopes=ADMIN,
        returns=QueueState,
        action=Action.PAUSE,
    ),
    Operation(
        method="POST",
        path="/api/v1/queues/{queue}/resume",
        handler=resume,
        summary="Resume a queue",
        scopes=ADMIN,
        returns=QueueState,
        action=Action.RESUME,
    ),
    Operation(
        method="GET",
        path="/api/v1/types",
        handler=types,
        summary="List types",
        scopes=READ,
        returns=TypeList,
    ),
    Operation(
        method="PATCH",
        path="/api/v1/types/{type}",
        handler=patch_type,
        summary="Pause or limit a type",
        scopes=ADMIN,
        body=TypePatch,
        returns=TypeRules,
        action=Action.LIMIT,
    ),
    Operation(
        method="GET",
        path="/api/v1/control",
        handler=control,
        summary="What is paused and limited",
        scopes=READ,
        returns=ControlsView,
    ),
    Operation(
        method="POST",
        path="/api/v1/control",
        handler=set_control,
        summary="Pause or limit everything",
        scopes=ADMIN,
        body=ControlPatch,
        returns=ControlsView,
        action=Action.LIMIT,
    ),
]
