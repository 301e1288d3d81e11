"""Parameters that are results of other tasks.

A task may take parameters from the results of tasks that it depends on. These are its inputs. They
are not in the payload that is stored: what hands a task to a handler reads the results, and adds
them to the payload as they are stored (see `merging`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, TypeGuard

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidInputs
from fairlane.core.raw_json import members_of
from fairlane.core.text import is_plain, shown


class Input(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a parameter comes from.

    `parents` are positions in the task's `depends_on`, in the order of the argument; a position may
    be there more than once. `many`: the argument is the list of their results. Otherwise there is
    exactly one parent. `path` leads to a part of each result, by keys and indexes.

    `nesting`: the list has lists in it. It walks through the elements in their order, those of
    lists inside it included: `RESULT` stands for a result, any other number for a list of that
    many elements. Empty: the list has results only.

    `outcomes`: the list has what became of the parents, see `merging.NodeOutcome`.
    """

    parents: tuple[int, ...]
    many: bool = False
    path: tuple[str | int, ...] = ()
    nesting: tuple[int, ...] = ()
    outcomes: bool = False


RESULT: Final = -1
"""Stands for a result in `Input.nesting`."""


class TaskInput(msgspec.Struct, frozen=True):
    """An input of a task, with the ids of its parents: as `Input`, for those who read the task."""

    parents: tuple[str, ...]
    many: bool = False
    path: tuple[str | int, ...] = ()
    nesting: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    outcomes: bool | msgspec.UnsetType = msgspec.UNSET


def named_inputs(inputs: Mapping[str, Input], depends_on: Sequence[str]) -> dict[str, TaskInput]:
    """Return inputs with the ids of their parents."""
    return {
        name: TaskInput(
            tuple(depends_on[at] for at in each.parents),
            each.many,
            each.path,
            each.nesting or msgspec.UNSET,
            each.outcomes or msgspec.UNSET,
        )
        for name, each in inputs.items()
    }


def numbered_inputs(
    inputs: Mapping[str, TaskInput], depends_on: Iterable[str]
) -> tuple[tuple[str, ...], dict[str, Input]]:
    """Return what a task depends on, and its inputs with positions in that. Parents that are only
    named by an input are added."""
    named = (parent for each in inputs.values() for parent in each.parents)
    parents = tuple(dict.fromkeys((*depends_on, *named)))
    places = {parent: place for place, parent in enumerate(parents)}
    return parents, {
        name: Input(
            tuple(places[parent] for parent in each.parents),
            each.many,
            each.path,
            each.nesting or (),
            each.outcomes or False,
        )
        for name, each in inputs.items()
    }


# -- checks ----------------------------------------------------------------------------------------


def checked_inputs(inputs: object, depends_on: Sequence[str], payload: bytes) -> dict[str, Input]:
    """Return the inputs of a task. Raises InvalidInputs if they do not fit it."""
    if inputs is None or inputs == {}:
        return {}
    if not isinstance(inputs, Mapping) or len(inputs) > limits.INPUTS:
        raise InvalidInputs(
            f"inputs is a dict of at most {limits.INPUTS} parameters. Got {shown(inputs)}."
        )
    _check_sizes(inputs)
    given = members_of(payload).keys()
    checked = {
        _checked_name(name, given): _checked_input(name, each, len(depends_on))
        for name, each in inputs.items()
    }
    references = sum(len(each.parents) for each in checked.values())
    if references > limits.INPUT_PARENTS:
        raise InvalidInputs(
            f"The inputs of a task name parents at most {limits.INPUT_PARENTS:,} times, not "
            f"{references:,} times: gather results in steps."
        )
    return checked


def _checked_name(name: object, given: Container[str]) -> str:
    # A payload that begins with "$" is of a form that Fairlane makes, such as `$sealed`.
    if not is_plain(name) or not name or name.startswith("$"):
        raise InvalidInputs(
            f"An input has the name of a parameter: 1 to {limits.NAME_LENGTH} characters that do "
            f"not begin with $. Got {shown(name)}."
        )
    if name in given:
        raise InvalidInputs(
            f"The parameter {shown(name)} is in the payload and in the inputs: give it once."
        )
    return name


