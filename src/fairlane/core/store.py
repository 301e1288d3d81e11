"""What every engine can do. Reading this file and `machine.py` is enough to know the system.

An engine is two things: `Operations`, which describe what to do as flows of calls (see `flow`), and
a driver, which performs them (see `backend`). Every operation takes and answers lists of
bounded length, one answer per item, and can be repeated without harm. A longer list, or what is no
task id, raises BatchTooLarge or InvalidTaskId, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from fairlane.core.analysis import Analysis
from fairlane.core.audit import AuditPage, NewAudit
from fairlane.core.breaker import Breaker
from fairlane.core.estimates import Position
from fairlane.core.facts import Facts, Sample
from fairlane.core.filters import Filter, Found, Page, Total
from fairlane.core.flow import Op
from fairlane.core.lanes import Controls
from fairlane.core.model import (
    Accepted,
    Ask,
    Beat,
    Cancelled,
    Deleted,
    Events,
    Grant,
    NewTask,
    NewWorker,
    Overdue,
    Pulse,
    Replayed,
    Report,
    Start,
    Swept,
    Task,
    Verdict,
    Worker,
    WorkerStatus,
)
from fairlane.core.retention import Pruned, Retention
from fairlane.core.schedules import NewSchedule, Schedule
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.states import State
from fairlane.core.stats import Stats
from fairlane.core.tokens import NewToken, Token
from fairlane.core.why import Reason


class Store(Protocol):
    """The hot path: what moves tasks."""

    def submit(self, tasks: Sequence[NewTask]) -> Op[list[Accepted]]:
        """Store up to 1,000 tasks, all or none.

        A task whose idempotency key is known is not stored: its answer names the earlier one.
        Raises IdempotencyConflict when type or payload differ, TooManyLanes when a task would open
        one lane too many. A task id that is already stored is answered like a known key.

        A unique task that has a double (see `uniqueness`) is not stored and answered with that
        one, or takes its place, or raises DuplicateTask. Two in one batch: the later one is
        answered with the earlier one, or raises DuplicateTask.

        A task with parents (see `dependencies`) is scheduled until they have ended, and doomed at
        once if one of them already ended badly. Raises UnknownDependency.
        """

    def claim(self, ask: Ask) -> Op[Grant]:
        """Give a worker tasks it may run: by effective priority, then ready_at, then task id.

        First makes up to 500 due tasks ready, ends up to 500 expired ones and resolves up to 500
        bonds to parents that have ended. The same `request_id`
        again gets the same tasks. Counts as a sign of life. A worker that is draining or unhealthy
        gets none. Raises WorkerGone for one that is unknown or dead.
        """

    def start(self, worker_id: str, starts: Sequence[Start]) -> Op[list[Verdict]]:
        """Note when held tasks really began to run; their time limit counts from then."""

    def settle(
        self, settlements: Sequence[Settlement], *, reaping: bool = False
    ) -> Op[list[Settled]]:
        """Decide what follows from the ends of runs, and apply it to the tasks under their fence.

        A task that ends gives up its unique key if its new state does not count for it, and
        releases up to 500 dependents; the next claims release the others. Circuit breakers count
        the runs of their types. Late reports count as stale results.

        The same settlement again is `applied`. One that is late frees the slot that its attempt
        still holds. `reaping`: apply only if the task is still overdue (see `expired`).
        """

    def progress(self, worker_id: str, reports: Sequence[Report]) -> Op[list[Verdict]]:
        """Note how far running tasks have come."""

    def heartbeat(self, beat: Beat) -> Op[Pulse]:
        """Renew a worker's lease, and with it its hold on all its tasks. Raises WorkerGone."""

    def expired(self, limit: int) -> Op[list[Overdue]]:
        """Executing tasks whose worker is dead, or that ran past their time limit by now."""

    def prune(self, retention: Retention) -> Op[Pruned]:
        """Delete up to 500 tasks that ended longer ago than they are kept, with all that is left of
        them; and up to 500 each of idempotency keys whose time is over, dead workers that hold
        nothing, samples, and entries of the journal. Not told in the journal.
        """

    def sample(self) -> Op[bool]:
        """Note how the counters stand, unless that was done within the last few seconds."""

    def elect(self, role: str, candidate: str, seconds: float) -> Op[bool]:
        """Take or renew a role for a term of `seconds`; False while somebody else has it.

        A term that ends more than two terms from now was taken while the clock was ahead: it is
        over.
        """


