"""The parameters of a handler as JSON Schema, which tells others what a task takes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fairlane.core.errors import InvalidHandler
from fairlane.core.json_schema import LAX

Schema = dict[str, Any]

_PLACE = "#/$defs/{name}"
_MODELS = "#/$defs/{model}"


def parameters_schema(
    name: str, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> Schema:
    """Return the schema of the payload of a handler.

    Raises InvalidHandler if an argument has a type that cannot be sent as JSON.
    """
    shared: dict[str, Schema] = {}
    properties: dict[str, Schema] = {}
    required: list[str] = []
    others: Any = False
    for parameter in parameters:
        schema = _schema_of(name, parameter.name, hints.get(parameter.name, Any), shared)
        if parameter.kind is parameter.VAR_KEYWORD:
            others = schema or True
            continue
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            schema = schema | _default(parameter.default)
        properties[parameter.name] = schema
    whole: Schema = {"type": "object", "properties": properties, "additionalProperties": others}
    if required:
        whole["required"] = required
    return whole | ({"$defs": shared} if shared else {})


def _schema_of(name: str, parameter: str, hint: Any, shared: dict[str, Schema]) -> Schema:
    def custom(kind: Any) -> Schema:
        pydantic = sys.modules.get("pydantic")
        if pydantic is None or not issubclass(kind, pydantic.BaseModel):
            raise _Unknown(getattr(kind, "__name__", repr(kind)))
        schema: Schema = kind.model_json_schema(ref_template=_MODELS)
        models = schema.pop("$defs", {})
        _share(shared, {key: {**each, LAX: True} for key, each in models.items()})
        return {**schema, LAX: True}  # pydantic converts more than JSON Schema says

    try:
        (schema,), components = msgspec.json.schema_components(
            [hint], schema_hook=custom, ref_template=_PLACE
        )
    except _Unknown as unknown:
        raise InvalidHandler(
            f"{name} takes `{parameter}` as {unknown}, which cannot be sent as JSON: take a type "
            "that can (a str, a number, a dataclass …) and convert it in the handler, or use a "
            "codec."
        ) from None
    except TypeError as error:
        raise InvalidHandler(f"{name} takes `{parameter}`, which has no schema: {error}.") from None
    _share(shared, components)
    return schema


def _share(shared: dict[str, Schema], components: Mapping[str, Schema]) -> None:
    """Add the schemas of classes. Of two classes with the same name nothing is known."""
    for key, schema in components.items():
        shared[key] = schema if shared.get(key, schema) == schema else {LAX: True}


class _Unknown(Exception):
    """A type that neither msgspec nor pydantic can decode; says its name."""


def _default(value: Any) -> Schema:
    try:
        return {"default": msgspec.json.decode(msgspec.json.encode(value))}
    except (TypeError, ValueError, OverflowError, RecursionError):
        return {}
