"""One run: decode the payload, call the handler, turn what it returns or raises into an outcome.

No exception of a handler leaves this module. Errors are recorded as text, even those whose text
cannot be produced.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import msgspec

from fairlane.core import blobs, limits
from fairlane.core.errors import (
    BlobDamaged,
    BlobMissing,
    BlobStoreMissing,
    DriverMissing,
    InputMissing,
    InvalidHandler,
    KeyMissing,
    SealBroken,
    StoreError,
)
from fairlane.core.inputs import spliced
from fairlane.core.merging import ParentResult, merged, parted
from fairlane.core.model import Claimed, Spec, TaskError
from fairlane.core.outcomes import Completed, Failed, Outcome, Snoozed
from fairlane.core.sealing import check_open
from fairlane.core.settlement import Settlement
from fairlane.core.stored_forms import plain
from fairlane.runtime.arguments import Locked, Unreadable
from fairlane.runtime.codecs import NamedCodec
from fairlane.runtime.context import Context, Run
from fairlane.runtime.outcomes import Fail, Retry, Snooze
from fairlane.runtime.results import Unanswered
from fairlane.runtime.task import TaskFunction, Terms
from fairlane.runtime.values import encoded
from fairlane.telemetry.notices import Notices

UNREADABLE = "INVALID_PAYLOAD"
BAD_RESULT = "INVALID_RESULT"
RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
RESULT_REFUSED = "RESULT_REFUSED"

LOCKED_SECONDS, LOCKED_MOST_SECONDS = 60.0, 900.0
"""How long a worker snoozes a task whose payload it has no key for: at first, and at most."""

logger = logging.getLogger("fairlane.worker")

Call = Callable[[], Any]
Middleware = Callable[[Context, Callable[[], Awaitable[Any]]], Awaitable[Any]]
Lifespan = Callable[[], AbstractAsyncContextManager[Mapping[str, Any] | None]]


class Surroundings(msgspec.Struct, frozen=True):
    """What every run needs: shared objects, middleware, and a way to run blocking calls."""

    shared: Mapping[str, Any]
    middleware: Sequence[Middleware]
    blocking: Callable[[str, Call], Awaitable[Any]]
    """Makes a blocking call for a task of a type, by its name."""
    load: Callable[[str, bytes], Awaitable[bytes]]
    """Reads what the payload of a task, by its id, refers to."""
    parents: Callable[[Spec], Awaitable[Mapping[str, ParentResult]]]
    """Reads the results that a task takes from its parents."""
    notices: Notices = msgspec.field(default_factory=lambda: Notices(logger))
    """Logs what concerns many tasks."""


async def enter_lifespans(
    lifespans: Iterable[Lifespan], tasks: Iterable[TaskFunction[..., Any]], stack: AsyncExitStack
) -> dict[str, Any]:
    """Enter an application's lifespans on a stack, and return what they provide.

    Raises InvalidHandler if a task needs something that none of them provides.
    """
    shared: dict[str, Any] = {}
    for lifespan in lifespans:
        given = await stack.enter_async_context(lifespan())
        if given is not None:
            shared.update(given)
    for task in tasks:
        missing = set(task.arguments.shared.values()) - set(shared)
        if missing:
            raise InvalidHandler(
                f"{task.name} needs {', '.join(sorted(missing))}, which no lifespan provides."
            )
    return shared


async def execute(definition: TaskFunction[..., Any], run: Run, around: Surroundings) -> Outcome:
    """Run a handler and return its outcome. Never raises."""
    try:
        task = run.task
        if task.spec.inputs:
            payload = await _with_inputs(task, around)
            values = definition.arguments.take(payload, task.spec.inputs)
            del payload  # it may be large
        elif task.payload.startswith(blobs.OPENING):
            values = definition.arguments.decode(await _load(task, task.payload, around))
        else:
            values = definition.arguments.decode(task.payload)
        return returned(await _call(definition, run, around, values), definition.codec)
    except (Locked, Elsewhere) as error:
        return put_off(error, run.task, around.notices)
    except BaseException as error:  # noqa: BLE001 (whatever a handler raises is an outcome)
        return raised(error, definition.terms)


def _call(
    definition: TaskFunction[..., Any], run: Run, around: Surroundings, values: dict[str, Any]
) -> Awaitable[Any]:
    """Call a handler. Not a coroutine itself: most handlers are, and one is enough."""
    arguments, handler = definition.arguments, definition.handler
    if arguments.shared:
        values |= {name: around.shared[source] for name, source in arguments.shared.items()}
    if not arguments.wants_context and not around.middleware:
        if definition.is_async:
            awaited: Awaitable[Any] = handler(**values)
            return awaited
        return _call_blocking(definition.name, lambda: handler(**values), around)
    context = Context(run, definition.app, around.shared, logger.getChild(definition.name))
    given = (context,) if arguments.wants_context else ()

    async def innermost() -> Any:
        if definition.is_async:
            return await handler(*given, **values)
        return await _call_blocking(definition.name, lambda: handler(*given, **values), around)

    call: Callable[[], Awaitable[Any]] = innermost
    for middleware in reversed(around.middleware):
        call = _wrapped(middleware, context, call)
    return call()


class Elsewhere(BlobStoreMissing):
    """The payload, or a result that belongs to it, is in a blob store, or encrypted with a key,
    that only other workers have."""


class NotLoaded(Exception):
    """A payload by reference, or a result that belongs to it, cannot be read, which has this
    outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


