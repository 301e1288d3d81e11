"""What an application defines: tasks, schedules, lifespans and middleware, with `@app.task` and its
like."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, cast, overload

from fairlane.client.schedule_definitions import ScheduleDecorator, ScheduleOptions
from fairlane.core import limits, recurrence
from fairlane.core.durations import Seconds
from fairlane.core.errors import InvalidHandler, InvalidSchedule
from fairlane.core.schedules import NewSchedule
from fairlane.core.text import NAME_RULE, is_name, shown
from fairlane.runtime.application import Application
from fairlane.runtime.codecs import Codec, find
from fairlane.runtime.context import Context
from fairlane.runtime.execution import Lifespan, Middleware
from fairlane.runtime.task import Isolation, Options, TaskFunction, Terms

P = ParamSpec("P")
R = TypeVar("R")

EVERYTHING_IN = ".*"
"""With this at its end, the name of a package stands for all modules in it."""

Exceptions = type[BaseException] | tuple[type[BaseException], ...]


class Definitions(Application):
    """The tasks of an application, its schedules, lifespans and middleware. Workers run them."""

    def __init__(self, include: Iterable[str] = (), name: str = "default") -> None:
        if not is_name(name):
            raise InvalidHandler(f"{shown(name)} cannot name an application: it has {NAME_RULE}.")
        self.name = name
        """Whose schedules those are that its code declares: see `cron`."""
        self._include = (include,) if isinstance(include, str) else tuple(include)
        self.payload_bytes = limits.PAYLOAD_BYTES
        self.codecs = {}
        self.tasks: dict[str, TaskFunction[..., Any]] = {}
        self.declared: dict[str, NewSchedule] = {}
        """The schedules that its code declares, by their ids."""
        self.lifespans: list[Lifespan] = []
        self.middleware: list[Middleware] = []

    @overload
    def task(
        self,
        handler: None = None,
        /,
        *,
        name: str | None = None,
        codec: str | None = None,
        rate_limit: float | None = None,
        concurrency: int | None = None,
        isolation: Isolation | None = None,
        memory_limit: int | None = None,
        retry_on: Exceptions = Exception,
        no_retry_on: Exceptions = (),
        **options: Unpack[Options],
    ) -> Decorator: ...
    @overload
    def task(
        self, handler: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> TaskFunction[P, R]: ...
    @overload
    def task(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> TaskFunction[P, R]: ...
    @overload
    def task(self, handler: Callable[Concatenate[Context, P], R], /) -> TaskFunction[P, R]: ...
    @overload
    def task(self, handler: Callable[P, R], /) -> TaskFunction[P, R]: ...

    def task(
        self,
        handler: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        codec: str | None = None,
        rate_limit: float | None = None,
        concurrency: int | None = None,
        isolation: Isolation | None = None,
        memory_limit: int | None = None,
        retry_on: Exceptions = Exception,
        no_retry_on: Exceptions = (),
        **options: Any,
    ) -> Any:
        """Make a function a task: `@app.task` or `@app.task(priority="high", …)`.

        `rate_limit` and `concurrency` are set in the store by the first worker that starts; from
        then on operators change them. With `isolation="process"` every run has a process of its
        own, which can be killed and may use at most `memory_limit` bytes of memory. `codec` is the
        name of a codec (see `codec`) for the arguments and the result.
        """
        terms = Terms(
            rate_limit=rate_limit,
            concurrency=concurrency,
            isolation=isolation,
            memory_limit=memory_limit,
            retry_on=_classes(retry_on),
            no_retry_on=_classes(no_retry_on),
        )
        decorator = Decorator(self, name, terms, cast(Options, options), codec)
        return decorator if handler is None else decorator(handler)

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        id: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleDecorator:
        """Submit a task whenever a cron expression of five fields says so, in a time zone. It
        stands above `@app.task`.

        `id` names the schedule (default: as the task), and `arguments` are those of the task. The
        options are those of `Schedules.put`. Workers declare the schedules of their application in
        the store when they start, and every hour. A schedule whose declaration is gone from the
        code is dropped a day later, so applications that share a store need different names.
        """
        rule = recurrence.cron(expression, tz)
        return ScheduleDecorator(self.declare, rule, id, arguments, options)

    def every(
        self,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        offset: Seconds = 0,
        id: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleDecorator:
        """Submit a task in intervals, which are counted from 1970, so that no deployment moves
        them: every hour is on the hour, and `offset` later with an offset. See `cron`."""
        given = {
            "weeks": weeks, "days": days, "hours": hours, "minutes": minutes, "seconds": seconds,
        }  # fmt: skip
        try:
            interval = timedelta(**given)
        except (TypeError, ValueError, OverflowError):
            raise InvalidSchedule(f"This is no interval: {shown(given)}.") from None
        rule = recurrence.every(interval, offset)
        return ScheduleDecorator(self.declare, rule, id, arguments, options)

    def declare(self, schedule: NewSchedule) -> None:
        """Add a schedule that workers declare."""
        if schedule.schedule_id in self.declared:
            raise InvalidSchedule(
                f"Two schedules have the id {schedule.schedule_id}: give one of them another, "
                '@app.cron("…", id="…").'
            )
        self.declared[schedule.schedule_id] = schedule

    def discover(self) -> None:
        """Import the modules that `include` names, so that their tasks are defined.

        Workers call this before they start.
        """
        for name in self._include:
            package = import_module(name.removesuffix(EVERYTHING_IN))
            if name.endswith(EVERYTHING_IN):
                path = getattr(package, "__path__", ())
                for found in walk_packages(path, f"{package.__name__}."):
                    import_module(found.name)

    def register(self, task: TaskFunction[..., Any]) -> None:
        """Add a task that was defined elsewhere."""
        if task.name in self.tasks:
            raise InvalidHandler(
                f"Two tasks have the name {task.name}: give one of them another, "
                '@app.task(name="…").'
            )
        self.tasks[task.name] = task

    def codec(self, name: str, codec: Codec) -> None:
        """Register a codec, which tasks name with `@app.task(codec="…")`.

        It has two methods: `encode` turns arguments (a dict by name) or a result into JSON values,
        and `decode` turns them back. Everyone who submits such tasks, runs them or reads their
        results with a handle registers it by the same name.
        """
        if not is_name(name):
            raise InvalidHandler(f"{shown(name)} cannot name a codec, which has {NAME_RULE}.")
        if not isinstance(codec, Codec):
            raise InvalidHandler(f"The codec {name} needs the methods encode and decode.")
        if name in self.codecs:
            raise InvalidHandler(f"Two codecs have the name {name}: give one of them another.")
        self.codecs[name] = codec

    def lifespan(self, enter: Lifespan) -> Lifespan:
        """Add an async context manager that every worker enters when it starts and exits when it
        stops.

        The dict that it yields is `ctx.shared`, and provides the parameters marked with `Shared`.
        """
        self.lifespans.append(enter)
        return enter

    def around(self, middleware: Middleware) -> Middleware:
        """Wrap every run: `async def timed(ctx, run): …; return await run()`.

        The middleware that was added first is entered first.
        """
        self.middleware.append(middleware)
        return middleware


class Decorator:
    """`@app.task(…)` before it is applied to a function."""

    def __init__(
        self,
        app: Definitions,
        name: str | None,
        terms: Terms,
        options: Options,
        codec: str | None = None,
    ) -> None:
        if codec is not None:
            find(app.codecs, codec)
        self._codec = codec
        self._app = app
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
            self._app, handler, name, self._terms, self._options, self._codec
        )
        self._app.register(task)
        return task


def _classes(given: Exceptions) -> tuple[type[BaseException], ...]:
    return given if isinstance(given, tuple) else (given,)
