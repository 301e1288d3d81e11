"""An application's tasks, and everything one can ask about them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, Unpack, cast, overload
from weakref import WeakKeyDictionary

from fairlane.client import asking, results
from fairlane.client.connection import Connection
from fairlane.client.decorator import Decorator
from fairlane.client.inline import Inline
from fairlane.client.submit import Submitter
from fairlane.core.backend import Backend
from fairlane.core.errors import InvalidHandler
from fairlane.core.filters import Page
from fairlane.core.flow import Op, perform, perform_async
from fairlane.core.model import Accepted, Cancelled, NewTask, Replayed, Task
from fairlane.core.sealing import Key, keys_of
from fairlane.core.stats import Stats
from fairlane.runtime.calls import Prepared
from fairlane.runtime.context import Context
from fairlane.runtime.execution import Middleware
from fairlane.runtime.handle import Handle
from fairlane.runtime.lifespans import Lifespan
from fairlane.runtime.task import Isolation, Options, TaskFunction, Terms
from fairlane.telemetry.tracing import spans, submitting

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

# `list` is a verb of the application, so lists are named here.
Answers = list[Accepted]
Found = list[Task | None]
Handles = list[Handle[Any]]


class Fairlane:
    """A store, the tasks that are defined for it, and what a worker needs to run them.

    Nothing is opened before the first call. A store that is empty or older is brought up to date
    then, unless `migrate=False`. What is awaited has a twin for ordinary code, which blocks: the
    same name with `_sync` behind it (`aclose` has `close`).

    With `encryption_keys` ("id:base64" each, see `fairlane key`) payloads and results are stored
    sealed: by the first key, and whatever any of them has sealed can be read. `token` is for a
    store that is a server, http:// or https://.
    """

    def __init__(
        self,
        url: str = "sqlite:///fairlane.db",
        *,
        migrate: bool = True,
        encryption_keys: str | Iterable[str | Key] = (),
        token: str | None = None,
        **engine: Any,
    ):
        self.tasks: dict[str, TaskFunction[..., Any]] = {}
        self.lifespans: list[Lifespan] = []
        self.middleware: list[Middleware] = []
        keys = keys_of(encryption_keys)
        self._connection = Connection(url, keys, token, engine, migrate=migrate)
        self._guard = threading.Lock()
        self._inline: Inline | None = None
        self._gatherers: WeakKeyDictionary[asyncio.AbstractEventLoop, Gatherers]
        self._gatherers = WeakKeyDictionary()

    # -- defining tasks ----------------------------------------------------------------------------

    @overload
    def task(
        self,
        handler: None = None,
        /,
        *,
        name: str | None = None,
        rate_limit: float | None = None,
        concurrency: int | None = None,
        isolation: Isolation | None = None,
        memory_limit: int | None = None,
        retry_on: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        no_retry_on: type[BaseException] | tuple[type[BaseException], ...] = (),
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
        rate_limit: float | None = None,
        concurrency: int | None = None,
        isolation: Isolation | None = None,
        memory_limit: int | None = None,
        retry_on: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        no_retry_on: type[BaseException] | tuple[type[BaseException], ...] = (),
        **options: Any,
    ) -> Any:
        """Make a function a task: `@app.task` or `@app.task(priority="high", …)`.

        `rate_limit` and `concurrency` are set in the store by the first worker that starts, and
        from then on are the operator's to change. `isolation="process"`: it runs in a process of
        its own, which can be killed, and gets at most `memory_limit` bytes of memory.
        """
        terms = Terms(
            rate_limit=rate_limit,
            concurrency=concurrency,
            isolation=isolation,
            memory_limit=memory_limit,
            retry_on=_classes(retry_on),
            no_retry_on=_classes(no_retry_on),
        )
        decorator = Decorator(self, self.register, name, terms, cast(Options, options))
        return decorator if handler is None else decorator(handler)

    def register(self, task: TaskFunction[..., Any]) -> None:
        """Take in a task that was made elsewhere."""
        if task.name in self.tasks:
            raise InvalidHandler(
                f"There are two tasks by the name of {task.name}: give one of them another, "
                '@app.task(name="…").'
            )
        self.tasks[task.name] = task

    def lifespan(self, enter: Lifespan) -> Lifespan:
        """What a worker does when it starts and when it stops: an async context manager.

        What it gives (a dict) is `ctx.shared`, and fills in parameters marked with `Shared`.
        """
        self.lifespans.append(enter)
        return enter

    def around(self, middleware: Middleware) -> Middleware:
        """Wrap every run: `async def timed(ctx, run): …; return await run()`. First added, first
        entered."""
        self.middleware.append(middleware)
        return middleware

    # -- submitting --------------------------------------------------------------------------------

    async def submit(self, call: Prepared[R], *, connection: Any = None) -> Handle[R]:
        """Submit a prepared call. Concurrent submissions travel together.

        On a `connection` of the caller's own, to the store's database, the task exists if and only
        if the caller's transaction commits (PostgreSQL and SQLite).
        """
        if connection is not None:
            (handle,) = await self.submit_many([call], connection=connection)
            return handle
        submitter = self._here().submitter
        traces = spans()
        if traces is None:  # nearly always, so at next to no cost
            accepted = await submitter.submit(call.task)
        else:
            with traces.sending((call.task,)) as (task,):
                accepted = await submitter.submit(task)
        await self._run_in_place([call])
        return self._handle(call, accepted)

    def submit_sync(self, call: Prepared[R], *, connection: Any = None) -> Handle[R]:
        """The same from ordinary code."""
        (handle,) = self.submit_many_sync([call], connection=connection)
        return handle

    async def submit_many(
        self, calls: Iterable[Prepared[Any]], *, connection: Any = None
    ) -> Handles:
        """Submit any number of calls, a thousand in one go; each thousand is all or none."""
        calls = tuple(calls)
        run = partial(self._connection.run, own=None if self._inline else connection)
        with submitting([call.task for call in calls]) as tasks:
            answers = await perform_async(asking.submitted(self.backend.ops, tasks), run)
        await self._run_in_place(calls)
        return list(map(self._handle, calls, answers))

    def submit_many_sync(
        self, calls: Iterable[Prepared[Any]], *, connection: Any = None
    ) -> Handles:
        """The same from ordinary code."""
        calls = tuple(calls)
        run = partial(self._connection.run_sync, own=None if self._inline else connection)
        with submitting([call.task for call in calls]) as tasks:
            answers = perform(asking.submitted(self.backend.ops, tasks), run)
        if self._inline is not None:
            _in_a_loop(self._run_in_place(calls))
        return list(map(self._handle, calls, answers))

    def _handle(self, call: Prepared[R], accepted: Accepted) -> Handle[R]:
        return Handle(self, accepted.task_id, call.hint, known=accepted.known)

    # -- asking ------------------------------------------------------------------------------------

    async def get(self, task_id: str) -> Task | None:
        """The task as it stands."""
        return await perform_async(asking.found(self.backend.ops, task_id), self.run)

    def get_sync(self, task_id: str) -> Task | None:
        """The same from ordinary code."""
        return perform(asking.found(self.backend.ops, task_id), self.run_sync)

    async def list(self, limit: int = 50, cursor: str | None = None, **filter: Any) -> Page:
        """Tasks, newest first, that fulfil `filter`: see `fairlane.core.filters.new_filter`."""
        return await perform_async(asking.listed(self.backend.ops, limit, cursor, filter), self.run)

    def list_sync(self, limit: int = 50, cursor: str | None = None, **filter: Any) -> Page:
        """The same from ordinary code."""
        return perform(asking.listed(self.backend.ops, limit, cursor, filter), self.run_sync)

    async def cancel(self, task_id: str) -> Cancelled:
        """End a task as cancelled."""
        return await perform_async(asking.cancelled(self.backend.ops, task_id), self.run)

    def cancel_sync(self, task_id: str) -> Cancelled:
        """The same from ordinary code."""
        return perform(asking.cancelled(self.backend.ops, task_id), self.run_sync)

    async def retry(
        self, task_id: str, *, priority: str | int | None = None, reset_retry_count: bool = True
    ) -> Replayed:
        """Make a task ready again that failed, died, was cancelled, or waits for its time."""
        flow = asking.retried(
            self.backend.ops, task_id, priority, reset_retry_count=reset_retry_count
        )
        return await perform_async(flow, self.run)

    def retry_sync(
        self, task_id: str, *, priority: str | int | None = None, reset_retry_count: bool = True
    ) -> Replayed:
        """The same from ordinary code."""
        flow = asking.retried(
            self.backend.ops, task_id, priority, reset_retry_count=reset_retry_count
        )
        return perform(flow, self.run_sync)

    async def stats(self) -> Stats:
        """Depths, ages, workers, throughput, recovery."""
        return await self.run(self.backend.ops.stats())

    def stats_sync(self) -> Stats:
        """The same from ordinary code."""
        return self.run_sync(self.backend.ops.stats())

    async def ended(self, task_id: str) -> Task | None:
        """The task once it has ended."""
        return await self._here().results.ended(task_id)

    def ended_sync(self, task_id: str, timeout: float | None = None) -> Task | None:
        """The same from ordinary code, which cannot be cancelled: raises TimeoutError instead."""
        return results.ended(self.get_sync, task_id, timeout)

    async def result(self, task_id: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """What a task returned, by its id: see `Handle.result`."""
        return await Handle[Any](self, task_id, Any).result(timeout)

    def result_sync(self, task_id: str, timeout: float | None = None) -> Any:
        """The same from ordinary code."""
        return Handle[Any](self, task_id, Any).result_sync(timeout)

    # -- for tests ---------------------------------------------------------------------------------

    @contextmanager
    def inline(self) -> Iterator[None]:
        """Within this block tasks run where they are submitted, on a store in memory.

        With all their retries, and without waiting for their time: when a submission returns, its
        task has ended.
        """
        before = self._inline
        with self._connection.elsewhere("sqlite://"):
            self._inline = self.runner()
            try:
                yield
            finally:
                self._inline = before

    def runner(self) -> Inline:
        """Runs this application's tasks without a worker."""
        self._connection.prepare()
        return Inline(self.backend, self.tasks, self.lifespans, self.middleware)

    async def _run_in_place(self, calls: Iterable[Prepared[Any]]) -> None:
        if self._inline is not None:
            self._inline.learn(call.task for call in calls)
            await self._inline.work(skip_time=True)

    # -- the store ---------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where the store is; may be changed before it is opened."""
        return self._connection.url

    @url.setter
    def url(self, url: str) -> None:
        self._connection.url = url

    @property
    def encryption_keys(self) -> tuple[Key, ...]:
        """What payloads and results are sealed with; may be changed before the store is opened."""
        return self._connection.keys

    @encryption_keys.setter
    def encryption_keys(self, keys: tuple[Key, ...]) -> None:
        self._connection.keys = keys

    @property
    def token(self) -> str | None:
        """What a server knows us by; may be changed before the store is opened."""
        return self._connection.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._connection.token = token

    @property
    def backend(self) -> Backend:
        """The store, opened when it is first needed."""
        return self._connection.backend

    async def run(self, op: Op[T]) -> T:
        """Perform an operation on the store, prepared if need be."""
        return await self._connection.run(op)

    def run_sync(self, op: Op[T]) -> T:
        """The same from ordinary code."""
        return self._connection.run_sync(op)

    async def aclose(self) -> None:
        """Let go of connections, threads and files. The application can be used again."""
        await self._connection.aclose()

    def close(self) -> None:
        """The same from ordinary code."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _here(self) -> Gatherers:
        """What gathers the calls of the running loop: each loop has its own."""
        loop = asyncio.get_running_loop()
        with self._guard:
            if loop not in self._gatherers:
                self._gatherers[loop] = Gatherers(
                    Submitter(self._send), results.Results(self._get_all)
                )
            return self._gatherers[loop]

    async def _send(self, tasks: Sequence[NewTask]) -> Answers:
        return await self.run(self.backend.ops.submit(tasks))

    async def _get_all(self, task_ids: Sequence[str]) -> Found:
        return await self.run(self.backend.ops.get(task_ids))


class Gatherers(NamedTuple):
    """What gathers submissions, and waiting for results, of one event loop."""

    submitter: Submitter
    results: results.Results


def _in_a_loop(work: Coroutine[Any, Any, None]) -> None:
    """Do what is asynchronous from ordinary code, whatever thread it is on."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def _classes(
    given: type[BaseException] | tuple[type[BaseException], ...],
) -> tuple[type[BaseException], ...]:
    return given if isinstance(given, tuple) else (given,)
