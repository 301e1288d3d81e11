"""`TaskFunction`: a handler, the name of its type, and the options of its submissions."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack

import msgspec

from fairlane.core.definitions import OPTIONS, Definition
from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import InvalidHandler, InvalidWorkflow
from fairlane.core.membership import checked_name
from fairlane.core.model import NewTask
from fairlane.core.priority import level_of
from fairlane.core.retry import RetryPolicy
from fairlane.core.submission import PAYLOAD_OPTIONS, Form, new_form, new_task
from fairlane.core.text import NAME_RULE, is_name
from fairlane.core.uniqueness import Unique
from fairlane.core.uniqueness import checked as checked_unique
from fairlane.runtime.application import Application
from fairlane.runtime.arguments import Arguments
from fairlane.runtime.calls import Handle
from fairlane.runtime.codecs import find
from fairlane.runtime.deferring import parted_call
from fairlane.runtime.shapes import Child, Prepared, Shape

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
Item = TypeVar("Item")

Isolation = Literal["process"]
Priority = Literal["critical", "high", "medium", "normal", "low"] | int


class Options(TypedDict, total=False):
    """Options of a submission, all of them optional."""

    queue: str
    priority: Priority
    required_capabilities: Iterable[str]
    max_retries: int
    timeout: Seconds | None
    retry: RetryPolicy
    delay_seconds: Seconds
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
"""Options whose names differ from those of `new_task`."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What the definition of a handler says about its type."""

    rate_limit: float | None = None
    concurrency: int | None = None
    isolation: Isolation | None = None
    memory_limit: int | None = None
    """Bytes of memory that a run may use in addition to what its process uses already."""
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    no_retry_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        for each in self.retry_on + self.no_retry_on:
            if not (isinstance(each, type) and issubclass(each, BaseException)):
                raise InvalidHandler(
                    f"retry_on and no_retry_on are classes of exceptions, not {each!r}."
                )
        if self.isolation not in {None, "process"}:
            raise InvalidHandler(f'isolation is "process" or is left out. Got {self.isolation!r}.')
        most = self.memory_limit
        if most is not None and (self.isolation is None or not isinstance(most, int) or most < 1):
            raise InvalidHandler(
                "memory_limit is a whole number of bytes, 1 or more, and requires "
                'isolation="process".'
            )


