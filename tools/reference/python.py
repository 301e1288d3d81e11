"""docs/reference/python.md: the public names of `fairlane`, with signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import msgspec

import fairlane
from fairlane.core.errors import FairlaneError
from fairlane.runtime.task import Options, TaskFunction
from tools.reference.code import attribute_docs
from tools.reference.markdown import code, page

TWIN: Final = "_sync"
GIVEN: Final = frozenset(
    {"Context", "Handle", "MemoryStore", "Prepared", "State", "Task", "TaskFunction"}
)
"""Classes whose objects Fairlane makes: nobody needs their constructors."""


def render() -> str:
    """Return the page."""
    names = [name for name in sorted(fairlane.__all__) if inspect.isclass(getattr(fairlane, name))]
    classes = [(name, getattr(fairlane, name)) for name in names]
    errors = [name for name, cls in classes if issubclass(cls, FairlaneError)]
    return page(
        "The Python API",
        "What `from fairlane import …` offers. Most coroutines have a blocking twin: the same name "
        "with `_sync` appended.",
        *(part for name, cls in classes if name not in errors for part in _class(name, cls)),
        "## Errors",
        f"{', '.join(map(code, errors))}: see [Errors](errors.md).",
    )


def _class(name: str, cls: type) -> Iterator[str]:
    yield f"## {name}"
    if name not in GIVEN:
        yield f"```python\n{_signature(name, cls)}\n```"
    for paragraph in (inspect.getdoc(cls) or "").split("\n\n"):
        is_code = re.match(r"@|async ", paragraph)
        yield f"```python\n{paragraph}\n```" if is_code else paragraph
    if issubclass(cls, Enum):
        yield f"Values: {', '.join(code(each.value) for each in cls)}."
        return
    if issubclass(cls, msgspec.Struct):
        if name not in GIVEN:
            return
        yield f"Fields: {', '.join(map(code, cls.__struct_fields__))}."
    if cls is TaskFunction:
        yield f"Options of a submission: {', '.join(map(code, Options.__annotations__))}."
    lines = [f"- {line}" for line in _members(cls)]
    if lines:
        yield "\n".join(lines)


def _members(cls: type) -> Iterator[str]:
    elsewhere = _inherited(cls)
    ours = [
        each
        for each in reversed(cls.__mro__)
        if each.__module__.startswith("fairlane") and each not in elsewhere
    ]
    notes = {name: text for each in ours for name, text in attribute_docs(each).items()}
    own = {name: value for each in ours for name, value in vars(each).items()}
    for name, value in sorted(own.items()):
        if name.startswith("_") or (name.endswith(TWIN) and name.removesuffix(TWIN) in own):
            continue
        is_method = inspect.isroutine(value) and not issubclass(cls, msgspec.Struct)
        if not (is_method or isinstance(value, property) or name in notes):
            continue
        twin = f" (and {code(name + TWIN)})" if name + TWIN in own else ""
        shown = _signature(name, value) if is_method else name
        about = notes.get(name) or _text(value)
        yield f"{code(shown)}{twin}{': ' if about else ''}{about}"


def _inherited(cls: type) -> set[type]:
    """Return the classes whose members the page shows under another name."""
    public = [getattr(fairlane, name) for name in fairlane.__all__]
    above = [each for each in cls.__mro__[1:] if each in public]
    return {base for each in above for base in each.__mro__}


def _text(value: Any) -> str:
    """Return a docstring on one line, without its examples."""
    paragraphs = (inspect.getdoc(value) or "").split("\n\n")
    return " ".join(" ".join(each.split()) for each in paragraphs if not each.startswith(" "))


def _signature(name: str, value: Any) -> str:
    found = inspect.signature(value)
    parts, starred = [], False
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}
        parts.append(_parameter(parameter))
    prefix = "async " if inspect.iscoroutinefunction(value) else ""
    returns = "" if inspect.isclass(value) else _annotated(found.return_annotation, " -> ")
    return f"{prefix}{name}({', '.join(parts)}){returns}"


_STARS: Final[dict[object, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def _parameter(parameter: inspect.Parameter) -> str:
    shown = _STARS.get(parameter.kind, "") + parameter.name
    shown += _annotated(parameter.annotation, ": ")
    if parameter.default is parameter.empty:
        return shown
    return f"{shown} = {_value(parameter.default)}"


def _annotated(annotation: Any, before: str) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return before + re.sub(r"\b(fairlane|collections)(\.[a-z_]+)*\.", "", text)


def _value(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(_value, value))) + "}"
    return value.__name__ if isinstance(value, type) else repr(value)
