"""An application's tasks, and everything one can ask about them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, Unpack, cast, overload
from weakref import WeakKeyDictionary

from fairlane.client.calls import Prepared
from fairlane.client.connection import Connection
from fairlane.client.context import Context
from fairlane.client.decorator import Decorator
from fairlane.client.execution import Middleware
from fairlane.client.handle import Handle
from fairlane.client.inline import Inline
from fairlane.client.lifespans import Lifespan
from fairlane.client.results import Results
from fairlane.client.submit import Submitter
from fairlane.client.task import Isolation, Options, TaskFunction, Terms
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.errors import InvalidHandler
from fairlane.core.filters import EVERYTHING, Page, new_filter
from fairlane.core.flow import Op
from fairlane.core.model import Accepted, Cancelled, NewTask, Replayed, Task
from fairlane.core.priority import level_of
from fairlane.core.stats import Stats

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
    then, unless `migrate=False`.
    """

    def __init__(self, url: str = "sqlite:///fairlane.db", *, migrate: bool = True, **engine: Any):
        self.tasks: dict[str, TaskFunction[..., Any]] = {}
        self.lifespans: list[Lifespan] = []
        self.middleware: list[Middleware] = []
        self._connection = Connection(url, engine, migrate=migrate)
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
        retry_on: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        no_retry_on: type[BaseException] | tuple[type[BaseException], ...] = (),
        **options: Any,
    ) -> Any:
        """Make a function a task: `@app.task` or `@app.task(priority="high", …)`.

        `rate_limit` and `concurrency` are set in the store by the first worker that starts, and
        from then on are the operator's to change.
        """
        terms = Terms(
            rate_limit=rate_limit,
            concurrency=concurrency,
            isolation=isolation,
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

    async def submit(self, call: Prepared[R]) -> Handle[R]:
        """Submit a prepared call. Concurrent submissions travel together."""
        accepted = await self._here().submitter.submit(call.task)
        await self._run_in_place([call.task])
        return Handle(self, accepted.task_id, call.hint, known=accepted.known)

    def submit_sync(self, call: Prepared[R]) -> Handle[R]:
        """The same from ordinary code."""
        (accepted,) = self.run_sync(self.backend.ops.submit([call.task]))
        if self._inline is not None:
            _in_a_loop(self._run_in_place([call.task]))
        return Handle(self, accepted.task_id, call.hint, known=accepted.known)

    async def submit_many(self, calls: Iterable[Prepared[Any]]) -> Handles:
        """Submit any number of calls, a thousand in one go; each thousand is all or none."""
        calls = tuple(calls)
        handles: Handles = []
        for start in range(0, len(calls), limits.SUBMIT_BATCH):
            batch = calls[start : start + limits.SUBMIT_BATCH]
            tasks = [call.task for call in batch]
            accepted = await self._send(tasks)
            await self._run_in_place(tasks)
            handles += [
                Handle(self, each.task_id, call.hint, known=each.known)
                for call, each in zip(batch, accepted, strict=True)
            ]
        return handles

    # -- asking ------------------------------------------------------------------------------------

    async def get(self, task_id: str) -> Task | None:
        """The task as it stands."""
        (task,) = await self.run(self.backend.ops.get([task_id]))
        return task

    async def list(self, limit: int = 50, cursor: str | None = None, **filter: Any) -> Page:
        """Tasks, newest first, that fulfil `filter`: see `fairlane.core.filters.new_filter`."""
        chosen = new_filter(**filter) if filter else EVERYTHING
        while True:
            page = await self.run(self.backend.ops.page(chosen, limit, cursor))
            if page.tasks or page.next_cursor is None:
                return page
            cursor = page.next_cursor

    async def cancel(self, task_id: str) -> Cancelled:
        """End a task as cancelled."""
        (answer,) = await self.run(self.backend.ops.cancel([task_id]))
        return answer

    async def retry(
        self, task_id: str, *, priority: str | int | None = None, reset_retry_count: bool = True
    ) -> Replayed:
        """Make a task ready again that failed, died, was cancelled, or waits for its time."""
        level = None if priority is None else level_of(priority)
        op = self.backend.ops.replay([task_id], reset_retry_count=reset_retry_count, level=level)
        (answer,) = await self.run(op)
        return answer

    async def stats(self) -> Stats:
        """Depths, ages, workers, throughput, recovery."""
        return await self.run(self.backend.ops.stats())

    async def ended(self, task_id: str) -> Task | None:
        """The task once it has ended."""
        return await self._here().results.ended(task_id)

    async def result(self, task_id: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """What a task returned, by its id: see `Handle.result`."""
        return await Handle[Any](self, task_id, Any).result(timeout)

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

    async def _run_in_place(self, tasks: Sequence[NewTask]) -> None:
        if self._inline is not None:
            self._inline.learn(tasks)
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
                self._gatherers[loop] = Gatherers(Submitter(self._send), Results(self._get_all))
            return self._gatherers[loop]

    async def _send(self, tasks: Sequence[NewTask]) -> Answers:
        return await self.run(self.backend.ops.submit(tasks))

    async def _get_all(self, task_ids: Sequence[str]) -> Found:
        return await self.run(self.backend.ops.get(task_ids))


class Gatherers(NamedTuple):
    """What gathers submissions, and waiting for results, of one event loop."""

    submitter: Submitter
    results: Results


def _in_a_loop(work: Coroutine[Any, Any, None]) -> None:
    """Do what is asynchronous from ordinary code, whatever thread it is on."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def _classes(
    given: type[BaseException] | tuple[type[BaseException], ...],
) -> tuple[type[BaseException], ...]:
    return given if isinstance(given, tuple) else (given,)
