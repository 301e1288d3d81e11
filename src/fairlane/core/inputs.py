"""Parameters that are results of other tasks.

A task may take parameters from the results of tasks that it depends on. These are its inputs. They
are not in the payload that is stored: what hands a task to a handler reads the results, and adds
them to the payload as they are stored (see `merging`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeGuard

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
    """

    parents: tuple[int, ...]
    many: bool = False
    path: tuple[str | int, ...] = ()


class TaskInput(msgspec.Struct, frozen=True):
    """An input of a task, with the ids of its parents: as `Input`, for those who read the task."""

    parents: tuple[str, ...]
    many: bool = False
    path: tuple[str | int, ...] = ()


def named_inputs(inputs: Mapping[str, Input], depends_on: Sequence[str]) -> dict[str, TaskInput]:
    """Return inputs with the ids of their parents."""
    return {
        name: TaskInput(tuple(depends_on[at] for at in each.parents), each.many, each.path)
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
        name: Input(tuple(places[parent] for parent in each.parents), each.many, each.path)
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
    return Input(tuple(places), given.many, _checked_path(name, given.path))


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
