"""`@app.task(…)`, and what it makes of a function's type."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from fairlane.runtime.calls import Application
from fairlane.runtime.context import Context
from fairlane.runtime.task import Options, TaskFunction, Terms

P = ParamSpec("P")
R = TypeVar("R")


class Decorator:
    """`@app.task(…)`, waiting for its function."""

    def __init__(
        self,
        app: Application,
        register: Callable[[TaskFunction[..., Any]], None],
        name: str | None,
        terms: Terms,
        options: Options,
    ) -> None:
        self._app = app
        self._register = register
        self._name = name
        self._terms = terms
        self._options = options

    @overload
    def __call__(
        self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> TaskFunction[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> TaskFunction[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], R], /) -> TaskFunction[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> TaskFunction[P, R]: ...

    def __call__(self, handler: Callable[..., Any], /) -> Any:
        name = self._name or str(getattr(handler, "__name__", ""))
        task: TaskFunction[..., Any] = TaskFunction(
            self._app, handler, name, self._terms, self._options
        )
        self._register(task)
        return task
