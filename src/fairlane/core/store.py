"""What every engine can do. Reading this file and `machine.py` is enough to know the system.

An engine is two things: `Operations`, which describe what to do as flows of calls (see `flow`), and
a `Driver`, which performs them. A `Backend` is the pair. Every operation takes and answers lists of
bounded length, one answer per item, and can be repeated without harm. A longer list, or what is no
task id, raises BatchTooLarge or InvalidTaskId, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self, TypeVar

import msgspec

from fairlane.core.flow import Op
from fairlane.core.lanes import Controls
from fairlane.core.machine import Settlement
from fairlane.core.model import (
    Accepted,
    Ask,
    Beat,
    Cancelled,
    Event,
    Grant,
    NewTask,
    NewWorker,
    Overdue,
    Pulse,
    Replayed,
    Report,
    Start,
    Task,
    Verdict,
    Worker,
    WorkerStatus,
)
from fairlane.core.tally import Tally

T = TypeVar("T")


class Store(Protocol):
    """The hot path: what moves tasks."""

    def submit(self, tasks: Sequence[NewTask]) -> Op[list[Accepted]]:
        """Store up to 1,000 tasks, all or none.

        A task whose idempotency key is known is not stored: its answer names the earlier one.
        Raises IdempotencyConflict when type or payload differ, TooManyLanes when a task would open
        one lane too many. A task id that is already stored is answered like a known key.
        """

    def claim(self, ask: Ask) -> Op[Grant]:
        """Give a worker tasks it may run: by effective priority, then ready_at, then task id.

        First makes up to 500 due tasks ready and ends up to 500 expired ones. The same `request_id`
        again gets the same tasks. Counts as a sign of life. A worker that is draining or unhealthy
        gets none. Raises WorkerGone for one that is unknown or dead.
        """

    def start(self, worker_id: str, starts: Sequence[Start]) -> Op[list[Verdict]]:
        """Note when held tasks really began to run; their time limit counts from then."""

    def settle(
        self, settlements: Sequence[Settlement], *, reaping: bool = False
    ) -> Op[list[Verdict]]:
        """Apply changes to executing tasks whose fence matches.

        The same settlement again is `applied`. One that comes too late frees the slot that its
        attempt still held. `reaping`: apply only if the task is still overdue (see `expired`), and
        leave the slot of an attempt that timed out taken until its worker lets go.
        """

    def progress(self, worker_id: str, reports: Sequence[Report]) -> Op[list[Verdict]]:
        """Note how far running tasks have come."""

    def heartbeat(self, beat: Beat) -> Op[Pulse]:
        """Renew a worker's lease, and with it its hold on all its tasks. Raises WorkerGone."""

    def expired(self, limit: int) -> Op[list[Overdue]]:
        """Executing tasks whose worker is dead, or that ran past their time limit by now."""


class Inspect(Protocol):
    """Looking without touching."""

    def get(self, task_ids: Sequence[str]) -> Op[list[Task | None]]:
        """The tasks with these ids, in that order; up to 1,000."""

    def workers(self) -> Op[list[Worker]]:
        """All workers that are known, the dead ones included until they are cleared away."""

    def controls(self) -> Op[Controls]:
        """What is paused and limited."""

    def tallies(self) -> Op[list[Tally]]:
        """The counters: transitions counted since the store was made."""

    def depths(self) -> Op[dict[tuple[str, int], int]]:
        """How many tasks are queued, by (queue, level)."""

    def events(self, after: str | None, limit: int) -> Op[list[Event]]:
        """Transitions from the journal, oldest first, after a cursor (None: from the oldest).

        Reads whole entries until `limit` transitions are passed.
        """


class Control(Protocol):
    """What operators, and workers about themselves, may change."""

    def pause(
        self, paused: bool, *, queue: str | None = None, type: str | None = None
    ) -> Op[Controls]:
        """Stop or resume claims of a queue, a type, or everything. Instant for new claims."""

    def limit(
        self,
        type: str | None,
        *,
        rate: float | None = None,
        concurrency: int | None = None,
    ) -> Op[Controls]:
        """Set limits of a type; of everything (rate only) when type is None. None: leave as is."""

    def cancel(self, task_ids: Sequence[str]) -> Op[list[Cancelled]]:
        """End tasks as cancelled, at once in every state; a holder's slot stays taken."""

    def replay(
        self,
        task_ids: Sequence[str],
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
    ) -> Op[list[Replayed]]:
        """Make tasks ready again that failed, died, were cancelled, or wait for their time.

        `attempt` goes on counting. An expiry that has passed is taken away.
        """

    def register(self, worker: NewWorker) -> Op[None]:
        """Make a worker known. Registering the same one again renews it, unless it is dead."""

    def mark(self, worker_id: str, status: WorkerStatus) -> Op[bool]:
        """Set a worker's status (draining, say). False when there is no such worker, or dead."""

    def bury(self, worker_ids: Sequence[str]) -> Op[list[str]]:
        """Declare dead those of these workers whose lease has run out; answers which."""

    def forget(self, worker_id: str) -> Op[bool]:
        """A worker leaves. What it still holds is treated as lost. False: not known."""


class Schema(Protocol):
    """The store's own shape."""

    def version(self) -> Op[int]:
        """The schema version found, 0 for an empty store. Raises NotAFairlaneStore."""

    def migrate(self) -> Op[int]:
        """Bring the schema up to this version of Fairlane; answers the version now."""

    def verify(self) -> Op[None]:
        """Raise SchemaMissing, SchemaTooOld, SchemaTooNew or NotAFairlaneStore, or do nothing."""


class Clock(Protocol):
    """The engine's clock is the clock."""

    def shift_clock(self, seconds: float) -> Op[None]:
        """Move the engine's clock by so much, for everyone who uses this store. For tests only."""


class Operations(Store, Inspect, Control, Schema, Clock, Protocol):
    """All of it."""


class Durability(msgspec.Struct, frozen=True):
    """What an acknowledged submission survives, as read from the engine's own settings.

    `warnings` are sentences about settings under which tasks can get lost.
    """

    engine: str
    settings: dict[str, str]
    warnings: tuple[str, ...] = ()


class Wakeup(Protocol):
    """A subscription to hints that there may be work. Hints get lost: always wait with a limit."""

    async def wait(self, seconds: float) -> bool:
        """True when hinted, False when that time passed without a hint."""

    async def aclose(self) -> None:
        """Stop listening."""


class Driver(Protocol):
    """Performs operations. Nothing is opened before the first one."""

    async def run(self, op: Op[T]) -> T:
        """Perform an operation, waiting out short troubles of the store."""

    def run_sync(self, op: Op[T]) -> T:
        """The same from ordinary code."""

    async def listen(self) -> Wakeup:
        """Begin to receive hints about new work."""

    async def durability(self) -> Durability:
        """What the engine's settings promise."""

    async def aclose(self) -> None:
        """Let go of connections, threads and files."""

    def close(self) -> None:
        """The same from ordinary code."""


class Backend:
    """An opened engine: what can be asked (`ops`) and how it gets done (`run`)."""

    __slots__ = ("driver", "ops", "run", "run_sync")

    def __init__(self, ops: Operations, driver: Driver) -> None:
        self.ops = ops
        self.driver = driver
        self.run = driver.run
        self.run_sync = driver.run_sync

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.driver.aclose()
