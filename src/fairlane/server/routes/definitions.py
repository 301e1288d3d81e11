"""`/api/v1/definitions`: what workers have published about the types of their tasks."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.core.audit import Action
from fairlane.core.breakdown import types_of
from fairlane.core.definitions import checked_batch
from fairlane.core.quotas import Made
from fairlane.server.audit import record
from fairlane.server.errors import TypeNotFound
from fairlane.server.operations import ADMIN, OWN, READ, WORKER, Call, Operation
from fairlane.server.quotas import take_quota
from fairlane.server.responses import Response
from fairlane.server.services import Services, from_facts
from fairlane.wire.definitions import (
    DefinitionList,
    DefinitionQuery,
    DefinitionView,
    Publication,
    PublicationReply,
    view_of,
)
from fairlane.wire.limits import TypeView, type_of


class TypeDetails(TypeView, frozen=True, kw_only=True):
    """A type with its definition, null if no worker has published one."""

    definition: DefinitionView | None


async def list_definitions(services: Services, call: Call[None, DefinitionQuery]) -> Response:
    """List the definitions of types: the defaults of their tasks, and what they take."""
    query = call.query
    page = await services.run(services.ops.definition_page(query.cursor, query.limit))
    return Response(DefinitionList(tuple(map(view_of, page.definitions)), page.next_cursor))


async def get_definition(services: Services, call: Call[None, None]) -> Response:
    """Read the definition of a type."""
    found = await services.run(services.ops.definition(call.path["type"]))
    if found is None:
        raise TypeNotFound
    return Response(view_of(found))


async def get_type(services: Services, call: Call[None, None]) -> Response:
    """Read a type: its definition, its limits and how many tasks of it there are."""
    type = call.path["type"]
    published = await services.run(services.ops.definition(type))
    defined = () if published is None else (type,)
    types = await from_facts(services, lambda facts: types_of(facts, defined))
    found = next((each for each in types if each.type == type), None)
    if found is None:
        raise TypeNotFound
    definition = None if published is None else view_of(published)
    return Response(TypeDetails(**msgspec.structs.asdict(type_of(found)), definition=definition))


async def publish(services: Services, call: Call[Publication, None]) -> Response:
    """Publish the definitions of types that a worker runs. The newest one of a type counts."""
    definitions = [each.definition() for each in call.body.definitions]
    checked_batch(definitions)
    await take_quota(services, call.identity, Made.DEFINITIONS, [each.type for each in definitions])
    changed = await services.run(services.ops.publish(definitions))
    if changed:  # they decide how everybody's tasks of these types are submitted
        changes = call.body.options_of(changed)
        await record(services, Action.PUBLISH, msgspec.structs.replace(call, body=changes))
    return Response(PublicationReply(len(definitions), tuple(changed)))


async def drop(services: Services, call: Call[None, None]) -> Response:
    """Delete the definition of a type. It comes back when a worker that has the type starts."""
    if not await services.run(services.ops.drop_definition(call.path["type"])):
        raise TypeNotFound
    return Response(status=204)


OPERATIONS: Final = [
    Operation(
        "GET",
        "/api/v1/definitions",
        list_definitions,
        OWN,
        query=DefinitionQuery,
        returns=DefinitionList,
    ),
    Operation(
        "GET", "/api/v1/definitions/{type}", get_definition, OWN, OWN, returns=DefinitionView
    ),
    Operation(
        "DELETE",
        "/api/v1/definitions/{type}",
        drop,
        ADMIN,
        returns=None,
        status=204,
        action=Action.DROP_DEFINITION,
    ),
    Operation("GET", "/api/v1/types/{type}", get_type, READ, returns=TypeDetails),
    Operation(
        "POST",
        "/internal/workers/definitions",
        publish,
        WORKER,
        body=Publication,
        returns=PublicationReply,
    ),
]