class TaskFunction(Generic[P, R]):
    """A function that is a task. It can be called like any function, or submitted."""

    def __init__(
        self,
        app: Application,
        handler: Callable[..., Any],
        name: str,
        terms: Terms,
        options: Options,
        codec: str | None = None,
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
        self.codec = None if codec is None else find(app.codecs, codec)
        self.arguments = Arguments(handler, app.codecs, self.codec)
        self.is_async = inspect.iscoroutinefunction(handler)
        self._options = _checked_options(name, options)
        self.chosen: Options = {}
        """What `options` was given, and the definition does not say."""
        self._check_unique(options)
        self._connection: Any = None
        self._node: str | None = None
        self.after: tuple[Any, ...] = ()
        """Nodes of a graph that it waits for, besides those whose results it takes."""
        self._form = _form(name, options)
        self.__name__ = name
        self.__doc__ = handler.__doc__
        self.__wrapped__ = handler

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the handler directly, without submitting anything."""
        return self.handler(*args, **kwargs)

    def options(
        self,
        *,
        connection: Any = None,
        node: str | None = None,
        after: Iterable[Any] = (),
        **options: Unpack[Options],
    ) -> TaskFunction[P, R]:
        """Return the same task with other options for its submissions.

        With the caller's own `connection` to the store's database, `submit` and `submit_sync`
        submit within the caller's transaction: see `Fairlane.submit`. `node` is its name in a
        workflow. `after` are nodes of a graph that it waits for without taking their results.
        """
        other = copy.copy(self)
        other._node = self._node if node is None else checked_name(node)
        other.after = (*self.after, *after)
        other._connection = self._connection if connection is None else connection
        other._options = _checked_options(self.name, {**self._options, **options})
        other.chosen = {**self.chosen, **options}
        other._form = _form(self.name, other._options)
        self._check_unique(options)
        return other

    def _check_unique(self, options: Options) -> None:
        """Raise InvalidHandler for a uniqueness that looks into arguments which a codec encodes."""
        unique = options.get("unique")
        if self.codec is not None and isinstance(unique, Unique) and unique.arguments is not None:
            raise InvalidHandler(
                f"{self.name} has a codec, so it cannot be unique by chosen arguments: use "
                "unique=True for all of them, or an idempotency key."
            )

    def definition(self) -> Definition:
        """Return what the code says about the type, for submitters who do not have the code."""
        said = _new_task_options(self._options)
        options: dict[str, Any] = {name: in_seconds(said[name]) for name in OPTIONS if name in said}
        if isinstance(options.get("unique"), Unique):  # with its period in seconds
            options["unique"] = checked_unique(options["unique"])
        if "priority" in options:
            options["priority"] = level_of(options["priority"])
        if "required_capabilities" in options:
            options["required_capabilities"] = tuple(sorted(options["required_capabilities"]))
        if "tags" in options:
            options["tags"] = dict(options["tags"])
        return Definition(
            type=self.name,
            **options,
            parameters=self.arguments.schema,
            description=inspect.getdoc(self.handler) or "",
            source=_source_of(self.handler),
        )

    def prepare(self, /, *args: P.args, **kwargs: P.kwargs) -> Prepared[R]:
        """Return a call for `app.submit_many`, or to be followed by others: see `Prepared.then`."""
        if self.after:
            raise InvalidWorkflow(f"{self.name} has after=…, which is for nodes of a graph: g.add.")
        return self._prepared(self.arguments.encode(args, kwargs))

    def deferred(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Prepared[R]:
        """Return a call some of whose arguments are `Pending` results. It is part of a `Shape`."""
        given, sources = parted_call(self._node or self.name, self.arguments, args, kwargs)
        payload = self.arguments.encode((), given, later=sources.keys())
        return msgspec.structs.replace(self._prepared(payload), sources=sources)

    def map(
        self: Child[Item, Q, R],
        items: Iterable[Item],
        /,
        *args: Q.args,
        **kwargs: Q.kwargs,
    ) -> Shape[list[R]]:
        """Return a call for each item, which is the first argument: see `gather`."""
        return Shape(tuple(self.prepare(item, *args, **kwargs) for item in items))

    def _prepared(self, payload: bytes) -> Prepared[R]:
        if self._form is None:
            most = self.app.payload_bytes
            task = _task(self.name, payload, self._options, payload_bytes=most)
        else:
            task = self._form.filled(payload, self.app.payload_bytes)
        return Prepared(task, self.arguments.returns, self.app, self._node)

    async def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submit a call, and return once it is stored."""
        return await self.app.submit(self.prepare(*args, **kwargs), connection=self._connection)

    def submit_sync(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Blocking twin of `submit`."""
        return self.app.submit_sync(self.prepare(*args, **kwargs), connection=self._connection)


def _source_of(handler: Callable[..., Any]) -> str:
    """Return where the code of a handler is: its module, its name, and its first line."""
    code = getattr(inspect.unwrap(handler), "__code__", None)
    name = f"{handler.__module__}.{getattr(handler, '__qualname__', '')}"
    return name if code is None else f"{name}, line {code.co_firstlineno}"


def _task(name: str, payload: bytes, options: Options, **more: Any) -> NewTask:
    return new_task(name, payload, **_new_task_options(options), **more)


def _form(name: str, options: Options) -> Form | None:
    """Return what all submissions with these options share, or None if that depends on the
    payload."""
    if PAYLOAD_OPTIONS & options.keys():
        return None
    return new_form(name, **_new_task_options(options))


def _new_task_options(options: Options) -> dict[str, Any]:
    return {_NAMES.get(name, name): value for name, value in options.items()}


def _checked_options(name: str, options: Options) -> Options:
    """Return the options. Raises InvalidHandler or InvalidTask if no task could have them."""
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        raise InvalidHandler(
            f"{name} has no option {', '.join(unknown)}. There are "
            f"{', '.join(sorted(Options.__annotations__))}."
        )
    # What `unique` means depends on the payload, so it is checked with the submission.
    plain: Any = {option: value for option, value in options.items() if option != "unique"}
    _task(name, b"{}", plain)
    return options
