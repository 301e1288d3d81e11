"""How a run of a task can end, as the worker or the maintenance reports it."""

from __future__ import annotations

import msgspec

from fairlane.core.model import TaskError


class Completed(msgspec.Struct, frozen=True, gc=False):
    """The handler returned `result` (JSON)."""

    result: bytes


class Failed(msgspec.Struct, frozen=True):
    """The handler raised an exception. `after`: the delay it asked for, if any."""

    error: TaskError
    after: float | None = None


class TimedOut(msgspec.Struct, frozen=True):
    """The run took longer than its time limit.

    `running`: its worker has not ended it yet; the maintenance found it. The run keeps its slot.
    """

    running: bool = False


class Lost(msgspec.Struct, frozen=True):
    """The worker died while it held the task.

    `spread`: over how many seconds the tasks that such workers had started come back; 0 means that
    all of them come back at once.
    """

    started: bool
    spread: float = 0.0


class Unstarted(msgspec.Struct, frozen=True):
    """The worker lives, but has not started the task within the time it has for that."""


class Disowned(msgspec.Struct, frozen=True):
    """The worker lives, but does not have the run that it holds by the store's word.

    The store has lost the end of the run, or the reply to the claim never reached the worker.
    """

    started: bool


class Released(msgspec.Struct, frozen=True):
    """The worker gave the task back: it is shutting down."""


class Snoozed(msgspec.Struct, frozen=True):
    """The handler asked to run again in `after` seconds. This costs no retry."""

    after: float


Outcome = Completed | Failed | TimedOut | Lost | Unstarted | Disowned | Released | Snoozed
