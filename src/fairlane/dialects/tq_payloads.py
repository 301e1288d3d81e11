"""Payloads of document 001's queue that are models: dataclasses, Structs, pydantic models."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from fairlane.core.errors import InvalidPayload
from fairlane.runtime.arguments import Unreadable
from fairlane.runtime.misfits import misfit
from fairlane.runtime.values import UNFIT, encoded, from_builtins


def encode_payload(payload: Any) -> Any:
    """Return a model as JSON, and anything else as it is."""
    if not _is_model(type(payload)):
        return payload
    try:
        return encoded(payload)
    except UNFIT as error:
        raise InvalidPayload(f"The payload cannot be encoded as JSON: {error}.") from None


def payload_reader(type: str, handler: Callable[..., Any], given: object) -> Callable[[Any], Any]:
    """Return what turns JSON into the payload that a handler takes.

    That is the model that its parameter is annotated with, or else the one that was `given`; JSON
    as it is if there is none.
    """
    model = _annotated(handler) or given
    if not _is_model(model):
        return lambda payload: payload

    def read(payload: Any) -> Any:
        try:
            return msgspec.convert(payload, model, dec_hook=from_builtins)
        except UNFIT as error:
            raise Unreadable(
                f"The payload does not fit the handler of {type}: {misfit(error)}."
            ) from None

    return read


def _annotated(handler: Callable[..., Any]) -> object:
    """Return the annotation of a handler's first parameter, if it has one that can be read."""
    try:
        hints = get_type_hints(handler)
        (first, *_) = inspect.signature(handler).parameters
    except (NameError, TypeError, ValueError, AttributeError):
        return None
    return hints.get(first)


def _is_model(found: object) -> bool:
    """Return whether a type is one whose values JSON does not have."""
    if not isinstance(found, type):
        return False
    if dataclasses.is_dataclass(found) or issubclass(found, msgspec.Struct):
        return True
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(found, pydantic.BaseModel)
