"""`Fairlane`: an application's tasks, and every request one can make about them."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar, overload
from weakref import WeakKeyDictionary

from fairlane.client import requests
from fairlane.client.batching import Batcher, ResultWaiter, refuse_in_event_loop, wait_sync
from fairlane.client.blobs import Blobs, checked, is_affected
from fairlane.client.connection import StoreConnection
from fairlane.client.definitions import Definitions
from fairlane.client.inline import Inline, run_in_thread
from fairlane.client.memory_store import MemoryStore
from fairlane.client.schedule_declarations import declare
from fairlane.client.schedules import InPlace, Schedules
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.blobs import BlobStore
from fairlane.core.compression import compression_limit
from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import InvalidTask
from fairlane.core.flow import Flow, Op, perform, perform_async
from fairlane.core.ids import checked as checked_id
from fairlane.core.membership import checked_on_failure
from fairlane.core.model import Accepted, Cancelled, NewTask, OnFailure, Replayed
from fairlane.core.model import Task as StoredTask
from fairlane.core.priority import Aging
from fairlane.core.retention import Retention
from fairlane.core.sealing import Key, keys_of
from fairlane.core.stats import Stats
from fairlane.core.store import Operations
from fairlane.core.store_settings import Changes, changes_to
from fairlane.core.why import Reason
from fairlane.core.workflow_list import WorkflowPage, new_workflow_filter
from fairlane.runtime.calls import Handle
from fairlane.runtime.graph import Graph
from fairlane.runtime.planning import Plan, plan_of
from fairlane.runtime.shapes import Prepared, Shape, leaves
from fairlane.runtime.tasks import Task, TaskList, readable, readable_page
from fairlane.runtime.workflows import WorkflowHandle
from fairlane.telemetry.tracing import spans, submitting

R = TypeVar("R")
T = TypeVar("T")

# `list` is a method of the application, so these types get their names here.
Answers = list[Accepted]
Found = list[StoredTask | None]
Handles = list[Handle[Any]]
Results = list[R]
Reasons = list[Reason]
Submission = Callable[[Operations, Sequence[NewTask]], Flow[Answers]]


class Fairlane(Definitions):
    """A store, the tasks that are defined for it, and what a worker needs to run them.

    Nothing is opened before the first call. That call also creates the schema of an empty store and
    migrates an older one, unless `migrate=False`. A store that is emptied later (FLUSHALL, DROP
    SCHEMA, a deleted file) is made again, unless `remake=False` or `migrate=False`. Every coroutine
    has a blocking twin for code without an event loop: the same name with `_sync` appended
    (`aclose` has `close`). Twins block for a round trip to the store; those that wait for a task
    to end are refused where an event loop runs.

    With `encryption_keys` ("id:base64" each, see `fairlane key`) payloads and results are stored
    encrypted with the first key; data encrypted with any of the keys can be read. With
    `compress_results` results of more than so many bytes are stored compressed (zstd), by whoever
    runs the tasks; every reader gets them plain. `token` is for a store that is a server, http://
    or https://. With `blobs`, payloads above 256 KiB are kept apart: in a folder
    ("file:///var/lib/fairlane/blobs"), in a bucket ("s3://bucket/prefix"), in the store itself
    ("store"), or in a `BlobStore` of your own.

    `include` names modules that define further tasks of this application. Workers import them
    before they start; "shop.tasks.*" stands for all modules in the package `shop.tasks`.

    `name` is the application's, in all its processes and versions: it owns the schedules that its
    code declares (see `cron`). Applications that share a store need different names.

    `aging`, `retention` and `requeue_spread` are settings of the store, which hold for every
    process that uses it. An application that names them sets them when it opens the store; without
    them the store keeps what it has. If two applications disagree, the one that opened the store
    last is right. `requeue_spread` is the number of seconds over which the tasks that a dead worker
    had started come back; 0, the default, means that all come back at once.
    """

    def __init__(
        self,
        url: str = "sqlite:///fairlane.db",
        *,
        migrate: bool = True,
        remake: bool = True,
        encryption_keys: str | Iterable[str | Key] = (),
        compress_results: int | None = None,
        token: str | None = None,
        blobs: str | BlobStore | None = None,
        aging: Aging | None = None,
        retention: Retention | None = None,
        requeue_spread: float | None = None,
        include: Iterable[str] = (),
        name: str = "default",
        **engine: Any,
    ):
        super().__init__(include, name)
        keys = keys_of(encryption_keys)
        settings = changes_to(aging, retention, requeue_spread)
        above = None if compress_results is None else compression_limit(compress_results)
        self._connection = StoreConnection(
            url,
            keys,
            token,
            engine,
            settings,
            compress_results=above,
            migrate=migrate,
            remake=remake,
        )
        self.blobs = blobs
        self._guard = threading.Lock()
        self._inline: Inline | None = None
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopState]
        self._loops = WeakKeyDictionary()

    # -- submitting --------------------------------------------------------------------------------

    @overload
    async def submit(self, call: Prepared[R], *, connection: Any = None) -> Handle[R]: ...
    @overload
    async def submit(
        self, call: Shape[R], *, connection: Any = None, on_failure: str = OnFailure.CONTINUE
    ) -> WorkflowHandle[R]: ...
    async def submit(
        self,
        call: Prepared[Any] | Shape[Any],
        *,
        connection: Any = None,
        on_failure: str = OnFailure.CONTINUE,
    ) -> Handle[Any] | WorkflowHandle[Any]:
        """Submit a prepared call, or several as a workflow, which are stored all or none.
        Concurrent submissions of calls share a round trip.

        With the caller's own `connection` to the store's database, the task exists if and only if
        the caller's transaction commits (PostgreSQL and SQLite).

        `on_failure` is about workflows, see `graph`.
        """
        if isinstance(call, Shape):
            return await self.submit_plan(_plan_of(call, on_failure), connection=connection)
        if connection is not None:
            (handle,) = await self.submit_many([call], connection=connection)
            return handle
        submissions = self._loop_state().submissions
        self._check_own(call)
        task = call.task
        if is_affected(task):
            (task,) = await self._by_reference((task,))
        traces = spans()
        if traces is None:  # the common case, kept fast
            accepted = await submissions.send(task)
        else:
            with traces.sending((task,)) as (traced,):
                accepted = await submissions.send(traced)
        await self._run_in_place()
        return self._handle(call, accepted)

    @overload
    def submit_sync(self, call: Prepared[R], *, connection: Any = None) -> Handle[R]: ...
    @overload
    def submit_sync(
        self, call: Shape[R], *, connection: Any = None, on_failure: str = OnFailure.CONTINUE
    ) -> WorkflowHandle[R]: ...
    def submit_sync(
        self,
        call: Prepared[Any] | Shape[Any],
        *,
        connection: Any = None,
        on_failure: str = OnFailure.CONTINUE,
    ) -> Handle[Any] | WorkflowHandle[Any]:
        """Blocking twin of `submit`."""
        if isinstance(call, Shape):
            return self.submit_plan_sync(_plan_of(call, on_failure), connection=connection)
        (handle,) = self.submit_many_sync([call], connection=connection)
        return handle

    async def submit_many(
        self, calls: Iterable[Prepared[Any]], *, connection: Any = None
    ) -> Handles:
        """Submit any number of calls, a thousand at a time; each thousand is all or none."""
        return await self._submit_calls(calls, requests.submit, connection)

    async def _submit_calls(
        self, calls: Iterable[Prepared[Any]], request: Submission, connection: Any
    ) -> Handles:
        calls = self._own(calls)
        run = partial(self._connection.run, own=connection)
        prepared = await self._by_reference([call.task for call in calls], connection)
        with submitting(prepared) as tasks:
            answers = await perform_async(request(self.backend.ops, tasks), run)
        await self._run_in_place(connection)
        return list(map(self._handle, calls, answers))

    def submit_many_sync(
        self, calls: Iterable[Prepared[Any]], *, connection: Any = None
    ) -> Handles:
        """Blocking twin of `submit_many`."""
        calls = self._own(calls)
        answers = self.submit_tasks_sync([call.task for call in calls], connection=connection)
        self._run_in_place_sync(connection)
        return list(map(self._handle, calls, answers))

    async def submit_plan(self, plan: Plan, *, connection: Any = None) -> WorkflowHandle[Any]:
        """Submit a planned workflow: all of its tasks are stored, or none."""
        await self._submit_calls(plan.calls, requests.submit_workflow, connection)
        return WorkflowHandle(self, plan.workflow_id, plan)

    def submit_plan_sync(self, plan: Plan, *, connection: Any = None) -> WorkflowHandle[Any]:
        """Blocking twin of `submit_plan`."""
        calls = self._own(plan.calls)
        self._submit_tasks_sync([call.task for call in calls], requests.submit_workflow, connection)
        self._run_in_place_sync(connection)
        return WorkflowHandle(self, plan.workflow_id, plan)

    def graph(self, name: str, *, on_failure: str = OnFailure.CONTINUE) -> Graph:
        """Return a workflow to be built a task at a time: see `Graph`.

        `on_failure`: when a task has ended badly, `"continue"` lets those go on that do not depend
        on it; `"cancel"` cancels all that has not ended, running tasks too.
        """
        return Graph(self, name, on_failure)

    def workflow(self, workflow_id: str) -> WorkflowHandle[Any]:
        """Return a handle for a workflow that was submitted before."""
        return WorkflowHandle(self, checked_id(workflow_id))

    async def workflows(
        self,
        limit: int = 50,
        cursor: str | None = None,
        *,
        state: str | Iterable[str] | None = None,
        name: str | None = None,
    ) -> WorkflowPage:
        """Return a page of the workflows with this name, in one of these states, newest first.

        A page may be short although there are more: then it has a `next_cursor`.
        """
        chosen = new_workflow_filter(state, name)
        flow = requests.list_workflows(self.backend.ops, chosen, limit, cursor)
        return await perform_async(flow, self.run)

    def workflows_sync(
        self,
        limit: int = 50,
        cursor: str | None = None,
        *,
        state: str | Iterable[str] | None = None,
        name: str | None = None,
    ) -> WorkflowPage:
        """Blocking twin of `workflows`."""
        chosen = new_workflow_filter(state, name)
        flow = requests.list_workflows(self.backend.ops, chosen, limit, cursor)
        return perform(flow, self.run_sync)

    def submit_tasks_sync(self, tasks: Sequence[NewTask], *, connection: Any = None) -> Answers:
        """Submit tasks that `new_task` made, which need no definitions here; return the answers."""
        return self._submit_tasks_sync(tasks, requests.submit, connection)

    def _submit_tasks_sync(
        self, tasks: Sequence[NewTask], request: Submission, connection: Any
    ) -> Answers:
        run = partial(self._connection.run_sync, own=connection)
        if any(map(is_affected, tasks)):
            blobs = self.payload_blobs()
            tasks = blobs.run_sync(blobs.save(tasks, joined=connection is not None), run)
        with submitting(tasks) as traced:
            return perform(request(self.backend.ops, traced), run)

    async def _by_reference(
        self, tasks: Sequence[NewTask], connection: Any = None
    ) -> Sequence[NewTask]:
        """Write payloads that are too large for a task as blobs."""
        if not any(map(is_affected, tasks)):
            return tasks
        blobs = self.payload_blobs()
        run = partial(self._connection.run, own=connection)
        return await blobs.run(blobs.save(tasks, joined=connection is not None), run)

    def _own(self, calls: Iterable[Prepared[Any]]) -> tuple[Prepared[Any], ...]:
        found = tuple(calls)
        for call in found:
            self._check_own(call)
        return found

    def _check_own(self, call: Prepared[Any]) -> None:
        """Raise InvalidTask if the call is of a task that another application defines."""
        if call.app is not None and call.app is not self and call.app.url != self.url:
            raise InvalidTask(
                f"{call.task.type} is a task of another application, whose workers use another "
                "store: submit the call there, or define the task in this application."
            )

    def _handle(self, call: Prepared[R], accepted: Accepted) -> Handle[R]:
        return Handle(self, accepted.task_id, call.hint, known=accepted.known)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """Open a transaction of the store's database, and yield its connection.

        What you write on it, and the tasks that you submit with `connection=` it, take effect
        together when the block ends, or not at all if it raises. The connection is that of
        `sqlite3` on SQLite, where the transaction holds Fairlane's lock, so that it is safe with
        every version of SQLite; and of asyncpg on PostgreSQL. Raises NotSupported on Redis.
        """
        backend = await self._connection.prepared()
        async with backend.driver.transaction() as transaction:
            yield transaction.connection
        await self._run_in_place()

    @contextmanager
    def transaction_sync(self) -> Iterator[Any]:
        """Blocking twin of `transaction`, on SQLite. On PostgreSQL, use your own connection."""
        self._connection.prepare()
        with self.backend.driver.transaction_sync() as connection:
            yield connection
        self._run_in_place_sync()

    # -- querying and changing ---------------------------------------------------------------------

    async def get(self, task_id: str) -> Task | None:
        """Return the task, or None if there is none."""
        return self._readable(
            await perform_async(requests.get(self.backend.ops, task_id), self.run)
        )

    def get_sync(self, task_id: str) -> Task | None:
        """Blocking twin of `get`."""
        return self._readable(perform(requests.get(self.backend.ops, task_id), self.run_sync))

    async def list(self, limit: int = 50, cursor: str | None = None, **filter: Any) -> TaskList:
        """Return a page of the tasks that match `filter`, newest first.

        The filters are status, type, queue and priority (one value or several), tags, worker,
        since, until, ended_before, workflow_id, schedule_id and owner.
        """
        flow = requests.list_tasks(self.backend.ops, limit, cursor, filter)
        return readable_page(await perform_async(flow, self.run), self.codecs)

    def list_sync(self, limit: int = 50, cursor: str | None = None, **filter: Any) -> TaskList:
        """Blocking twin of `list`."""
        flow = requests.list_tasks(self.backend.ops, limit, cursor, filter)
        return readable_page(perform(flow, self.run_sync), self.codecs)

    async def cancel(self, task_id: str) -> Cancelled:
        """End a task as cancelled."""
        return await perform_async(requests.cancel(self.backend.ops, task_id), self.run)

    def cancel_sync(self, task_id: str) -> Cancelled:
        """Blocking twin of `cancel`."""
        return perform(requests.cancel(self.backend.ops, task_id), self.run_sync)

    async def replay(
        self, task_id: str, *, priority: str | int | None = None, reset_retry_count: bool = True
    ) -> Replayed:
        """Make a task ready again that failed, died, was cancelled, or waits for its time."""
        flow = requests.replay(
            self.backend.ops, task_id, priority, reset_retry_count=reset_retry_count
        )
        return await perform_async(flow, self.run)

    def replay_sync(
        self, task_id: str, *, priority: str | int | None = None, reset_retry_count: bool = True
    ) -> Replayed:
        """Blocking twin of `replay`."""
        flow = requests.replay(
            self.backend.ops, task_id, priority, reset_retry_count=reset_retry_count
        )
        return perform(flow, self.run_sync)

    retry, retry_sync = replay, replay_sync  # the names before `replay`

    async def stats(self) -> Stats:
        """Return depths, ages, workers, throughput and recovery."""
        return await self.run(self.backend.ops.stats())

    def stats_sync(self) -> Stats:
        """Blocking twin of `stats`."""
        return self.run_sync(self.backend.ops.stats())

    async def why(self, task_id: str) -> Reasons | None:
        """Return why a task waits, the decisive reasons first: empty if it does not wait, None if
        there is no such task."""
        return await self.run(self.backend.ops.why(task_id))

    def why_sync(self, task_id: str) -> Reasons | None:
        """Blocking twin of `why`."""
        return self.run_sync(self.backend.ops.why(task_id))

    async def ended(self, task_id: str) -> Task | None:
        """Wait until the task has ended, and return it."""
        return self._readable(await self._loop_state().results.wait(task_id))

    def ended_sync(self, task_id: str, timeout: float | None = None) -> Task | None:
        """Blocking twin of `ended`. Raises TimeoutError after `timeout` seconds, and
        EventLoopRunning where an event loop runs, which it would block."""
        if self._inline is None:  # inline tasks have ended already
            refuse_in_event_loop()
        return wait_sync(self.get_sync, self.why_sync, task_id, timeout)

    def _readable(self, task: StoredTask | None) -> Task | None:
        return None if task is None else readable(task, self.codecs)

    async def result(self, task_id: str, timeout: Seconds | None = None) -> Any:  # noqa: ASYNC109
        """Return the result of a task by its id: see `Handle.result`."""
        return await Handle[Any](self, task_id, Any).result(timeout)

    def result_sync(self, task_id: str, timeout: Seconds | None = None) -> Any:
        """Blocking twin of `result`."""
        return Handle[Any](self, task_id, Any).result_sync(timeout)

    async def results(
        self,
        handles: Iterable[Handle[R]],
        timeout: Seconds | None = None,  # noqa: ASYNC109
    ) -> Results[R]:
        """Wait for many tasks at once, and return their results in the order of the handles.

        Raises what `Handle.result` raises, for the first of the handles that has no result.
        """
        seconds = in_seconds(timeout)
        waiting = [asyncio.ensure_future(handle.result(seconds)) for handle in handles]
        try:
            return [await each for each in waiting]
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def results_sync(
        self, handles: Iterable[Handle[R]], timeout: Seconds | None = None
    ) -> Results[R]:
        """Blocking twin of `results`."""
        seconds = in_seconds(timeout)
        until = None if seconds is None else time.monotonic() + seconds
        return [
            handle.result_sync(None if until is None else max(0.0, until - time.monotonic()))
            for handle in handles
        ]

    # -- schedules ---------------------------------------------------------------------------------

    @property
    def schedules(self) -> Schedules:
        """The schedules in the store: put, get, list, pause, resume, run, backfill, delete."""
        in_place = InPlace(self._run_in_place, self._run_in_place_sync)
        return Schedules(self, self._check_own, in_place)

    def _declare_schedules(self) -> None:
        """Declare the schedules of the code, as a worker does when it starts."""
        perform(declare(self.backend.ops, self.name, self.declared.values()), self.run_sync)

    # -- for tests ---------------------------------------------------------------------------------

    @contextmanager
    def in_memory(self) -> Iterator[MemoryStore]:
        """Within this block the application uses an empty store in memory, for a test.

        The test says what it expects to be submitted, moves the store's clock, and runs tasks. The
        schedules that the code declares are in the store, and fire when the clock moves.
        Afterwards the application has its own store again, which was not touched.
        """
        with self._connection.elsewhere("sqlite://"):
            self._declare_schedules()
            yield MemoryStore(self)

    @contextmanager
    def inline(self) -> Iterator[MemoryStore]:
        """`in_memory`, and tasks run in the process that submits them.

        Delays and retries do not wait: when a submission returns, its task has ended.
        """
        before = self._inline
        with self.in_memory() as store:
            self._inline = self.runner()
            try:
                yield store
            finally:
                self._inline = before

    def runner(self) -> Inline:
        """Return what runs the application's tasks without a worker."""
        self._connection.prepare()
        load = self.payload_blobs().read
        return Inline(self.backend, self.tasks, self.lifespans, self.middleware, load)

    async def _run_in_place(self, connection: Any = None) -> None:
        # What waits for a transaction runs after it.
        if self._inline is not None and not self._connection.joins(connection):
            await self._inline.work(math.inf)

    def _run_in_place_sync(self, connection: Any = None) -> None:
        if self._inline is not None:
            run_in_thread(self._run_in_place(connection))

    # -- the store ---------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The store's URL. It can be changed until the store is opened."""
        return self._connection.url

    @url.setter
    def url(self, url: str) -> None:
        self._connection.url = url

    @property
    def store_options(self) -> Mapping[str, Any]:
        """How the store is opened, besides its URL, keys and token."""
        return self._connection.options

    @property
    def encryption_keys(self) -> tuple[Key, ...]:
        """Keys that encrypt payloads and results. They can be changed until the store is opened."""
        return self._connection.keys

    @encryption_keys.setter
    def encryption_keys(self, keys: tuple[Key, ...]) -> None:
        self._connection.keys = keys

    @property
    def blobs(self) -> str | BlobStore | None:
        """Where payloads above 256 KiB are kept. It can be changed until the store is opened."""
        return self._connection.blobs

    @blobs.setter
    def blobs(self, blobs: str | BlobStore | None) -> None:
        self._connection.blobs = checked(blobs)
        self.payload_bytes = limits.PAYLOAD_BYTES if blobs is None else limits.BLOB_BYTES

    def payload_blobs(self) -> Blobs:
        """Return what writes, reads and sweeps payloads by reference."""
        return self._connection.payload_blobs()

    @property
    def remake(self) -> bool:
        """Whether a store that was emptied is made again. It can be changed until the store is
        opened."""
        return self._connection.remake

    @remake.setter
    def remake(self, remake: bool) -> None:
        self._connection.remake = remake

    @property
    def compress_results(self) -> int | None:
        """The size in bytes above which results are stored compressed; None for never. It can be
        changed until the store is opened."""
        return self._connection.compress_results

    @compress_results.setter
    def compress_results(self, above: int | None) -> None:
        self._connection.compress_results = above

    @property
    def token(self) -> str | None:
        """The access token for a server. It can be changed until the store is opened."""
        return self._connection.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._connection.token = token

    @property
    def store_settings(self) -> Changes:
        """The settings that it sets in the store, by name, in seconds (see `StoreSettings`). They
        can be changed until the store is opened."""
        return self._connection.settings

    @store_settings.setter
    def store_settings(self, settings: Changes) -> None:
        self._connection.settings = settings

    @property
    def backend(self) -> Backend:
        """The store. The first access opens it."""
        return self._connection.backend

    async def run(self, op: Op[T]) -> T:
        """Perform an operation on the store. The first one prepares the schema."""
        return await self._connection.run(op)

    def run_sync(self, op: Op[T]) -> T:
        """Blocking twin of `run`."""
        return self._connection.run_sync(op)

    async def aclose(self) -> None:
        """Close connections, threads and files. The application can be used again."""
        await self._connection.aclose()

    def close(self) -> None:
        """Blocking twin of `aclose`."""
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

    def _loop_state(self) -> _LoopState:
        loop = asyncio.get_running_loop()
        with self._guard:
            if loop not in self._loops:
                self._loops[loop] = _LoopState(
                    Batcher(self._submit_batch, limits.SUBMIT_BATCH),
                    ResultWaiter(self._get_batch, self._get_heads, self.why),
                )
            return self._loops[loop]

    async def _submit_batch(self, tasks: Sequence[NewTask]) -> Answers:
        return await self.run(self.backend.ops.submit(tasks))

    async def _get_batch(self, task_ids: Sequence[str]) -> Found:
        return await self.run(self.backend.ops.get(task_ids))

    async def _get_heads(self, task_ids: Sequence[str]) -> Found:
        return await self.run(self.backend.ops.heads(task_ids))


def _plan_of(shape: Shape[Any], on_failure: str) -> Plan:
    return plan_of(
        leaves(shape.tree),
        shape.tree,
        parent=shape.parent,
        on_failure=checked_on_failure(on_failure),
        at_exit=shape.at_exit,
    )


class _LoopState(NamedTuple):
    """What batches the calls of one event loop."""

    submissions: Batcher[NewTask, Accepted]
    results: ResultWaiter
