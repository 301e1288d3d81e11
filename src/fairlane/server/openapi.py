"""The OpenAPI document, made from the route table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from fairlane import __version__
from fairlane.server.operations import Operation
from fairlane.wire.values import NAME_PATTERN

VERSION: Final = "3.1.0"
_PARAMETER: Final = re.compile(r"{(\w+)(?::\w+)?}")
_NAMED: Final = frozenset({"queue", "type", "schedule_id"})
_TEMPLATE: Final = "#/components/schemas/{name}"


class ErrorDetail(msgspec.Struct, frozen=True):
    """An error: a code for programs, a sentence for people."""

    code: str
    message: str
    details: dict[str, Any]


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: ErrorDetail


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document."""
    kinds = list(dict.fromkeys([ErrorBody, *_kinds(operations)]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
    _allow_duplicates(components)
    known = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = _PARAMETER.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _describe(
            operation, known, components
        )
    return {
        "openapi": VERSION,
        "info": {
            "title": "Fairlane",
            "version": __version__,
            "description": "A task queue with priority lanes that never starve.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _allow_duplicates(schema: Any) -> None:
    """Allow duplicates where the server reads a set."""
    if isinstance(schema, dict):
        schema.pop("uniqueItems", None)
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            _allow_duplicates(each)


def _kinds(operations: Iterable[Operation]) -> Iterable[Any]:
    for operation in operations:
        for kind in (operation.body, operation.query, operation.returns):
            if kind is not None:
                yield kind


def _describe(
    operation: Operation, known: dict[Any, Any], components: dict[str, Any]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": name_of(operation),
        "tags": [tag_of(operation)],
        "summary": operation.summary,
        "description": operation.description,
        "responses": _responses(operation, known),
    }
    parameters = [*_in_path(operation), *_in_query(operation, known, components)]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {
            "required": not operation.optional_body
            or bool(_component(known[operation.body], components)["required"]),
            "content": {"application/json": {"schema": known[operation.body]}},
        }
    if operation.scopes:
        described["security"] = [{"token": sorted(operation.scopes)}]
        if operation.besides:
            described["x-further-scopes"] = sorted(operation.besides)
        if operation.bound is not None:
            described["x-bound-token"] = sorted(operation.bound)
    return described


def _responses(operation: Operation, known: dict[Any, Any]) -> dict[str, Any]:
    error = {"application/json": {"schema": known[ErrorBody]}}
    success: dict[str, Any] = {"description": "Done"}
    if operation.returns is not None:
        success["content"] = {"application/json": {"schema": known[operation.returns]}}
    statuses = (operation.status, *operation.further)
    return {
        **{str(status): success for status in statuses},
        "4XX": {"description": "Refused; nothing was changed", "content": error},
        "503": {
            "description": "The store is away: try again",
            "content": error,
            "headers": {"Retry-After": {"schema": {"type": "integer"}}},
        },
    }


def _in_path(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", **_rule(name)}}
        for name in _PARAMETER.findall(operation.path)
    ]


def _rule(parameter: str) -> dict[str, Any]:
    """Return the rule for a parameter of a path: names have a pattern, ids need none."""
    return {"pattern": NAME_PATTERN} if parameter in _NAMED else {"minLength": 1}


def _in_query(
    operation: Operation, known: dict[Any, Any], components: dict[str, Any]
) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    schema = _component(known[operation.query], components)
    required = schema.get("required", ())
    return [
        {"name": field, "in": "query", "required": field in required, "schema": kind}
        for field, kind in schema["properties"].items()
    ]


def _component(reference: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that a reference points to."""
    found: dict[str, Any] = components[reference["$ref"].rpartition("/")[2]]
    return found


def name_of(operation: Operation) -> str:
    """Return the unique name of an operation: its method and path."""
    words = re.sub(r"[^a-z0-9]+", "_", operation.path.lower()).strip("_")
    return f"{operation.method.lower()}_{words}"


def tag_of(operation: Operation) -> str:
    """Return the part of the API that an operation belongs to."""
    parts = operation.path.strip("/").split("/")
    if parts[:2] == ["api", "v1"]:
        return parts[2]
    return "/".join(parts[:2]) if parts[0] in ("api", "internal") else "server"
