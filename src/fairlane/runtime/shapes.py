"""Calls that are not submitted yet: `Prepared`, one by itself, and `Shape`, several that take
results of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import msgspec

from fairlane.core.errors import InvalidWorkflow
from fairlane.core.inputs import RESULT
from fairlane.core.merging import NodeOutcome
from fairlane.core.model import Claimed, NewTask

Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")
R_contra = TypeVar("R_contra", contravariant=True)

TUPLE = 5
"""How many results of different types are a tuple, at the most."""


class Owner(Protocol):
    """The application that defines a task."""

    @property
    def url(self) -> str: ...


class Child(Protocol[R_contra, Q, S]):
    """A task whose first parameter is a result: what a `TaskFunction` is for type checkers."""

    def prepare(self, result: R_contra, /, *args: Q.args, **kwargs: Q.kwargs) -> Prepared[S]: ...
    def deferred(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Prepared[S]: ...


class Prepared(msgspec.Struct, Generic[R], frozen=True):
    """A call that is ready to be submitted, alone or with others."""

    task: NewTask
    hint: Any
    """The type that the result is converted to."""
    app: Owner | None = None
    """Whose task it is."""
    node: str | None = None
    """Its name, as a task of a workflow."""
    sources: Mapping[str, Pending] = {}
    """Parameters that are results of other calls: only inside of a `Shape`."""
    after: tuple[Prepared[Any], ...] = ()
    """Calls whose tasks end before its own runs, besides its sources: inside of a `Shape`."""

    @property
    def name(self) -> str:
        """Return what messages call it."""
        return self.node or self.task.type

    def then(self, child: Child[R, Q, S], /, *args: Q.args, **kwargs: Q.kwargs) -> Shape[S]:
        """Return this call followed by another, whose first parameter is this one's result."""
        return Shape(self).then(child, *args, **kwargs)

    def on_exit(
        self, task: Child[list[NodeOutcome], Q, S], /, *args: Q.args, **kwargs: Q.kwargs
    ) -> Shape[R]:
        """Return this call with a task that runs once when it has ended: see `Shape.on_exit`."""
        return Shape(self).on_exit(task, *args, **kwargs)

    def within(self, parent: Claimed) -> Prepared[R]:
        """Return the call as part of a running task's trace, unless it has a trace of its own."""
        return msgspec.structs.replace(self, task=_traced(self.task, parent))


Tree: TypeAlias = "Prepared[Any] | tuple[Tree, ...]"
"""A call, or what a `gather` makes a list of."""


class Pending(msgspec.Struct, frozen=True):
    """Stands for an argument that is a result, or a list of results."""

    tree: Tree
    path: tuple[str | int, ...] = ()
    """Leads to a part of each result."""
    outcomes: bool = False
    """Stands for what became of all other tasks: those of the tree are not known yet."""


OUTCOMES = Pending((), outcomes=True)
"""The first argument of a task that runs at the end."""


class Shape(msgspec.Struct, Generic[R], frozen=True):
    """Calls that take results of each other, ready to be submitted together: a workflow."""

    tree: Tree
    parent: Claimed | None = None
    """The running task whose trace it is part of."""
    at_exit: Prepared[Any] | None = None
    """Runs when all others have ended."""

    def on_exit(
        self, task: Child[list[NodeOutcome], Q, S], /, *args: Q.args, **kwargs: Q.kwargs
    ) -> Shape[R]:
        """Return these calls with a task that runs once when all others have ended, whatever became
        of them. Its first parameter is the list of their outcomes."""
        if self.at_exit is not None:
            raise InvalidWorkflow("A workflow has one task that runs at its end.")
        call = task.deferred((OUTCOMES, *args), kwargs)
        return Shape(self.tree, self.parent, call)

    def then(self, child: Child[R, Q, S], /, *args: Q.args, **kwargs: Q.kwargs) -> Shape[S]:
        """Return these calls followed by another, whose first parameter is their result.

        Raises InvalidArguments, or InvalidWorkflow if the type of the result does not fit.
        """
        call = child.deferred((Pending(self.tree), *args), kwargs)
        return Shape(call, self.parent, self.at_exit)

    def within(self, parent: Claimed) -> Shape[R]:
        """Return the calls as part of a running task's trace, except those with a trace of their
        own."""
        return Shape(self.tree, parent, self.at_exit)


