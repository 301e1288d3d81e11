"""Threads that perform operations one after another."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from fairlane.core.errors import StoreUnusable
from fairlane.core.flow import Op

T = TypeVar("T")


class Job:
    """An operation on its way through a thread. `tell` hears its result or its error, once."""

    __slots__ = ("_guard", "_taken", "op", "report")

    def __init__(self, op: Op[Any], report: Callable[[Any, BaseException | None], None]) -> None:
        self.op = op
        self.report = report
        self._guard = threading.Lock()
        self._taken = False

    def take(self) -> bool:
        """Take the job, once: the thread takes it to perform it, its caller to give it up.

        Returns False if the other side was first.
        """
        with self._guard:
            taken, self._taken = self._taken, True
        return not taken


class Inbox:
    """Jobs for a thread, in order."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopped = False

    def put(self, job: Job | None) -> None:
        self._jobs.put(job)

    @property
    def empty(self) -> bool:
        return self._jobs.empty()

    def take(self, most: int) -> list[Job]:
        """Wait for one job and take what else is there; nothing means the end."""
        if self._stopped or (first := self._jobs.get()) is None:
            return []
        batch = [first]
        while len(batch) < most and not self._jobs.empty():
            job = self._jobs.get()
            if job is None:
                self._stopped = True
                break
            batch.append(job)
        return batch


class LazyThread:
    """A thread that is started by its first job."""

    def __init__(self, name: str, serve: Callable[[Inbox], None]) -> None:
        self._name = name
        self._serve = serve
        self._inbox = Inbox()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether nothing waits for it, and something may."""
        return self._inbox.empty and not self._closed

    def put(self, job: Job) -> None:
        with self._guard:
            if self._closed:
                raise StoreUnusable("This store was closed: open it again.")
            if self._thread is None:
                thread = threading.Thread(
                    target=self._serve, args=(self._inbox,), name=self._name, daemon=True
                )
                thread.start()  # if it cannot be, the next job tries again
                self._thread = thread
            self._inbox.put(job)

    def stop(self) -> None:
        with self._guard:
            self._closed = True
            thread = self._thread
        if thread is not None:
            self._inbox.put(None)
            thread.join()


class Hand:
    """A thread that performs calls one after another for one owner, until it is stopped."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._calls = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Queue a call. One that is cancelled before its turn is skipped."""
        if self._thread.ident is None:
            self._thread.start()
        answer: Future[T] = Future()
        self._calls.put((answer, work))
        return answer

    def stop(self) -> None:
        """End the thread after the calls that are queued."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            answer, work = call
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(work())
            except BaseException as error:  # noqa: BLE001 (its caller gets it)
                answer.set_exception(error)
