"""Write the API's answers as TypeScript, out of the OpenAPI document: `make api-types`.

The dashboard's JavaScript is checked against them. A test compares the file with the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fairlane.server.openapi import document
from fairlane.server.routes import OPERATIONS

FILE: Final = Path(__file__).parent.parent / "src" / "fairlane" / "dashboard" / "types" / "api.d.ts"
METHODS: Final = ("get", "post", "patch", "delete")
SERVED: Final = re.compile(r"/(api/v1|auth)/|/readyz$")
"""The routes that the dashboard may ask for: no worker's, and none of the task-queue dialect."""
PLAIN: Final = {
    "boolean": "boolean",
    "integer": "number",
    "null": "null",
    "number": "number",
    "string": "string",
}


def main() -> None:
    """Write the file."""
    FILE.write_text(rendered(), encoding="utf-8")


def rendered() -> str:
    """The whole file."""
    described = document(OPERATIONS)
    schemas = described["components"]["schemas"]
    routes = [
        (method, path, operation)
        for path, operations in sorted(described["paths"].items())
        for method, operation in operations.items()
        if SERVED.match(path)
    ]
    used = _reachable([operation for _, _, operation in routes] + ["LiveEvent"], schemas)
    lines = ["// Written by `make api-types` from the OpenAPI document; do not edit."]
    for name in sorted(used):
        lines += ["", *_declared(name, schemas[name])]
    for method in METHODS:
        lines += ["", f"export interface {method.title()} {{"]
        lines += [_route(path, operation) for each, path, operation in routes if each == method]
        lines += ["}"]
    return "\n".join([*lines, ""])


def _reachable(roots: list[Any], schemas: dict[str, Any]) -> set[str]:
    """The names of all schemas that these refer to, directly or not."""
    found: set[str] = set()
    waiting = [*roots]
    while waiting:
        each = waiting.pop()
        for name in [each] if isinstance(each, str) else _references(each):
            if name not in found:
                found.add(name)
                waiting.append(schemas[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    for path in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)):
        if not path.endswith("Query"):  # a query's fields are parameters of its route
            yield path


def _declared(name: str, schema: dict[str, Any]) -> Iterator[str]:
    if "properties" not in schema:
        yield f"export type {name} = {_type(schema)};"
        return
    required = schema.get("required", ())
    yield f"export interface {name} {{"
    for field, kind in schema["properties"].items():
        yield f"  {field}{'' if field in required else '?'}: {_type(kind)};"
    yield "}"


def _route(path: str, operation: dict[str, Any]) -> str:
    """A route with what is sent to it and what it answers. Any name in its path is `{}`."""
    names = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    query = _union(map(json.dumps, names)) if names else "never"
    body = _type(_content(operation["requestBody"])) if "requestBody" in operation else "{}"
    success = next(each for status, each in operation["responses"].items() if status < "3")
    answer = _type(_content(success)) if "content" in success else "null"
    key = re.sub(r"{\w+}", "{}", path.removeprefix("/"))
    return f"  {json.dumps(key)}: {{ query: {query}; body: {body}; answer: {answer} }};"


def _content(part: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = part["content"]["application/json"]["schema"]
    return schema


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name: str = schema["$ref"].rpartition("/")[2]
        return name
    if "enum" in schema:
        return _union(map(json.dumps, schema["enum"]))
    if "anyOf" in schema:
        return _union(map(_type, schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        return f"Array<{_type(schema.get('items') or {})}>"
    if kind == "object":
        return f"Record<string, {_type(schema.get('additionalProperties') or {})}>"
    return PLAIN[kind] if kind else "unknown"


def _union(kinds: Any) -> str:
    return " | ".join(dict.fromkeys(kinds))


if __name__ == "__main__":
    main()
