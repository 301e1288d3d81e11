"""Values as JSON and back: all types of msgspec, and pydantic models if pydantic is installed."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.raw_json import may_be_deep
from fairlane.core.submission import check_tree
from fairlane.runtime.misfits import model_misfit

UNFIT = (TypeError, ValueError, OverflowError, RecursionError)
"""What encoders, decoders and an application's models raise for values that do not fit."""


def encoded(value: object) -> bytes:
    """Return a value as JSON. Results have the same limits as payloads."""
    result = _encoder.encode(value)
    if b"null" in result or may_be_deep(result):
        # The encoder writes NaN and the infinities as null, so check the value itself.
        check_tree(msgspec.to_builtins(value, enc_hook=_to_builtins), limits.JSON_DEPTH)
    return result


def decoded(value: bytes, hint: Any) -> Any:
    """Return JSON converted to a type, or as plain values if it does not fit the type."""
    try:
        return msgspec.json.decode(value, type=hint, dec_hook=from_builtins)
    except UNFIT:
        return msgspec.json.decode(value)


def from_builtins(hint: type, value: Any) -> Any:
    """Convert a value to a type that msgspec does not know."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(hint, pydantic.BaseModel):
        try:
            # As JSON, because a strict model takes a date as text from JSON only.
            return hint.model_validate_json(msgspec.json.encode(value))  # type: ignore[attr-defined]
        except pydantic.ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            raise ValueError(model_misfit(hint, found)) from None
    raise TypeError(f"{hint.__name__} cannot be decoded from JSON")


def _to_builtins(value: Any) -> Any:
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    raise TypeError(
        f"{value.__class__.__name__} cannot be encoded as JSON: use its id, a dict or a dataclass "
        "instead, or give the task a codec"
    )


_encoder = msgspec.json.Encoder(enc_hook=_to_builtins)
