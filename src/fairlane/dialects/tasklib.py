"""Document 004's programming interface: functions that are tasks, submitted by `submit_task`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, cast, overload
from uuid import UUID

import msgspec

from fairlane.client.app import Fairlane
from fairlane.core import limits
from fairlane.core.errors import InvalidArguments, InvalidHandler
from fairlane.core.filters import Filter
from fairlane.core.model import Task as CoreTask
from fairlane.core.model import Worker as CoreWorker
from fairlane.dialects.errors import NotInitialised, TaskExecutionError, TaskNotFound
from fairlane.dialects.tasklib_tasks import Config, Task, states_of, task_of
from fairlane.runtime.task import Options, Priority, TaskFunction, Terms
from fairlane.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
Function = Callable[..., Any]

APPLICATION = "tasklib"
"""The name of the application behind it."""


class Definition(msgspec.Struct, frozen=True):
    """A function that was made a task."""

    function: Function
    max_retries: int | None
    timeout_seconds: float | None


class TaskLib:
    """The program's tasks. They can be defined before `init` names the store."""

    def __init__(self) -> None:
        self._tasks: dict[str, Definition] = {}
        self._app: Fairlane | None = None
        self._config: Config | None = None

    def init(self, config: Config) -> None:
        """Open and prepare the store. Call it once, when the program starts."""
        app = Fairlane(config.database_url, name=APPLICATION)
        for name, definition in self._tasks.items():
            app.tasks[name] = _task(app, name, definition, config)
        app.run_sync(app.backend.ops.controls())
        self.close()
        self._app, self._config = app, config

    def application(self) -> Fairlane:
        """Return the application behind it, for what this interface does not have: schedules, for
        example."""
        return self._initialised()[0]

    async def aclose(self) -> None:
        """Close the store. `init` can be called again afterwards."""
        app, self._app, self._config = self._app, None, None
        if app is not None:
            await app.aclose()

    def close(self) -> None:
        """Blocking twin of `aclose`."""
        app, self._app, self._config = self._app, None, None
        if app is not None:
            app.close()

    @overload
    def task(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        max_retries: int | None = None,
        timeout_seconds: float | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def task(
        self,
        function: Function | None = None,
        /,
        *,
        max_retries: int | None = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Make a function a task: `@task` or `@task(max_retries=5, timeout_seconds=30)`."""

        def define(function: Function) -> Function:
            self._define(Definition(function, max_retries, timeout_seconds))
            return function

        return define if function is None else define(function)

    async def submit_task(
        self,
        function: Function,
        /,
        *,
        delay_seconds: float = 0,
        max_retries: int | None = None,
        timeout_seconds: float | None = None,
        priority: int | str | None = None,
        tags: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> UUID:
        """Submit a call of a task with these keyword arguments, and return the task's id."""
        app, _ = self._initialised()
        task = self._registered(function, app)
        given: Options = {"delay_seconds": delay_seconds}
        if max_retries is not None:
            given["max_retries"] = max_retries
        if timeout_seconds is not None:
            given["timeout"] = timeout_seconds
        if priority is not None:
            given["priority"] = cast(Priority, priority)
        if tags is not None:
            given["tags"] = tags
        try:
            call = task.options(**given).prepare(**kwargs)
        except InvalidArguments as error:
            raise TaskExecutionError(error.message) from None
        return UUID((await app.submit(call)).task_id)

    def get_task(self, task_id: UUID | str) -> Task | None:
        """Return the task, or None if there is none."""
        app, _ = self._initialised()
        found = app.run_sync(app.backend.ops.get([str(task_id)]))
        return next(iter(_translated(app, [task for task in found if task is not None])), None)

    def list_tasks(
        self, *, state: str | None = None, name: str | None = None, limit: int = 100
    ) -> list[Task]:
        """Return tasks in a state and of a name, newest first."""
        app, _ = self._initialised()
        wanted = Filter(
            states=None if state is None else states_of(state),
            types=None if name is None else frozenset({name}),
        )
        found: list[CoreTask] = []
        cursor, more = None, True
        while more and len(found) < limit:
            most = min(limit - len(found), limits.PAGE)
            page = app.run_sync(app.backend.ops.page(wanted, most, cursor))
            found += page.tasks
            cursor = page.next_cursor
            more = cursor is not None
        return _translated(app, found)

    def worker(self, concurrency: int, poll_interval: float) -> Worker:
        """Return a worker for all tasks that are defined by now."""
        app, config = self._initialised()
        return Worker(app, config.worker(concurrency, poll_interval))

    def _define(self, definition: Definition) -> None:
        name = definition.function.__name__
        known = self._tasks.get(name)
        if known is not None and _place(known.function) != _place(definition.function):
            raise InvalidHandler(
                f"Two tasks have the name {name}, in {known.function.__module__} and in "
                f"{definition.function.__module__}: rename one of them."
            )
        self._tasks[name] = definition
        if self._app is not None and self._config is not None:
            self._app.tasks[name] = _task(self._app, name, definition, self._config)

    def _registered(self, function: Function, app: Fairlane) -> TaskFunction[..., Any]:
        name = getattr(function, "__name__", repr(function))
        definition = self._tasks.get(name)
        if definition is None or definition.function is not function:
            raise TaskNotFound(f"{name} is not a task: put @task above its definition.")
        return app.tasks[name]

    def _initialised(self) -> tuple[Fairlane, Config]:
        if self._app is None or self._config is None:
            raise NotInitialised(
                "tasklib is not initialised: call tasklib.init(Config(database_url=…)) first."
            )
        return self._app, self._config


tasklib = TaskLib()


class TaskWorker:
    """Runs the program's tasks: `await TaskWorker(concurrency=4).run()`."""

    def __init__(self, concurrency: int = 1, poll_interval: float = 1.0) -> None:
        self._worker = tasklib.worker(concurrency, poll_interval)

    async def run(self) -> None:
        """Run tasks until stopped; in the main thread also until SIGTERM or SIGINT."""
        main = threading.current_thread() is threading.main_thread()
        await self._worker.run(signals=main)

    def stop(self) -> None:
        """Start no more tasks, and return from `run` when the running ones have finished.

        A second call stops at once.
        """
        self._worker.stop()


def _task(
    app: Fairlane, name: str, definition: Definition, config: Config
) -> TaskFunction[..., Any]:
    own = definition
    options: Options = {
        "max_retries": config.max_retries if own.max_retries is None else own.max_retries,
        "timeout": (
            config.default_task_timeout_seconds
            if own.timeout_seconds is None
            else own.timeout_seconds
        ),
        "retry": config.retry,
    }
    return TaskFunction(app, definition.function, name, Terms(), options)


def _place(function: Function) -> tuple[str, str]:
    """Return where a function is defined: a module that is loaded again defines the same tasks."""
    return function.__module__, function.__qualname__


def _translated(app: Fairlane, tasks: list[CoreTask]) -> list[Task]:
    workers: list[CoreWorker] = []
    if any(task.worker_id for task in tasks):
        workers = app.run_sync(app.backend.ops.workers())
    holders = {worker.worker_id: worker for worker in workers}
    return [task_of(task, holders) for task in tasks]
