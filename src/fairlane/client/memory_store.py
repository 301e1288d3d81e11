"""The store in memory of a test: what was submitted to it, its clock, and running what is due."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from fairlane.client import requests
from fairlane.client.blobs import Blobs
from fairlane.client.expectations import Expectation, listed
from fairlane.client.inline import Inline
from fairlane.client.schedule_clock import advance
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import InvalidTask
from fairlane.core.flow import perform
from fairlane.core.model import Task as StoredTask
from fairlane.core.text import shown
from fairlane.runtime.codecs import Codec
from fairlane.runtime.task import TaskFunction
from fairlane.runtime.tasks import Task, readable


class ApplicationUnderTest(Protocol):
    """The part of the application that a test needs."""

    codecs: dict[str, Codec]
    tasks: dict[str, TaskFunction[..., Any]]

    @property
    def backend(self) -> Backend: ...
    def runner(self) -> Inline: ...
    def payload_blobs(self) -> Blobs: ...


class MemoryStore:
    """A store in memory. See `Fairlane.in_memory`.

    A task is named by its function or its type. To expect options, name them as the submission
    does: `assert_submitted(greet.options(queue="mail"), name="Ada")`. What is not named may be
    anything.
    """

    def __init__(self, app: ApplicationUnderTest) -> None:
        self._app = app

    # -- what was submitted ------------------------------------------------------------------------

    def submitted(
        self, task: TaskFunction[..., Any] | str, /, *args: Any, **parameters: Any
    ) -> list[Task]:
        """Return the tasks that were submitted with these arguments, the oldest first."""
        expected = self._expectation(task, args, parameters)
        return [found for found in self._everything() if not expected.differences(found)]

    def assert_submitted(
        self,
        task: TaskFunction[..., Any] | str,
        /,
        *args: Any,
        count: int | None = None,
        **parameters: Any,
    ) -> list[Task]:
        """Return the tasks that were submitted with these arguments, the oldest first.

        Raises AssertionError if there is none, or if there are not `count`. The message lists what
        was submitted, and how it differs.
        """
        __tracebackhide__ = True
        expected = self._expectation(task, args, parameters)
        expected.check_name("count", count, "submitted")
        everything = list(self._everything())
        found = [each for each in everything if not expected.differences(each)]
        if count is None and not found:
            raise AssertionError(f"{expected} was not submitted. {listed(everything, expected)}")
        if count is not None and len(found) != count:
            raise AssertionError(
                f"{expected} was submitted {_times(len(found))}, not {_times(count)}. "
                f"{listed(everything, expected)}"
            )
        return found

    def assert_not_submitted(
        self, task: TaskFunction[..., Any] | str, /, *args: Any, **parameters: Any
    ) -> None:
        """Raise AssertionError if a task was submitted with these arguments."""
        __tracebackhide__ = True
        expected = self._expectation(task, args, parameters)
        everything = list(self._everything())
        found = [each for each in everything if not expected.differences(each)]
        if found:
            raise AssertionError(
                f"{expected} was submitted {_times(len(found))}. {listed(everything, expected)}"
            )

    def _expectation(
        self,
        task: TaskFunction[..., Any] | str,
        args: tuple[Any, ...],
        parameters: Mapping[str, Any],
    ) -> Expectation:
        if isinstance(task, str):
            if task not in self._app.tasks:  # a misspelt name is never submitted
                raise InvalidTask(
                    f"The application defines no task {shown(task)}. "
                    f"There are {', '.join(sorted(self._app.tasks)) or 'none'}."
                )
            task = self._app.tasks[task]
        return Expectation(task, args, parameters)

    def _everything(self) -> Iterator[Task]:
        """Yield all tasks, the oldest first, with payloads that are kept apart in their place."""
        backend, blobs = self._app.backend, self._app.payload_blobs()
        pages: list[list[StoredTask]] = []
        cursor: str | None = None
        while not pages or cursor is not None:
            page = perform(
                requests.list_tasks(backend.ops, limits.PAGE, cursor, {}), backend.run_sync
            )
            pages.append(page.tasks)
            cursor = page.next_cursor
        for task in (task for tasks in reversed(pages) for task in reversed(tasks)):
            payload = blobs.run_sync(blobs.load(task.task_id, task.payload))
            yield readable(msgspec.structs.replace(task, payload=payload), self._app.codecs)

    # -- time --------------------------------------------------------------------------------------

    def advance(self, seconds: Seconds) -> None:
        """Move the store's clock on. Schedules fire on the way, tick by tick. What is due then is
        queued, and what has expired ends; nothing runs."""
        backend = self._app.backend
        perform(advance(backend.ops, in_seconds(seconds)), backend.run_sync)

    async def work(self, within: Seconds = 0.0) -> int:
        """Run the tasks that are due, and return the number of runs.

        With `within` the clock moves on by this much, and everything that becomes due on the way
        runs when it is due, retries and the tasks of schedules included.
        """
        return await self._app.runner().work(in_seconds(within))

    def work_sync(self, within: Seconds = 0.0) -> int:
        """Blocking twin of `work`."""
        return asyncio.run(self.work(within))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
