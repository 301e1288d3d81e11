"""A run: the payload is decoded, the handler called, and whatever it did becomes an outcome.

Nothing a handler raises gets past here. Its error is told as text; even one that cannot be shown is
recorded.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.errors import KeyMissing
from fairlane.core.machine import Change, Completed, Failed, Outcome, Settlement, Snoozed, decide
from fairlane.core.model import Claimed, TaskError
from fairlane.runtime.arguments import Locked, Unreadable
from fairlane.runtime.context import Context, Run
from fairlane.runtime.outcomes import Fail, Retry, Snooze
from fairlane.runtime.task import TaskFunction, Terms
from fairlane.runtime.values import encoded

UNREADABLE = "INVALID_PAYLOAD"
BAD_RESULT = "INVALID_RESULT"
RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
RESULT_REFUSED = "RESULT_REFUSED"

LOCKED_SECONDS = 60.0
"""For how long a worker leaves a task alone whose payload it has no key for."""

logger = logging.getLogger("fairlane.worker")

Call = Callable[[], Any]
Middleware = Callable[[Context, Callable[[], Awaitable[Any]]], Awaitable[Any]]


class Surroundings(msgspec.Struct, frozen=True):
    """What is around every run: things handlers share, middleware, and where blocking calls go."""

    shared: Mapping[str, Any]
    middleware: Sequence[Middleware]
    blocking: Callable[[Call], Awaitable[Any]]


async def execute(definition: TaskFunction[..., Any], run: Run, around: Surroundings) -> Outcome:
    """Run a handler to its end. Never raises."""
    try:
        return returned(await _call(definition, run, around))
    except BaseException as error:  # noqa: BLE001 (whatever a handler raises is its outcome)
        return raised(error, definition.terms)


async def _call(definition: TaskFunction[..., Any], run: Run, around: Surroundings) -> Any:
    arguments, handler = definition.arguments, definition.handler
    values = arguments.decode(run.task.payload)
    for parameter, name in arguments.shared.items():
        values[parameter] = around.shared[name]
    if not arguments.wants_context and not around.middleware:
        if definition.is_async:
            return await handler(**values)
        return await _elsewhere(lambda: handler(**values), around)
    context = Context(run, definition.app, around.shared, logger.getChild(definition.name))
    given = (context,) if arguments.wants_context else ()

    async def innermost() -> Any:
        if definition.is_async:
            return await handler(*given, **values)
        return await _elsewhere(lambda: handler(*given, **values), around)

    call: Callable[[], Awaitable[Any]] = innermost
    for middleware in reversed(around.middleware):
        call = _wrapped(middleware, context, call)
    return await call()


async def _elsewhere(call: Call, around: Surroundings) -> Any:
    value = await around.blocking(call)
    # An ordinary function that answers with a coroutine: someone's decorator around an async one.
    return await value if inspect.iscoroutine(value) else value


def _wrapped(
    middleware: Middleware, context: Context, call: Callable[[], Awaitable[Any]]
) -> Callable[[], Awaitable[Any]]:
    return lambda: middleware(context, call)


def returned(value: Any, most: int = limits.RESULT_BYTES) -> Outcome:
    """The handler returned."""
    if value is None:
        return _NOTHING
    try:
        result = encoded(value)
    except BaseException as error:  # noqa: BLE001 (a value's own code runs here)
        return _for_good(BAD_RESULT, f"The result has no form in JSON: {text_of(error)}.")
    if len(result) > most:
        return _for_good(
            RESULT_TOO_LARGE,
            f"The result has {len(result):,} bytes of JSON, at most {most:,} are kept: store it "
            "elsewhere and return a reference to it.",
        )
    return Completed(result)


_NOTHING = Completed(b"null")


def raised(error: BaseException, terms: Terms) -> Outcome:
    """The handler raised."""
    match error:
        case Snooze():
            return Snoozed(error.seconds)
        case Retry():
            return Failed(_told(error, code="RETRY"), error.after)
        case Fail():
            return Failed(_told(error, code=error.code, retriable=False))
        case Locked():
            return put_off(error)
        case Unreadable():
            return unreadable(error)
        case asyncio.CancelledError() | SystemExit() | KeyboardInterrupt() | GeneratorExit():
            # Not ours: whoever wanted the worker to stop would have told the worker.
            return Failed(_told(error))
        case _:
            retriable = isinstance(error, terms.retry_on) and not isinstance(
                error, terms.no_retry_on
            )
            return Failed(_told(error, retriable=retriable))


def put_off(error: KeyMissing) -> Snoozed:
    """Its payload cannot be opened here. Not the task's fault: it waits for someone who has the
    key, however long that takes."""
    logger.error("A task is put off by %g s. %s", LOCKED_SECONDS, text_of(error))
    return Snoozed(LOCKED_SECONDS)


def unreadable(error: Exception) -> Failed:
    """Its payload cannot be read by anyone."""
    return _for_good(UNREADABLE, text_of(error))


def refused(error: Exception) -> Failed:
    """What came of it cannot be recorded, however often it is tried."""
    return _for_good(RESULT_REFUSED, f"The result cannot be stored: {text_of(error)}")


def text_of(error: BaseException) -> str:
    """An exception's message; its class if it has none, or none that can be shown."""
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 (its __str__ is the handler's code)
        message = ""
    return message or type(error).__name__


def _told(error: BaseException, *, code: str | None = None, retriable: bool = True) -> TaskError:
    try:
        trace = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 (formatting runs the handler's code)
        trace = f"{type(error).__name__} (its traceback cannot be shown)"
    return TaskError.of(
        text_of(error),
        code=type(error).__name__ if code is None else code,
        retriable=retriable,
        traceback=trace,
    )


def _for_good(code: str, message: str) -> Failed:
    return Failed(TaskError.of(message, code=code, retriable=False))


def settlement_of(task: Claimed, outcome: Outcome, seconds: float | None) -> Settlement:
    """A run's outcome under its fence."""
    change = decide(task, outcome, random.random())
    assert isinstance(change, Change)
    return Settlement(task.task_id, task.attempt, task.worker_id, change, seconds, outcome)