@overload
def gather(*calls: Prepared[T] | Shape[T]) -> Shape[list[T]]: ...
@overload
def gather(
    first: Prepared[T1] | Shape[T1], second: Prepared[T2] | Shape[T2], /
) -> Shape[tuple[T1, T2]]: ...
@overload
def gather(
    first: Prepared[T1] | Shape[T1],
    second: Prepared[T2] | Shape[T2],
    third: Prepared[T3] | Shape[T3],
    /,
) -> Shape[tuple[T1, T2, T3]]: ...
@overload
def gather(
    first: Prepared[T1] | Shape[T1],
    second: Prepared[T2] | Shape[T2],
    third: Prepared[T3] | Shape[T3],
    fourth: Prepared[T4] | Shape[T4],
    /,
) -> Shape[tuple[T1, T2, T3, T4]]: ...
@overload
def gather(
    first: Prepared[T1] | Shape[T1],
    second: Prepared[T2] | Shape[T2],
    third: Prepared[T3] | Shape[T3],
    fourth: Prepared[T4] | Shape[T4],
    fifth: Prepared[T5] | Shape[T5],
    /,
) -> Shape[tuple[T1, T2, T3, T4, T5]]: ...


def gather(*calls: Prepared[Any] | Shape[Any]) -> Shape[Any]:
    """Return calls that run side by side. Their result is the list of their results.

    Two to five results of different types are a tuple. A call that is given twice runs once.
    """
    if any(isinstance(each, Shape) and each.at_exit is not None for each in calls):
        raise InvalidWorkflow(
            "A part of a workflow has no task of its own that runs at the end: say on_exit of the "
            "whole."
        )
    return Shape(tuple(each.tree if isinstance(each, Shape) else each for each in calls))


# -- trees -----------------------------------------------------------------------------------------


def leaves(tree: Tree) -> Iterator[Prepared[Any]]:
    """Yield the calls of a tree, in order."""
    if isinstance(tree, Prepared):
        yield tree
    else:
        for each in tree:
            yield from leaves(each)


def nesting_of(tree: Tree) -> tuple[int, ...]:
    """Return how the lists in a tree are nested: see `Input`."""
    if isinstance(tree, Prepared) or not any(isinstance(each, tuple) for each in tree):
        return ()
    return tuple(_sizes(tree))


def _sizes(tree: tuple[Tree, ...]) -> Iterator[int]:
    for each in tree:
        if isinstance(each, Prepared):
            yield RESULT
        else:
            yield len(each)
            yield from _sizes(each)


def is_mixed(tree: tuple[Tree, ...]) -> bool:
    """Return whether a list of results is a tuple, because their types differ."""
    hints = [_listed(each) for each in tree]
    return 2 <= len(hints) <= TUPLE and any(hint != hints[0] for hint in hints)


def _listed(tree: Tree) -> Any:
    """Return the type of a tree's result, where lists of one type are alike whatever they have."""
    if isinstance(tree, Prepared):
        return tree.hint
    hints = tuple(map(_listed, tree))
    return ("tuple", hints) if is_mixed(tree) else ("list", hints[:1])


def _traced(task: NewTask, parent: Claimed) -> NewTask:
    spec = task.spec
    if spec.trace_id is not None:
        return task
    spec = msgspec.structs.replace(
        spec,
        trace_id=parent.trace_id,
        traceparent=spec.traceparent or parent.spec.traceparent,
    )
    return msgspec.structs.replace(task, spec=spec)