class Inspect(Protocol):
    """Looking without touching."""

    def get(self, task_ids: Sequence[str]) -> Op[list[Task | None]]:
        """The tasks with these ids, in that order; up to 1,000."""

    def workers(self) -> Op[list[Worker]]:
        """All workers that are known, the dead ones included until they are cleared away."""

    def controls(self) -> Op[Controls]:
        """What is paused and limited."""

    def events(self, after: str | None, limit: int) -> Op[Events]:
        """Transitions from the journal, oldest first, after a cursor (None: from the oldest).

        Reads whole entries until `limit` transitions are passed. Raises InvalidCursor.
        """

    def tail(self) -> Op[str]:
        """The cursor after which there is nothing yet: where a reader of news begins."""

    def find(self, filter: Filter, limit: int, cursor: str | None = None) -> Op[Found]:
        """Ids of up to `limit` (at most 1,000) tasks that a filter admits, newest first.

        Looks at no more than 5,000 tasks. Raises InvalidCursor.
        """

    def facts(self) -> Op[Facts]:
        """The store at a glance."""

    def samples(self, since: int, limit: int) -> Op[list[Sample]]:
        """How the counters stood from a time on, oldest first: the data of charts."""

    def schedules(self) -> Op[list[Schedule]]:
        """All schedules, by id."""

    def tokens(self) -> Op[list[Token]]:
        """All tokens and sessions that count at this moment, the oldest first."""

    def token(self, digest: bytes) -> Op[Token | None]:
        """The token or session with this digest, if there is one that counts."""

    def audit(self, limit: int, cursor: str | None = None) -> Op[AuditPage]:
        """The audit log, newest first, up to 1,000 entries. Raises InvalidCursor."""

    # What follows is made from the above, once for all engines: see `queries`.

    def page(self, filter: Filter, limit: int, cursor: str | None = None) -> Op[Page]:
        """A page of tasks."""

    def total(self, filter: Filter) -> Op[Total]:
        """How many tasks a filter admits: from the counters where they know."""

    def stats(self) -> Op[Stats]:
        """Depths, ages, workers, throughput, recovery."""

    def position(self, task_ids: Sequence[str]) -> Op[list[Position | None]]:
        """Where tasks stand in the queue and how long they may wait; None for what is not queued.

        Estimates.
        """

    def why(self, task_id: str) -> Op[list[Reason] | None]:
        """Why a waiting task waits; empty for one that does not, None for one that is not there."""

    def dlq_analysis(self) -> Op[Analysis]:
        """Dead letters in groups of alike failures, over the newest 10,000."""


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
        breaker: Breaker | Literal[False] | None = None,
    ) -> Op[Controls]:
        """Set limits of a type; of everything (rate only) when type is None. None: leave as is.

        Setting a breaker, or taking it away by False, closes the circuit.
        """

    def cancel(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Cancelled]]:
        """End tasks as cancelled, at once in every state; a holder's slot stays taken.

        `among`: only those that are in one of these states at that moment.
        """

    def replay(
        self,
        task_ids: Sequence[str],
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
        among: frozenset[State] | None = None,
    ) -> Op[list[Replayed]]:
        """Make tasks ready again that failed, died, were cancelled, or wait for their time.

        `attempt` goes on counting. An expiry that has passed is taken away. What still depended on
        others no longer does. A unique key is taken again if it is free.
        """

    def delete(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Deleted]]:
        """Take away tasks that have ended, or wait to be retried (those are cancelled first), with
        all that is left of them. Their idempotency keys are free again."""

    def cancel_where(self, filter: Filter, cursor: str | None = None) -> Op[Swept]:
        """Cancel what a filter admits, a batch at a time: go on while there is a cursor."""

    def replay_where(
        self,
        filter: Filter,
        cursor: str | None = None,
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
    ) -> Op[Swept]:
        """The same for replays."""

    def delete_where(self, filter: Filter, cursor: str | None = None) -> Op[Swept]:
        """The same for deletions."""

    def put_schedule(self, schedule: NewSchedule) -> Op[Schedule]:
        """Store a schedule, new or in the place of the one with this id. At most 10,000."""

    def drop_schedule(self, schedule_id: str) -> Op[bool]:
        """Take a schedule away; False when there is none."""

    def fire(self, schedule_id: str, tick: int, next_at: int | None) -> Op[bool]:
        """Move a schedule on from a tick; False when someone else already has."""

    def put_token(self, token: NewToken) -> Op[Token]:
        """Store a token, or a session made from one. At most 10,000, of which 9,000 sessions.

        A session expires no later than its token. Raises UnknownToken when that one is gone.
        """

    def retire_token(self, token_id: str, seconds: float) -> Op[bool]:
        """Let a token, and the sessions made from it, count for so long at the most; False when
        there is none."""

    def drop_token(self, token_id: str) -> Op[bool]:
        """Take a token away, and the sessions made from it; False when there is none."""

    def record(self, entries: Sequence[NewAudit]) -> Op[None]:
        """Write up to 500 entries to the audit log. The newest 10,000 are kept."""

    def register(self, worker: NewWorker) -> Op[str]:
        """Make a worker known; answers the id it goes by: its own, unless the store gives ids
        itself. Registering the same one again renews it, unless it is dead."""

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
