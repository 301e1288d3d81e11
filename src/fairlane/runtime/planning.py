"""A workflow that is ready to be submitted: every task has its id, and knows its parents'."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidWorkflow
from fairlane.core.ids import new_run, numbered
from fairlane.core.inputs import Input
from fairlane.core.membership import checked_name, placed
from fairlane.core.model import Claimed, Membership, OnFailure
from fairlane.runtime.shapes import Pending, Prepared, Tree, leaves, nesting_of


class Plan(msgspec.Struct, frozen=True):
    """A workflow, and the calls that its tasks are made of, in an order in which they can run."""

    workflow_id: str
    calls: tuple[Prepared[Any], ...]
    returns: Tree | None
    """What its result is made of."""


def new_workflow_id() -> str:
    """Return an id whose followers are free for the tasks of a workflow."""
    return new_run(limits.WORKFLOW_NODES)


def plan_of(
    roots: Iterable[Prepared[Any]],
    returns: Tree | None,
    *,
    name: str | None = None,
    workflow_id: str | None = None,
    parent: Claimed | None = None,
    on_failure: OnFailure = OnFailure.CONTINUE,
    at_exit: Prepared[Any] | None = None,
) -> Plan:
    """Return a plan of calls and of all that they wait for. Raises InvalidWorkflow.

    `returns`: those that the result is made of. `parent`: the running task whose trace it is part
    of. `at_exit`: runs when all others have ended.
    """
    if name is not None:
        checked_name(name)
    calls = _ordered(roots)
    if not calls:
        raise InvalidWorkflow("A workflow has at least one task.")
    if at_exit is not None:
        calls.append(_after_all(at_exit, calls))
        _check_number(calls)
    first = new_workflow_id() if workflow_id is None else workflow_id
    places = {id(call): place for place, call in enumerate(calls)}
    answering = set() if returns is None else {id(call) for call in leaves(returns)}
    names = _names(calls)
    planned: list[Prepared[Any]] = []
    for number, call in enumerate(calls, 1):
        traced = call if parent is None else call.within(parent)
        membership = Membership(
            names[number - 1],
            len(calls),
            name,
            id(call) in answering,
            on_failure,
            on_exit=at_exit is not None and number == len(calls),
        )
        parents, inputs = _inputs(call, places)
        ids = [numbered(first, place + 1) for place in parents]
        task = placed(traced.task, first, number, membership, ids, inputs)
        planned.append(Prepared(task, call.hint, call.app, names[number - 1]))
    return Plan(
        first, tuple(planned), None if returns is None else _moved(returns, places, planned)
    )


def _ordered(roots: Iterable[Prepared[Any]]) -> list[Prepared[Any]]:
    """Return calls, each once, and before them all that they wait for."""
    found: dict[int, Prepared[Any]] = {}
    # Not recursive: a chain may be longer than Python's stack.
    ahead = [(call, False) for call in reversed(list(roots))]
    while ahead:
        call, is_ready = ahead.pop()
        if id(call) in found:
            continue
        if is_ready:
            found[id(call)] = call
            _check_number(found)
            continue
        ahead.append((call, True))
        ahead.extend((each, False) for each in reversed(_parents(call)))
    return list(found.values())


def _check_number(calls: Sized) -> None:
    if len(calls) > limits.WORKFLOW_NODES:
        raise InvalidWorkflow(
            f"A workflow has at most {limits.WORKFLOW_NODES} tasks. Let a task do several steps, "
            "or let it submit further tasks."
        )


def _after_all(call: Prepared[Any], others: Sequence[Prepared[Any]]) -> Prepared[Any]:
    """Return a call that runs when all others have ended, and takes their outcomes."""
    sources = {
        name: msgspec.structs.replace(source, tree=tuple(others)) if source.outcomes else source
        for name, source in call.sources.items()
    }
    spec = msgspec.structs.replace(call.task.spec, tolerant=True)
    task = msgspec.structs.replace(call.task, spec=spec)
    return msgspec.structs.replace(call, task=task, sources=sources)


def _parents(call: Prepared[Any]) -> list[Prepared[Any]]:
    sources = [each for source in call.sources.values() for each in leaves(source.tree)]
    return [*sources, *call.after]


def _names(calls: Sequence[Prepared[Any]]) -> list[str]:
    """Return a name for each call: its own, or its type, with a number from the second on."""
    taken: set[str] = set()
    for call in calls:
        if call.node is None:
            continue
        if call.node in taken:
            raise InvalidWorkflow(
                f"Two tasks of the workflow have the name {call.node}: give one of them another."
            )
        taken.add(checked_name(call.node))
    counts: dict[str, int] = {}
    names: list[str] = []
    for call in calls:
        name = call.node
        while name is None:
            count = counts[call.task.type] = counts.get(call.task.type, 0) + 1
            found = call.task.type if count == 1 else f"{call.task.type}-{count}"
            name = None if found in taken else found
        names.append(name)
    return names


def _inputs(call: Prepared[Any], places: dict[int, int]) -> tuple[list[int], dict[str, Input]]:
    """Return the places of a call's parents, each once, and its inputs, with positions in those."""
    parents = list(dict.fromkeys(places[id(each)] for each in _parents(call)))
    positions = {place: position for position, place in enumerate(parents)}

    def input_of(source: Pending) -> Input:
        return Input(
            tuple(positions[places[id(each)]] for each in leaves(source.tree)),
            many=isinstance(source.tree, tuple),
            path=source.path,
            nesting=nesting_of(source.tree),
            outcomes=source.outcomes,
        )

    return parents, {name: input_of(source) for name, source in call.sources.items()}


def _moved(tree: Tree, places: dict[int, int], planned: Sequence[Prepared[Any]]) -> Tree:
    """Return a tree of calls as one of those that are planned in their place."""
    if isinstance(tree, Prepared):
        return planned[places[id(tree)]]
    return tuple(_moved(each, places, planned) for each in tree)