def _checked_input(name: str, given: object, parents: int) -> Input:
    if not isinstance(given, Input):
        raise InvalidInputs(f"The input {shown(name)} is no Input(…). Got {shown(given)}.")
    if not isinstance(given.many, bool):
        raise InvalidInputs(f"many is true or false. The input {shown(name)} has {given.many!r}.")
    places: object = given.parents
    if not isinstance(places, list | tuple) or not all(
        _is_place(place) and place < parents for place in places
    ):
        raise InvalidInputs(
            f"The parents of the input {shown(name)} are positions in depends_on, which has "
            f"{parents}. Got {shown(places)}."
        )
    if not given.many and len(places) != 1:
        raise InvalidInputs(
            f"The input {shown(name)} has {len(places):,} parents: one, or any number with many."
        )
    path = _checked_path(name, given.path)
    nesting = _checked_nesting(name, given)
    if not isinstance(given.outcomes, bool) or (
        given.outcomes and (not given.many or path or nesting)
    ):
        raise InvalidInputs(
            f"outcomes is true or false, and goes with many alone. The input {shown(name)} has "
            f"{shown(given.outcomes)}."
        )
    return Input(tuple(places), given.many, path, nesting, given.outcomes)


def _checked_path(name: str, path: object) -> tuple[str | int, ...]:
    if not isinstance(path, list | tuple) or len(path) > limits.INPUT_PATH:
        raise InvalidInputs(
            f"A path has at most {limits.INPUT_PATH} keys and indexes. The input {shown(name)} has "
            f"{shown(path)}."
        )
    for step in path:
        if not (_is_place(step) or is_plain(step)):
            raise InvalidInputs(
                "A path has keys, which are short texts, and indexes, which are whole numbers from "
                f"0 on. The input {shown(name)} has {shown(step)}."
            )
    return tuple(path)


def _check_sizes(inputs: Mapping[Any, Any]) -> None:
    """Raise InvalidInputs if the nestings are too long to look at, all together."""
    nestings = [getattr(each, "nesting", ()) for each in inputs.values()]
    elements = sum(len(each) for each in nestings if isinstance(each, list | tuple))
    if elements > limits.INPUT_ELEMENTS:
        raise InvalidInputs(
            f"The lists that a task takes have at most {limits.INPUT_ELEMENTS:,} elements in each "
            f"other, not {elements:,}: gather results in steps."
        )


def _checked_nesting(name: str, given: Input) -> tuple[int, ...]:
    nesting: object = given.nesting
    if nesting in ((), []):
        return ()
    if (
        not given.many
        or not isinstance(nesting, list | tuple)
        or not all(type(each) is int and RESULT <= each <= limits.INPUT_PARENTS for each in nesting)
        or nesting.count(RESULT) != len(given.parents)
        or not _is_whole(nesting)
    ):
        raise InvalidInputs(
            f"nesting has {RESULT} for each result and, for each list of at most "
            f"{limits.INPUT_PATH} in each other, how many elements it has. The input {shown(name)} "
            f"has {shown(nesting)}."
        )
    return tuple(nesting)


def _is_whole(nesting: Sequence[int]) -> bool:
    """Return whether every list in a nesting has its elements, and is not too deep."""
    left: list[int] = []
    for each in nesting:
        if each > 0:
            left.append(each)
            if len(left) > limits.INPUT_PATH:
                return False
            continue
        while left:  # an element ends here, and with it the lists that it completes
            left[-1] -= 1
            if left[-1]:
                break
            left.pop()
    return not left


def _is_place(value: object) -> TypeGuard[int]:
    # No list in a result is longer than that.
    return type(value) is int and 0 <= value < limits.RESULT_BYTES


# -- identity --------------------------------------------------------------------------------------


def identified(payload: bytes, inputs: Mapping[str, Input], depends_on: Sequence[str]) -> bytes:
    """Return a payload that differs as soon as an input differs, to compare submissions by."""
    sources = named_inputs(inputs, depends_on)
    return spliced(
        payload, {name: msgspec.json.encode({"$input": each}) for name, each in sources.items()}
    )


def spliced(payload: bytes, members: Mapping[str, bytes]) -> bytes:
    """Return a JSON object with more members, whose values are JSON. Nothing is decoded."""
    if not members:
        return payload
    body = payload.rstrip()[:-1].rstrip()
    added = b",".join(b"%b:%b" % (msgspec.json.encode(name), members[name]) for name in members)
    # Only an empty object ends with its opening bracket.
    return b"%b%b%b}" % (body, b"" if body.endswith(b"{") else b",", added)
