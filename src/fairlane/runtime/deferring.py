"""Calls some of whose arguments are results of other calls: checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import Any

from fairlane.core.errors import InvalidWorkflow
from fairlane.core.merging import NodeOutcome
from fairlane.runtime.arguments import Arguments
from fairlane.runtime.fitting import fits, part_of, shown_hint
from fairlane.runtime.shapes import Pending, Tree, leaves


def parted_call(
    name: str, arguments: Arguments, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Pending]]:
    """Return the arguments of a call by name: those that are given, and those that are results.

    Raises InvalidWorkflow if the type of a result does not fit the parameter.
    """
    given: dict[str, Any] = {}
    sources: dict[str, Pending] = {}
    for parameter, value in arguments.some(args, kwargs).items():
        if isinstance(value, Pending):
            sources[parameter] = value
            _check_fit(name, parameter, arguments.hint(parameter), value)
        else:
            given[parameter] = value
    return given, sources


def _check_fit(name: str, parameter: str, wanted: Any, given: Pending) -> None:
    hint = list[NodeOutcome] if given.outcomes else _hint(given.tree, given.path)
    if not fits(hint, wanted):
        raise InvalidWorkflow(
            f"The parameter {parameter} of {name} is {shown_hint(wanted)}, and cannot be the "
            + (
                f"outcomes of all tasks, which are {shown_hint(hint)}."
                if given.outcomes
                else f"result of {_named(given.tree)}, which is {shown_hint(hint)}."
            )
        )


def _hint(tree: Tree, path: Sequence[str | int]) -> Any:
    """Return the type of a part of each result of a tree, where a list is a tuple of its items."""
    if isinstance(tree, tuple):
        return GenericAlias(tuple, tuple(_hint(each, path) for each in tree))
    try:
        return part_of(tree.hint, path)
    except LookupError:
        way = "/".join(map(str, path))
        raise InvalidWorkflow(
            f"The result of {tree.name} has no part {way}: it is {shown_hint(tree.hint)}."
        ) from None


def _named(tree: Tree) -> str:
    names = list(dict.fromkeys(call.name for call in leaves(tree)))
    shown = ", ".join(names[:3]) or "no task"
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
