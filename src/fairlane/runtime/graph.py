"""`Graph`: a workflow that is built a task at a time.

with app.graph("order") as g:
    order = g.add(load, 7)
    paid = g.add(charge, order)                     # the result of load is the argument
    g.returns(g.add(ship.options(after=[paid]), order))
flow = await g.submit()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, NoReturn, ParamSpec, Protocol, Self, TypeVar, cast

from msgspec.structs import replace

from fairlane.core.errors import InvalidWorkflow, ResultNotKnown
from fairlane.core.membership import checked_name, checked_on_failure
from fairlane.core.merging import NodeOutcome
from fairlane.core.model import OnFailure
from fairlane.runtime.planning import Plan, new_workflow_id, plan_of
from fairlane.runtime.shapes import OUTCOMES, Child, Pending, Prepared, Tree
from fairlane.runtime.task import TaskFunction
from fairlane.runtime.workflows import WorkflowHandle

P = ParamSpec("P")
R = TypeVar("R")


class NodeResult:
    """Stands for the result of a task in a graph, or for a part of it.

    Attributes and items lead to parts, as they would in the result: `order.lines[0]`. Nothing else
    can be done with it, because nothing is known before the task has run.
    """

    __slots__ = ("_call", "_path")

    def __init__(self, call: Prepared[Any], path: tuple[str | int, ...] = ()) -> None:
        self._call = call
        self._path = path

    def __getattr__(self, name: str) -> NodeResult:
        if name.startswith("_"):
            raise AttributeError(name)
        return NodeResult(self._call, (*self._path, name))

    def __getitem__(self, key: str | int) -> NodeResult:
        if not isinstance(key, str | int) or isinstance(key, bool):
            self._refuse()
        return NodeResult(self._call, (*self._path, key))

    def __repr__(self) -> str:
        return f"<result of {self._call.name}{''.join(f'/{step}' for step in self._path)}>"

    def _refuse(self, *_: Any) -> NoReturn:
        raise ResultNotKnown(
            f"{ResultNotKnown.__doc__} In a graph, the result of {self._call.name} can be an "
            "argument of another task, whole or in part, and nothing else."
        )

    __hash__ = object.__hash__
    __bool__ = __iter__ = __len__ = __contains__ = __call__ = __str__ = __format__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __int__ = __float__ = __index__ = __bytes__ = __neg__ = __abs__ = __invert__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse


class Submitter(Protocol):
    """The part of the application that submits graphs."""

    async def submit_plan(self, plan: Plan, *, connection: Any = None) -> WorkflowHandle[Any]: ...
    def submit_plan_sync(self, plan: Plan, *, connection: Any = None) -> WorkflowHandle[Any]: ...


class Graph:
    """A workflow that is built a task at a time, and then submitted."""

    def __init__(self, app: Submitter, name: str, on_failure: str = OnFailure.CONTINUE) -> None:
        self._app = app
        self.name = checked_name(name)
        self.on_failure = checked_on_failure(on_failure)
        """What becomes of the workflow when a task ends badly: `continue` or `cancel`."""
        self.workflow_id = new_workflow_id()
        """The workflow's id. A graph that is submitted again is the same workflow."""
        self._calls: dict[int, Prepared[Any]] = {}
        self._names: set[str] = set()
        self._returns: Tree | None = None
        self._at_exit: Prepared[Any] | None = None
        self._is_built = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_built = True

    def add(self, task: TaskFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Add a task, and return what stands for its result: an argument for further tasks, whole,
        in part, or in a list with others.

        `task.options(after=[…])` waits for tasks without taking their results, and
        `task.options(node="…")` gives it a name. Raises InvalidArguments, or InvalidWorkflow if the
        type of a result does not fit.
        """
        self._check_open()
        after = tuple(self._known(each, task.name)._call for each in task.after)
        call = task.deferred(
            [self._argument(each, task.name) for each in args],
            {name: self._argument(each, task.name) for name, each in kwargs.items()},
        )
        call = replace(call, after=after)
        if call.node is not None and call.node in self._names:
            raise InvalidWorkflow(
                f"Two tasks of the graph {self.name} have the name {call.node}: give one of them "
                "another."
            )
        if call.node is not None:
            self._names.add(call.node)
        self._calls[id(call)] = call
        return cast(R, NodeResult(call))

    def on_exit(
        self, task: Child[list[NodeOutcome], P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Add the task that runs once when all others have ended, whatever became of them.

        Its first parameter is the list of their outcomes, in the order in which they can run.
        """
        self._check_open()
        if self._at_exit is not None:
            raise InvalidWorkflow(f"The graph {self.name} has one task that runs at its end.")
        self._at_exit = task.deferred((OUTCOMES, *args), kwargs)

    def returns(self, result: Any) -> None:
        """Say which task's result is the workflow's, or which list of them."""
        self._check_open()
        found = self._argument(result, "returns")
        if not isinstance(found, Pending):
            raise InvalidWorkflow(
                f"A graph returns the result of one of its tasks, or a list of them, not "
                f"{result!r:.80}."
            )
        if found.path:
            raise InvalidWorkflow(
                f"A graph returns whole results: {result!r} is a part of one. Add a task that "
                "returns it."
            )
        self._returns = found.tree

    def plan(self) -> Plan:
        """Return the tasks with their ids, checked. Nothing is stored."""
        self._is_built = True
        return plan_of(
            self._calls.values(),
            self._returns,
            name=self.name,
            workflow_id=self.workflow_id,
            on_failure=self.on_failure,
            at_exit=self._at_exit,
        )

    async def submit(self, *, connection: Any = None) -> WorkflowHandle[Any]:
        """Store all tasks, or none: see `Fairlane.submit`."""
        return await self._app.submit_plan(self.plan(), connection=connection)

    def submit_sync(self, *, connection: Any = None) -> WorkflowHandle[Any]:
        """Blocking twin of `submit`."""
        return self._app.submit_plan_sync(self.plan(), connection=connection)

    def _check_open(self) -> None:
        if self._is_built:
            raise InvalidWorkflow(f"The graph {self.name} is complete: build another one.")

    def _argument(self, value: Any, child: str) -> Any:
        """Return what stands for an argument: `Pending` for results, and others as they are."""
        if isinstance(value, NodeResult):
            result = self._known(value, child)
            return Pending(result._call, result._path)
        if isinstance(value, list | tuple) and any(map(_has_results, value)):
            paths = set(_paths(value))
            if len(paths) > 1:
                raise InvalidWorkflow(
                    f"A list for {child} takes the same part of each result: give it whole "
                    "results, or an argument for each part."
                )
            return Pending(self._tree(value, child), paths.pop())
        if isinstance(value, Mapping) and any(map(_has_results, value.values())):
            raise InvalidWorkflow(
                f"A dict for {child} has a result in it. A result is an argument by itself, or in "
                "a list of results."
            )
        return value

    def _tree(self, value: Any, child: str) -> Tree:
        if isinstance(value, list | tuple):
            return tuple(self._tree(each, child) for each in value)
        if isinstance(value, NodeResult):
            return self._known(value, child)._call
        raise InvalidWorkflow(
            f"A list for {child} has results and other values in it: give the values by "
            "themselves, or add a task that returns them."
        )

    def _known(self, value: Any, child: str) -> NodeResult:
        if not isinstance(value, NodeResult):
            raise InvalidWorkflow(f"{child} waits for what g.add(…) returns, not {value!r:.80}.")
        if id(value._call) not in self._calls:
            raise InvalidWorkflow(
                f"{child} takes the result of {value._call.name}, which is a task of another graph."
            )
        return value


def _has_results(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_results, value))
    return isinstance(value, NodeResult)


def _paths(value: Any) -> Iterable[tuple[str | int, ...]]:
    if isinstance(value, NodeResult):
        yield value._path
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _paths(each)
