"""`/api/v1/{queues,types,control}`: queues and types, what is paused, what is limited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.core.audit import Action
from fairlane.core.breakdown import Demand, QueueFacts, demand_of, queues_of, types_of
from fairlane.core.facts import Facts
from fairlane.core.flow import Op
from fairlane.core.lanes import UNRULED, Controls, checked_scope
from fairlane.core.states import State
from fairlane.server.operations import ADMIN, READ, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services, from_facts
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
from fairlane.wire.values import NameText

_EMPTY: Final = dict.fromkeys(State, 0)


class Backlog(msgspec.Struct, frozen=True):
    """The work in a queue, for autoscalers. `backlog` counts the queued and the executing tasks, so
    that no busy worker is removed; while the queue is paused, only the executing ones."""

    queue: str
    backlog: int
    queued: int
    executing: int
    paused: bool


class CapabilityBacklog(msgspec.Struct, frozen=True):
    """The work that needs a capability, for autoscalers. `backlog` counts the executing tasks, and
    the queued ones that are not paused."""

    capability: str
    backlog: int
    queued: int
    executing: int


class CapabilityQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Only of one queue."""

    queue: NameText | None = None


async def list_queues(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """List queues, and how many tasks are in them."""
    found = await from_facts(services, lambda facts: tuple(map(queue_of, queues_of(facts))))
    return Response(QueueList(found))


async def pause(services: Services, call: Call[None, None]) -> Response:
    """Pause a queue: stop claims from it. Tasks that run continue."""
    return await _set_pause(services, call.path["queue"], paused=True)


async def resume(services: Services, call: Call[None, None]) -> Response:
    """Resume a queue: allow claims from it again."""
    return await _set_pause(services, call.path["queue"], paused=False)


async def _set_pause(services: Services, queue: str, *, paused: bool) -> Response:
    controls = await services.run(services.ops.pause(paused, queue=queue))
    return Response(QueueState(queue=queue, paused=queue in controls.paused_queues))


async def backlog(services: Services, call: Call[None, None]) -> Response:
    """Measure the work in a queue. It is zero for an unknown queue."""
    name = call.path["queue"]
    checked_scope(name)
    unknown = QueueFacts(name, paused=False, by_status=_EMPTY, oldest_age_seconds=0.0)

    def look(facts: Facts) -> tuple[QueueFacts, bool]:
        found = next((each for each in queues_of(facts) if each.queue == name), unknown)
        return found, found.paused or facts.controls.everything.paused

    found, paused = await from_facts(services, look)
    queued, executing = found.by_status[State.QUEUED], found.by_status[State.EXECUTING]
    waiting = 0 if paused else queued
    return Response(Backlog(name, executing + waiting, queued, executing, paused))


async def capability_backlog(services: Services, call: Call[None, CapabilityQuery]) -> Response:
    """Measure the work that needs a capability. It is zero for an unknown capability."""
    name = call.path["capability"]
    checked_scope(call.query.queue)
    demand = await from_facts(services, lambda facts: demand_of(facts, call.query.queue))
    found = demand.get(name, Demand())
    backlog = found.queued - found.paused + found.executing
    return Response(CapabilityBacklog(name, backlog, found.queued, found.executing))


async def list_types(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """List types, with their limits and how many tasks of them there are."""
    defined = await services.templates.types.get()
    found = await from_facts(services, lambda facts: tuple(map(type_of, types_of(facts, defined))))
    return Response(TypeList(found))


async def patch_type(services: Services, call: Call[TypePatch, None]) -> Response:
    """Pause or limit a type. Settings hold for all workers, from the next claim on."""
    patch, ops = call.body, services.ops
    type = call.path["type"]
    checked_scope(type)
    limits: dict[str, Any] = {
        "rate": patch.rate,
        "concurrency": patch.most,
        "breaker": patch.breaker,
        "timeout": patch.timeout,
    }
    changes = []
    if any(limit is not None for limit in limits.values()):
        changes.append(ops.limit(type, **limits))
    if not isinstance(patch.paused, msgspec.UnsetType):
        changes.append(ops.pause(patch.paused, type=type))
    controls = await _set(services, changes)
    return Response(type_rules(type, controls.types.get(type, UNRULED)))


async def get_control(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """List what is paused and limited."""
    return Response(controls_of(await services.run(services.ops.controls())))


async def set_control(services: Services, call: Call[ControlPatch, None]) -> Response:
    """Pause or resume everything, or limit the rate of all types together."""
    patch, ops = call.body, services.ops
    changes = []
    if patch.rate is not None:
        changes.append(ops.limit(None, rate=patch.rate))
    if not isinstance(patch.paused, msgspec.UnsetType):
        changes.append(ops.pause(patch.paused))
    return Response(controls_of(await _set(services, changes)))


async def _set(services: Services, changes: Sequence[Op[Controls]]) -> Controls:
    """Make the changes, limits first: if a limit is invalid, nothing is changed."""
    for change in changes[:-1]:
        await services.run(change)
    return await services.run(changes[-1] if changes else services.ops.controls())


OPERATIONS: Final = [
    Operation("GET", "/api/v1/queues", list_queues, READ, returns=QueueList),
    Operation(
        "POST",
        "/api/v1/queues/{queue}/pause",
        pause,
        ADMIN,
        returns=QueueState,
        action=Action.PAUSE,
    ),
    Operation(
        "POST",
        "/api/v1/queues/{queue}/resume",
        resume,
        ADMIN,
        returns=QueueState,
        action=Action.RESUME,
    ),
    Operation("GET", "/api/v1/queues/{queue}/backlog", backlog, READ, returns=Backlog),
    Operation(
        "GET",
        "/api/v1/capabilities/{capability}/backlog",
        capability_backlog,
        READ,
        query=CapabilityQuery,
        returns=CapabilityBacklog,
    ),
    Operation("GET", "/api/v1/types", list_types, READ, returns=TypeList),
    Operation(
        "PATCH",
        "/api/v1/types/{type}",
        patch_type,
        ADMIN,
        body=TypePatch,
        returns=TypeRules,
        action=Action.LIMIT,
    ),
    Operation("GET", "/api/v1/control", get_control, READ, returns=ControlsView),
    Operation(
        "POST",
        "/api/v1/control",
        set_control,
        ADMIN,
        body=ControlPatch,
        returns=ControlsView,
        action=Action.LIMIT,
    ),
]