async def _load(task: Claimed, payload: bytes, around: Surroundings) -> bytes:
    try:
        return await around.load(task.task_id, payload)
    except (KeyMissing, BlobStoreMissing) as error:
        raise Elsewhere(error.message) from None
    except (BlobMissing, BlobDamaged, SealBroken) as error:
        raise NotLoaded(_for_good(error.code.upper(), error.message)) from None
    except StoreError as error:
        # Retried whatever the handler's retry_on says: its code has not run.
        raise NotLoaded(Failed(_error(error, code=error.code.upper()))) from None


async def prepared(
    definition: TaskFunction[..., Any], task: Claimed, around: Surroundings
) -> Claimed | Outcome:
    """Return a task with its inputs, to be executed elsewhere; its outcome if it has none of them.
    Never raises."""
    try:
        payload = await _with_inputs(task, around)
    except Elsewhere as error:
        return put_off(error, task, around.notices)
    except BaseException as error:  # noqa: BLE001 (a cancellation is an outcome too)
        return raised(error, definition.terms)
    return msgspec.structs.replace(task, payload=payload)


async def _with_inputs(task: Claimed, around: Surroundings) -> bytes:
    """Return the payload of a task with its inputs."""
    payload, spec = task.payload, task.spec
    try:
        check_open(payload)
        payload, inputs = parted(payload, spec.inputs)
    except (KeyMissing, SealBroken, msgspec.MsgspecError, UnicodeError):
        return payload  # decoding says why it cannot be read
    if payload.startswith(blobs.OPENING):
        payload = await _load(task, payload, around)
    if inputs.keys() == spec.inputs.keys():
        return spliced(payload, inputs)  # a server has merged them
    try:
        return merged(payload, spec, await around.parents(spec))
    except StoreError as error:
        outcome = unmerged(error, task, around.notices)
    raise NotLoaded(outcome)


def unmerged(error: StoreError, task: Claimed, notices: Notices) -> Outcome:
    """Return the outcome of a task whose inputs cannot be read."""
    if isinstance(error, KeyMissing | DriverMissing):
        return put_off(error, task, notices)
    if isinstance(error, InputMissing):
        return _for_good(error.code.upper(), error.message)
    # Retried whatever the handler's retry_on says: its code has not run.
    return Failed(_error(error, code=error.code.upper()))


async def _call_blocking(type: str, call: Call, around: Surroundings) -> Any:
    value = await around.blocking(type, call)
    # A decorator around an async handler may be an ordinary function that returns a coroutine.
    return await value if inspect.iscoroutine(value) else value


def _wrapped(
    middleware: Middleware, context: Context, call: Callable[[], Awaitable[Any]]
) -> Callable[[], Awaitable[Any]]:
    return lambda: middleware(context, call)


def returned(
    value: Any, codec: NamedCodec | None = None, most: int = limits.RESULT_BYTES
) -> Outcome:
    """Return the outcome of a handler that returned."""
    if value is None:
        return _NOTHING
    try:
        result = plain(encoded(value)) if codec is None else codec.encode(value)
    except BaseException as error:  # noqa: BLE001 (a value's own code runs here)
        return _for_good(BAD_RESULT, f"The result cannot be encoded: {text_of(error)}.")
    if len(result) > most:
        return _for_good(
            RESULT_TOO_LARGE,
            f"The result has {len(result):,} bytes of JSON, the limit is {most:,}: store it "
            "elsewhere and return a reference to it.",
        )
    return Completed(result)


_NOTHING = Completed(b"null")


def raised(error: BaseException, terms: Terms) -> Outcome:
    """Return the outcome of a handler that raised."""
    match error:
        case Snooze():
            return Snoozed(error.seconds)
        case Retry():
            return Failed(_error(error, code="RETRY"), error.after)
        case Fail():
            return Failed(_error(error, code=error.code, retriable=False))
        case Locked():
            return Snoozed(LOCKED_SECONDS)
        case Unreadable():
            return unreadable(error)
        case NotLoaded():
            return error.outcome
        case Unanswered():
            return _for_good(error.code.upper(), error.message)
        case asyncio.CancelledError() | SystemExit() | KeyboardInterrupt() | GeneratorExit():
            # The handler raised it: a stop of the worker does not arrive here.
            return Failed(_error(error))
        case _:
            retriable = isinstance(error, terms.retry_on) and not isinstance(
                error, terms.no_retry_on
            )
            return Failed(_error(error, retriable=retriable))


def put_off(
    error: KeyMissing | BlobStoreMissing | DriverMissing, task: Claimed, notices: Notices
) -> Snoozed:
    """Return the outcome of a task whose key, blob store or library is missing here: it waits for a
    worker that has it, each time twice as long."""
    notices.error(f"Tasks that cannot be read here are snoozed. {error.message}")
    return Snoozed(min(LOCKED_SECONDS * 2 ** min(task.attempt - 1, 10), LOCKED_MOST_SECONDS))


def unreadable(error: Exception) -> Failed:
    """Return the outcome of a task whose payload cannot be read."""
    return _for_good(UNREADABLE, text_of(error))


def refused(error: Exception) -> Failed:
    """Return the outcome of a run whose own outcome the store refuses for good."""
    return _for_good(RESULT_REFUSED, f"The result cannot be stored: {text_of(error)}")


def text_of(error: BaseException) -> str:
    """Return an exception's message, or its class if it has none or cannot produce it."""
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 (its __str__ is the handler's code)
        message = ""
    return message or type(error).__name__


def _error(error: BaseException, *, code: str | None = None, retriable: bool = True) -> TaskError:
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
    """Return a run's outcome with its fence."""
    return Settlement(
        task.task_id, task.attempt, task.worker_id, outcome, task, seconds, random.random()
    )
