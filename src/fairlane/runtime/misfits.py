"""What to say about a value that does not fit a type: where it is and what was expected.

Never the value itself: these texts are stored, logged and shown where the payload is encrypted, or
where those who read them may not read it. Only texts that are known not to quote a value pass.

An exception that the application's own code raises (a validator, a dataclass's `__post_init__`) has
the application's own text, as one that a handler raises has. Of a codec that cannot decode a stored
value only the exception's class is shown: codecs are mostly libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import msgspec

_PLACE = re.compile(r" - at `[^`]*`(?: in `[^`]*`)?\Z")
_SAFE = re.compile(
    r"Expected `[^`]*`(?:, got `[^`]*`| [^`]*)?"
    r"|Object missing required field `[^`]*`"
    r"|Invalid (?:UUID|RFC3339 encoded \w+|ISO8601 duration|epoch timestamp)"
    r"|Invalid (?:base64 encoded|decimal) string"
    r"|[A-Z]\w+ (?:value )?(?:is )?out of range"
    r"|JSON is malformed: [\w ,':-]+ \(byte \d+\)"
    r"|Input data was truncated"
)
_TEXTS = {
    "Object contains unknown field": "It has a field that is not expected",
    "Invalid enum value": "It is none of the values that are allowed",
    "Invalid value": "It is none of the values that are allowed",
}
_OTHER = "It is not valid"

_SHOWN = 10
"""How many errors of one value are listed."""
_KNOWN = {
    *("expected", "class", "class_name", "field_type", "discriminator", "expected_tags"),
    *("gt", "ge", "lt", "le", "multiple_of", "pattern", "expected_schemes", "tz_expected"),
    *("min_length", "max_length", "actual_length", "max_digits", "decimal_places", "whole_digits"),
}
"""What pydantic's texts may contain: parts of the type, and lengths."""


def misfit(error: BaseException) -> str:
    """Return why a value does not fit, without the value."""
    if not isinstance(error, msgspec.MsgspecError):
        return _OTHER if isinstance(error, UnicodeError) else str(error)
    if error.__cause__ is not None:
        return str(error)  # a text of the application, or of `model_misfit`
    text = str(error)
    found = _PLACE.search(text)
    place = "" if found is None else found[0]
    said = text.removesuffix(place)
    if _SAFE.fullmatch(said):
        return text
    kind = next((_TEXTS[start] for start in _TEXTS if said.startswith(start)), _OTHER)
    return kind + place


def model_misfit(model: Any, errors: Sequence[dict[str, Any]]) -> str:
    """Return why a value does not fit a pydantic model, by what pydantic says of it."""
    names = set(_names(model, set()))
    texts = [f"{_place(each['loc'], names)}{_text(each)}" for each in errors[:_SHOWN]]
    more = f"; and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    return f"{model.__name__}: {'; '.join(texts)}{more}"


def _text(error: dict[str, Any]) -> str:
    context = error.get("ctx", {})
    if context.keys() <= _KNOWN or isinstance(context.get("error"), Exception):
        text: str = error["msg"]
        return text
    kind: str = error["type"]
    return kind


def _place(location: Sequence[str | int], names: set[str]) -> str:
    """Return a path. Names that are not of the model are keys of dicts: part of the value."""
    path = ".".join(
        str(part) if isinstance(part, int) or part in names else "…" for part in location
    )
    return f"{path}: " if path else ""


def _names(hint: Any, seen: set[int]) -> Iterator[str]:
    """Yield the names of fields of a model, and of models inside it."""
    if id(hint) in seen:
        return
    seen.add(id(hint))
    for name, field in getattr(hint, "model_fields", {}).items():
        yield name
        yield from (each for each in (field.alias, field.validation_alias) if isinstance(each, str))
        yield from _names(field.annotation, seen)
    for inner in get_args(hint):
        yield from _names(inner, seen)
