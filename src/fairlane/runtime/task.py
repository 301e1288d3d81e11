"""A function that is a task: called like any function, submitted like nothing else."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack

import msgspec

from fairlane.core.errors import InvalidHandler
from fairlane.core.model import NewTask
from fairlane.core.retry import RetryPolicy
from fairlane.core.submission import PAYLOAD_OPTIONS, Form, new_form, new_task
from fairlane.core.text import NAME_RULE, is_name
from fairlane.core.uniqueness import Unique
from fairlane.runtime.arguments import Arguments
from fairlane.runtime.calls import Application, Prepared
from fairlane.runtime.handle import Handle

P = ParamSpec("P")
R = TypeVar("R")

Isolation = Literal["process"]


class Options(TypedDict, total=False):
    """What may be said about a submission; all of it is optional."""

    queue: str
    priority: str | int
    required_capabilities: Iterable[str]
    max_retries: int
    timeout: float | None
    retry: RetryPolicy
    delay_seconds: float
    run_at: datetime
    expires_at: datetime
    idempotency_key: str
    unique: Unique | bool
    tags: Mapping[str, str]
    depends_on: Iterable[str]
    on_parent_failure: str
    trace_id: str
    traceparent: str
    task_id: str


_NAMES = {"timeout": "timeout_seconds", "retry": "retry_policy"}
"""Where an option's name differs from the door's."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about a type once, where its handler is defined."""

    rate_limit: float | None = None
    concurrency: int | None = None
    isolation: Isolation | None = None
    memory_limit: int | None = None
    """Bytes that a run may take beyond what its own process has anyway."""
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    no_retry_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        for each in self.retry_on + self.no_retry_on:
            if not (isinstance(each, type) and issubclass(each, BaseException)):
                raise InvalidHandler(
                    f"retry_on and no_retry_on are classes of exceptions, not {each!r}."
                )
        if self.isolation not in {None, "process"}:
            raise InvalidHandler(
                f'isolation is "process", or left out; it cannot be {self.isolation!r}.'
            )
        most = self.memory_limit
        if most is not None and (self.isolation is None or not isinstance(most, int) or most < 1):
            raise InvalidHandler(
                "memory_limit is a whole number of bytes, 1 or more, and goes with "
                'isolation="process": only a process of its own can be kept within it.'
            )


class TaskFunction(Generic[P, R]):
    """A handler under the name of its type, with the options its submissions begin with."""

    def __init__(
        self,
        app: Application,
        handler: Callable[..., Any],
        name: str,
        terms: Terms,
        options: Options,
    ) -> None:
        if not is_name(name):
            raise InvalidHandler(
                f"{name!r} cannot name a task type, which has {NAME_RULE}: give it a name, "
                '@app.task(name="…").'
            )
        self.app = app
        self.handler = handler
        self.name = name
        self.terms = terms
        self.arguments = Arguments(handler)
        self.is_async = inspect.iscoroutinefunction(handler)
        self._options = _checked_options(name, options)
        self._form = _form(name, options)
        self.__name__ = name
        self.__doc__ = handler.__doc__
        self.__wrapped__ = handler

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the handler here and now, as if it were no task."""
        return self.handler(*args, **kwargs)

    def options(self, **options: Unpack[Options]) -> TaskFunction[P, R]:
        """The same task with other options for what is submitted through it."""
        other = copy.copy(self)
        other._options = _checked_options(self.name, {**self._options, **options})
        other._form = _form(self.name, other._options)
        return other

    def prepare(self, /, *args: P.args, **kwargs: P.kwargs) -> Prepared[R]:
        """A call to be submitted by `app.submit_many`."""
        payload = self.arguments.encode(args, kwargs)
        if self._form is None:
            task = _task(self.name, payload, self._options)
        else:
            task = self._form.filled(payload)
        return Prepared(task, self.arguments.returns)

    async def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submit a call; answers when it is stored."""
        return await self.app.submit(self.prepare(*args, **kwargs))

    def submit_sync(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Blocking twin of `submit`."""
        return self.app.submit_sync(self.prepare(*args, **kwargs))


def _task(name: str, payload: bytes, options: Options) -> NewTask:
    return new_task(name, payload, **_at_the_door(options))


def _form(name: str, options: Options) -> Form | None:
    """What all submissions with these options share, where that is everything but the payload."""
    if PAYLOAD_OPTIONS & options.keys():
        return None
    return new_form(name, **_at_the_door(options))


def _at_the_door(options: Options) -> dict[str, Any]:
    return {_NAMES.get(name, name): value for name, value in options.items()}


def _checked_options(name: str, options: Options) -> Options:
    """The options, if a task could be submitted with them."""
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        raise InvalidHandler(
            f"{name} has no option {', '.join(unknown)}. There are "
            f"{', '.join(sorted(Options.__annotations__))}."
        )
    # What `unique` means depends on the payload: that is looked at when there is one.
    plain: Any = {option: value for option, value in options.items() if option != "unique"}
    _task(name, b"{}", plain)
    return options
