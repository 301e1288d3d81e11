"""Tasks as users of the Python API get them: with values in place of the JSON that is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairlane.core.compression import check_expanded
from fairlane.core.errors import InvalidResult
from fairlane.core.filters import Page
from fairlane.core.model import Task as StoredTask
from fairlane.core.model import TaskFields
from fairlane.core.sealing import check_open
from fairlane.runtime.codecs import Codec, find, stored_with
from fairlane.runtime.values import decoded


class Task(TaskFields, frozen=True, kw_only=True):
    """A task with everything there is to know about it.

    `payload` and `result` are decoded each time they are read. That raises KeyMissing or
    UnknownCodec if the application lacks the key or the codec that they were stored with.
    """

    stored: StoredTask
    """The task as it is stored, with payload and result as bytes of JSON."""
    codecs: Mapping[str, Codec]

    def __repr__(self) -> str:
        return f"<Task {self.task_id} {self.type} {self.state}>"

    @property
    def payload(self) -> Any:
        """Return the arguments, by name. A payload above 256 KiB is a reference to its blob."""
        return value_of(self.stored.payload, Any, self.codecs, "payload")

    @property
    def parameters(self) -> Any:
        """Return the arguments, by the name that the specification prints."""
        return self.payload

    @property
    def result(self) -> Any:
        """Return what the handler returned, as JSON has it; None if the task has no result.

        `Handle.result` converts it to the type that the handler declares.
        """
        return (
            None if self.stored.result is None else value_of(self.stored.result, Any, self.codecs)
        )


class TaskList(msgspec.Struct, frozen=True):
    """A page of tasks, and the cursor of the next page; None on the last page."""

    tasks: list[Task]
    next_cursor: str | None = None


def readable(task: StoredTask, codecs: Mapping[str, Codec]) -> Task:
    """Return a task with its values."""
    fields = {name: getattr(task, name) for name in TaskFields.__struct_fields__}
    return Task(stored=task, codecs=codecs, **fields)


def readable_page(page: Page, codecs: Mapping[str, Codec]) -> TaskList:
    """Return a page of tasks with their values."""
    return TaskList([readable(task, codecs) for task in page.tasks], page.next_cursor)


def value_of(stored: bytes, hint: Any, codecs: Mapping[str, Codec], what: str = "result") -> Any:
    """Return what is stored as a value: converted to a type, or by the codec that it names."""
    check_open(stored)
    check_expanded(stored)
    named = stored_with(stored)
    if named is None:
        return decoded(stored, hint)
    codec = find(codecs, named.codec).codec
    try:
        return codec.decode(named.data)
    except Exception as error:
        raise InvalidResult(
            f"The codec {named.codec} cannot decode the {what} ({type(error).__name__})."
        ) from error
