"""Values as JSON and back: everything msgspec knows, and pydantic models when pydantic is there."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.submission import check_tree, may_be_deep

UNFIT = (TypeError, ValueError, OverflowError, RecursionError)
"""What encoders, decoders and the models of an application raise about values that do not fit."""


def encoded(value: object) -> bytes:
    """A value as JSON; what a handler may return is what it may be given."""
    result = _encoder.encode(value)
    if b"null" in result or may_be_deep(result):
        # The encoder writes NaN and the infinities as null: only what it was given can tell.
        check_tree(msgspec.to_builtins(value, enc_hook=_to_builtins), limits.JSON_DEPTH)
    return result


def decoded(value: bytes, hint: Any) -> Any:
    """JSON as what a hint says; as it is where the hint is of no use."""
    try:
        return msgspec.json.decode(value, type=hint, dec_hook=from_builtins)
    except UNFIT:
        return msgspec.json.decode(value)


def from_builtins(hint: type, value: Any) -> Any:
    """What msgspec asks of us about hints that it does not know."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(hint, pydantic.BaseModel):
        # As JSON, because a strict model takes a date as text from JSON only.
        return hint.model_validate_json(msgspec.json.encode(value))  # type: ignore[attr-defined]
    raise TypeError(f"{hint.__name__} cannot be made from JSON")


def _to_builtins(value: Any) -> Any:
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    raise TypeError(f"{value.__class__.__name__} has no form in JSON")


_encoder = msgspec.json.Encoder(enc_hook=_to_builtins)
