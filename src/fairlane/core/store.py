"""What every engine can do. Reading this file and `machine.py` is enough to know the system.

An engine has two parts: `Operations`, which describe what to do as flows of calls (see `flow`), and
a driver, which performs them (see `backend`). Every operation takes a list of bounded length,
returns one answer per item, and can be repeated without harm. It raises BatchTooLarge for a longer
list and InvalidTaskId for a malformed id; then it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, Protocol

from fairlane.core import limits
from fairlane.core.analysis import Analysis
from fairlane.core.audit import AuditPage, NewAudit
from fairlane.core.blobs import BlobKeys
from fairlane.core.breaker import Breaker
from fairlane.core.client_limits import Rate, Share, Want
from fairlane.core.clocks import Watch
from fairlane.core.definitions import Definition, DefinitionPage, Published
from fairlane.core.documents import Place
from fairlane.core.encryption import Encryption
from fairlane.core.estimates import Position
from fairlane.core.facts import Facts, Sample
from fairlane.core.filters import Filter, Found, Page, Total
from fairlane.core.flow import Op
from fairlane.core.holdings import Holdings, Run
from fairlane.core.lanes import Controls, LaneKey
from fairlane.core.model import (
    Accepted,
    Ask,
    Beat,
    Cancelled,
    Deleted,
    Due,
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
from fairlane.core.quotas import Made
from fairlane.core.reruns import Rerun
from fairlane.core.retention import Pruned, Retention
from fairlane.core.schedules import Missed, NewSchedule, Overlap, Schedule
from fairlane.core.scheduling import Fired, SchedulePage
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.states import State
from fairlane.core.stats import Stats
from fairlane.core.store_settings import Changes, StoreSettings
from fairlane.core.tick_counts import TickCounts
from fairlane.core.tokens import NewToken, Token
from fairlane.core.why import Reason
from fairlane.core.workflow_list import ALL, WorkflowFilter, WorkflowPage
from fairlane.core.workflow_watch import STARTS, Watched, WorkflowNews
from fairlane.core.workflows import Workflow


class Store(Protocol):
    """The hot path: the operations that move tasks."""

    def submit(self, tasks: Sequence[NewTask]) -> Op[list[Accepted]]:
        """Store up to 1,000 tasks, all or none.

        If a task's idempotency key is known, the task is not stored, and its answer names the
        earlier task. A task id that is already stored is treated like a known key. Raises
        IdempotencyConflict (for an id TaskIdConflict) if type, payload or inputs differ from the
        earlier task, and TooManyLanes if the batch needs more lanes than there may be.

        A unique task that has a duplicate (see `uniqueness`) is answered with the duplicate,
        replaces it, or raises DuplicateTask. Within a batch, the earlier task is the duplicate of
        the later one.

        A task with parents (see `dependencies`) is scheduled until they have ended. It is
        cancelled at once if one of them has already ended badly. Raises UnknownDependency.
        """

    def claim(self, ask: Ask) -> Op[Grant]:
        """Hand out tasks to a worker: by effective level, then ready_at, then task id.

        First does what `move_due` does. If more than 500 tasks are due, it queues those which this
        worker may take that come first; until a retry is queued, its due time counts as its
        ready_at. The same `request_id` again gets the same tasks. A claim counts as a heartbeat. A
        worker that is draining or unhealthy gets no tasks. Raises WorkerGone if the worker is
        unknown or dead.
        """

    def move_due(self) -> Op[Due]:
        """Queue up to 500 due tasks, end up to 500 expired ones, release up to 500 dependents."""

    def start(self, worker_id: str, starts: Sequence[Start]) -> Op[list[Verdict]]:
        """Record when held tasks began to run. Their timeouts count from then."""

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
        """Record the progress of running tasks. One whose start was not reported starts now."""

    def heartbeat(self, beat: Beat) -> Op[Pulse]:
        """Renew a worker's lease, and with it its hold on all its tasks. Raises WorkerGone."""

    def disown(self, worker_id: str, runs: Sequence[Run]) -> Op[list[Verdict]]:
        """Take runs from a worker that does not have them, whatever the store says.

        A run that has started counts as lost, and any other as returned: their tasks run again at
        once, as those of a dead worker do.
        """

    def expired(self, limit: int, since: int = 0) -> Op[list[Overdue]]:
        """Return executing tasks to be taken from their workers.

        The worker is dead, the task has exceeded its timeout, or the worker has not started it in
        the time it has for that (see `NewWorker.start_within`). Both times count from `since`
        (microseconds) at the earliest: since when the store's clock can be trusted.
        """

    def watch_clock(self, boot: str, clock: Callable[[], float]) -> Op[Watch]:
        """Compare the store's clock with a clock that nobody can set.

        `boot` names that clock: sightings under the same name can be compared, whoever made them.
        """

    def bring_back(self, cursor: str | None = None) -> Op[str | None]:
        """Correct times in the store that lie ahead of now, because the clock was set back.

        Signs of life, starts of runs, buckets of rate limits and queued tasks count as of now;
        retries and delays wait their full time from now on. A due time that a submitter named
        stays. Does a part, and returns a cursor to go on with, or None when it is done.
        """

    def prune(self, retention: Retention) -> Op[Pruned]:
        """Delete up to 500 tasks that are older than the retention allows, with their history.

        A task on which others depend that have not ended is kept (see `retention`).

        Also delete up to 500 each of expired idempotency keys, dead workers that hold nothing,
        samples, and journal entries. The journal does not mention any of this.
        """

    def drop_lanes(self) -> Op[int]:
        """Drop up to 500 lanes that nothing has used for a while (see `unused_lanes`).

        Returns how many were dropped. A lane is found to be unused by two calls at least.
        """

    def sample(self) -> Op[bool]:
        """Save a sample of the counters, unless there is one from the last few seconds."""

    def elect(self, role: str, candidate: str, seconds: float) -> Op[bool]:
        """Take or renew a role for a term of `seconds`; False while another candidate holds it.

        A term that ends more than two terms from now was taken while the clock was ahead: it is
        over.
        """


class Inspect(Protocol):
    """Reading: none of these operations changes anything."""

    def get(self, task_ids: Sequence[str]) -> Op[list[Task | None]]:
        """Return the tasks with these ids, in that order; up to 1,000."""

    def heads(self, task_ids: Sequence[str]) -> Op[list[Task | None]]:
        """Return the same as `get`, but without what can be large.

        Payloads and results are empty, and runs are left out, except one that completed.
        """

    def workers(self) -> Op[list[Worker]]:
        """Return all known workers, including dead ones that have not been pruned yet."""

    def holdings(self, worker_id: str, limit: int, cursor: str | None = None) -> Op[Holdings]:
        """Return about `limit` (at most 500) of the runs that a worker holds, in any order.

        Runs that it holds all the while are on one of the pages, and perhaps on several. A worker
        that is unknown holds nothing. Raises InvalidCursor.
        """

    def controls(self) -> Op[Controls]:
        """Return what is paused and limited."""

    def settings(self) -> Op[StoreSettings]:
        """Return how tasks age and how long things are kept."""

    def encryption(self) -> Op[Encryption]:
        """Return whether the store accepts plain text."""

    def definition(self, type: str) -> Op[Published | None]:
        """Return what workers have published about a type, if they have."""

    def definitions(self) -> Op[list[Published]]:
        """Return everything that workers have published about types, ordered by type."""

    def definition_page(
        self, cursor: str | None = None, limit: int = limits.DEFINITION_PAGE
    ) -> Op[DefinitionPage]:
        """Return up to `limit` definitions, the oldest ones first. Raises InvalidCursor."""

    def events(self, after: str | None, limit: int) -> Op[Events]:
        """Return transitions from the journal after a cursor (None: from the start), oldest first.

        Reads whole entries until it has `limit` transitions or more. Raises InvalidCursor.
        """

    def tail(self) -> Op[str]:
        """Return the cursor of the newest entry: where a reader of new events begins."""

    def find(self, filter: Filter, limit: int, cursor: str | None = None) -> Op[Found]:
        """Return the ids of up to `limit` (at most 1,000) tasks that match, newest first.

        Examines at most 5,000 tasks. Raises InvalidCursor.
        """

    def facts(self) -> Op[Facts]:
        """Return the counters, the ends of the streams, the workers and the controls."""

    def completions(
        self, types: Collection[str], queues: frozenset[str] | None = None
    ) -> Op[dict[str, int]]:
        """Return how many runs of each of these types have ever completed, in these queues."""

    def samples(self, since: int, limit: int) -> Op[list[Sample]]:
        """Return samples of the counters since a time, oldest first: the data of charts."""

    def schedules(self, schedule_ids: Sequence[str]) -> Op[list[Schedule | None]]:
        """Return up to 100 schedules."""

    def schedule_page(self, cursor: str | None = None, limit: int = 100) -> Op[SchedulePage]:
        """Return schedules, those first that are due next. One that is fired meanwhile may come
        twice. Raises InvalidCursor."""

    def due_schedules(self, left: Collection[str] = ()) -> Op[float | None]:
        """Return in how many seconds a schedule is due: less than 0 if one is late, None if none
        ever will be. `left`: up to 100 that do not count, see `fire_due`."""

    def tick_counts(self) -> Op[TickCounts]:
        """Return how many ticks had which outcome, and the last ones that were not fired."""

    def tokens(self) -> Op[list[Token]]:
        """Return all valid tokens and sessions, the oldest first."""

    def token(self, digest: bytes) -> Op[Token | None]:
        """Return the valid token or session with this digest, if there is one."""

    def blob(self, key: str) -> Op[bytes | None]:
        """Return a blob that is in the store, or None if it is not there, or not complete."""

    def old_blobs(self, older_than: float, limit: int, after: Place | None = None) -> Op[BlobKeys]:
        """Return the keys of up to `limit` blobs written that many seconds ago, oldest first."""

    def audit(self, limit: int, cursor: str | None = None) -> Op[AuditPage]:
        """Return up to 1,000 entries of the audit log, newest first. Raises InvalidCursor."""

    def workflow_page(
        self, filter: WorkflowFilter = ALL, limit: int = 50, cursor: str | None = None
    ) -> Op[WorkflowPage]:
        """Return up to `limit` (at most 100) workflows that match, newest first.

        Looks at 100 records and about 2,000 tasks at the most, and may end early with a cursor. A
        workflow that has ended is kept for as long as failed tasks. Raises InvalidCursor.
        """

    def workflow_news(self, starts: int = STARTS) -> Op[WorkflowNews]:
        """Return how many workflows have ended in which state, the last 100 ends, and the last
        `starts` submissions."""

    # The core composes the following from the operations above: see `queries`.

    def page(self, filter: Filter, limit: int, cursor: str | None = None) -> Op[Page]:
        """Return a page of tasks. It ends early, with a cursor, after about 8 MiB."""

    def total(self, filter: Filter) -> Op[Total]:
        """Return how many tasks match, from the counters if they can tell."""

    def stats(self) -> Op[Stats]:
        """Return depths, ages, workers, throughput and recovery."""

    def position(self, task_ids: Sequence[str]) -> Op[list[Position | None]]:
        """Estimate where tasks stand in the queue and how long they wait; None if not queued."""

    def why(self, task_id: str) -> Op[list[Reason] | None]:
        """Return why a task waits: empty if it does not wait, None if it does not exist."""

    def dlq_analysis(self) -> Op[Analysis]:
        """Group the newest 10,000 dead letters by similar failures."""

    def workflow(self, workflow_id: str) -> Op[Workflow | None]:
        """Return a workflow with its tasks, as far as they are there; None if there are none."""


class Control(Protocol):
    """What operators change, and what workers change about themselves."""

    def pause(
        self, paused: bool, *, queue: str | None = None, type: str | None = None
    ) -> Op[Controls]:
        """Pause or resume a queue, a type, or everything. Takes effect with the next claim."""

    def limit(
        self,
        type: str | None,
        *,
        rate: float | None = None,
        concurrency: int | None = None,
        breaker: Breaker | Literal[False] | None = None,
        timeout: float | None = None,
    ) -> Op[Controls]:
        """Set the limits of a type, or of everything (rate only) if type is None.

        None leaves a limit as it is. Setting a breaker, or removing it with False, closes the
        circuit. A timeout counts for tasks that name none, from their next claim on, until a run
        of theirs has failed.
        """

    def change_settings(self, changes: Changes, *, version: int | None = None) -> Op[StoreSettings]:
        """Change settings of the store; those that are not named stay.

        Takes effect with the next claim, or the next round of the maintenance. Raises
        SettingsConflict if `version` is given and is not the version of the settings, and
        InvalidSetting, InvalidPriority or InvalidRetention. A change to what is set already changes
        nothing, whatever its version: a repeated request gets the answer of the first.
        """

    def set_encryption(self, wanted: Encryption, *, unless_decided: bool = False) -> Op[Encryption]:
        """Require encryption, or permit plain text. Return what holds.

        While it is required, `submit`, `settle`, `put_schedules` and `put_blob` raise
        EncryptionRequired for payloads, results, schedules and blobs in plain text. A result that
        is null is none. `unless_decided`: change nothing that was decided before.
        """

    def cancel(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Cancelled]]:
        """Cancel tasks that wait or run. The slot of a running task lingers until its run ends.

        `among`: only tasks that are in one of these states at that moment.
        """

    def replay(
        self,
        task_ids: Sequence[str],
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
        among: frozenset[State] | None = None,
    ) -> Op[list[Replayed]]:
        """Queue tasks again that failed, died, were cancelled, or wait for their time.

        `attempt` keeps counting. An expiry that has passed is removed. A task that waited for
        parents no longer does. A task takes its unique key again if it is free.
        """

    def delete(
        self, task_ids: Sequence[str], *, among: frozenset[State] | None = None
    ) -> Op[list[Deleted]]:
        """Delete tasks that have ended, with their history. Frees their idempotency keys.

        A task that waits for a retry is cancelled first. The attempts of a task that is submitted
        under the id of a deleted one go on from there (see `fences`).
        """

    def cancel_where(self, filter: Filter, cursor: str | None = None) -> Op[Swept]:
        """Cancel a batch of the tasks that match. Repeat while the answer has a cursor."""

    def submit_workflow(self, tasks: Sequence[NewTask]) -> Op[list[Accepted]]:
        """Store all tasks of a workflow and its record, all or none. What is stored already stays
        as it is. Raises InvalidWorkflow, and what `submit` raises."""

    def workflow_id_for(self, key: str, workflow_id: str) -> Op[str]:
        """Return the id that a workflow has got under this key within the last day: this one if it
        is the first. Repeated requests so submit the same workflow."""

    def cancel_workflow(self, workflow_id: str) -> Op[list[Cancelled]]:
        """Cancel the tasks of a workflow that wait or run, the last ones first. The task that runs
        at the end is left: it runs then."""

    def resume_workflow(
        self, workflow_id: str, *, from_node: str | None = None
    ) -> Op[list[Replayed]]:
        """Run the tasks of a workflow again that failed, died or were cancelled.

        Completed ones keep their results, except those that are called `from_node`, and all that
        depend on them. Those that can run first come first in the answers. Raises UnknownNode.
        """

    def delete_workflow(self, workflow_id: str) -> Op[list[Deleted]]:
        """Delete the tasks of a workflow, the last ones first. Raises WorkflowRunning."""

    def rerun(self, reruns: Sequence[Rerun]) -> Op[list[Replayed] | None]:
        """Run up to 500 tasks of workflows again that have ended: see `reruns`.

        A task that is still to wait for parents is scheduled. Parents come before their children. A
        task that has moved since its version was read, or a parent of which ended badly, stays as
        it is. The rest is as in `replay`.

        None: nothing was done, because a parent had ended before, and not all of its dependents
        of then are released yet. Some of them are now: call again.
        """

    def replay_where(
        self,
        filter: Filter,
        cursor: str | None = None,
        *,
        reset_retry_count: bool = True,
        level: int | None = None,
    ) -> Op[Swept]:
        """Replay a batch of the tasks that match. Repeat while the answer has a cursor."""

    def delete_where(self, filter: Filter, cursor: str | None = None) -> Op[Swept]:
        """Delete a batch of the tasks that match. Repeat while the answer has a cursor."""

    def publish(self, definitions: Sequence[Definition]) -> Op[list[str]]:
        """Publish up to 500 definitions of types: the newest one of a type counts. Returns the
        types whose definition is new or has changed.

        A definition goes away 30 days after it was last published. Raises InvalidDefinition, or an
        InvalidTask if no task could be submitted with it; then none is published.
        """

    def drop_definition(self, type: str) -> Op[bool]:
        """Delete the definition of a type. Returns False if there is none.

        It comes back when a worker that has the type starts.
        """

    def take_quota(self, made: Made, subject: str, names: Sequence[str]) -> Op[None]:
        """Count for a subject what it is about to make. Raises InvalidDefinition or
        InvalidSchedule if that is more than one subject may have made."""

    def take_lanes(self, subject: str, lanes: Sequence[LaneKey]) -> Op[None]:
        """Count for a subject the lanes that it is about to make (see `lane_shares`). Raises
        TooManyLanes if these are more than one subject may have made."""

    def put_schedules(
        self,
        schedules: Sequence[NewSchedule],
        *,
        owner: str | None = None,
        version: int | None = None,
        allow_unknown_type: bool = True,
    ) -> Op[list[Schedule]]:
        """Create or change up to 100 schedules, all or none. There may be at most 10,000.

        One that is the same as before stays as it is. One whose rule changes goes on from now; a
        change of anything else moves no tick. A pause stays. `owner` names the application whose
        code declares these. Without an owner they cannot be changed, but another application that
        declares one takes it over, which is recorded in the audit log. One that was made without an
        owner stays so: to declare it raises ScheduleConflict. `version`: raises ScheduleConflict
        unless the schedule has this version, 0 for one that does not exist. Without
        `allow_unknown_type` and without an owner, raises UnknownType if one gets a type that no
        worker has published and none that lives handles.
        """

    def sweep_schedules(self, cursor: str | None = None) -> Op[str | None]:
        """Put up to 100 schedules in order. Repeat with the cursor that it returns.

        Drops what the code of its application has not declared for a day, while it declared others.
        Computes next ticks again, which changes them if a time zone has new rules.
        """

    def drop_schedule(self, schedule_id: str, *, version: int | None = None) -> Op[bool]:
        """Delete a schedule. Returns False if there is none."""

    def pause_schedule(
        self, schedule_id: str, *, note: str = "", until: int | None = None
    ) -> Op[Schedule]:
        """Pause a schedule, until a time or until it is resumed. Raises UnknownSchedule."""

    def resume_schedule(self, schedule_id: str, *, missed: Missed = Missed.SKIP) -> Op[Schedule]:
        """Resume a schedule. `missed` says what becomes of the ticks in between."""

    def run_schedule(self, schedule_id: str, task_id: str, *, tick: int | None = None) -> Op[str]:
        """Submit a task of a schedule now, besides its ticks. The same id again does nothing."""

    def backfill_schedule(
        self,
        schedule_id: str,
        task_id: str,
        since: int,
        until: int,
        *,
        overlap: Overlap | None = None,
    ) -> Op[list[str]]:
        """Submit the tasks of up to 1,000 ticks of the past, from `since` to before `until`.

        Unless they may overlap, each waits for the one before. `task_id` is the first of their ids;
        the same one again does nothing. Returns the ids.
        """

    def fire_due(self, left: Collection[str] | None = None) -> Op[Fired]:
        """Handle the ticks of up to 500 schedules that are due: submit their tasks, or record why
        not. A tick is handled once, however many processes call this.

        `left`: up to 100 schedules that this process cannot fire and leaves to others. It answers
        further ones as `Fired.unknown`. If it is None, or there are too many, those are put off.
        """

    def watch_workflows(self) -> Op[Watched]:
        """Look at some of the workflows that run, those first that are due, and note which of them
        have ended: each of them once, however many processes call this."""

    def reopen_workflow(self, workflow_id: str) -> Op[bool]:
        """Note that a workflow that had ended runs again: its next end is noted as well. Returns
        False if it has no record, or its record says that it runs."""

    def forget_workflow(self, workflow_id: str) -> Op[bool]:
        """Delete the record of a workflow. Returns False if there is none."""

    def put_token(self, token: NewToken) -> Op[Token]:
        """Store a token, or a session made from one. At most 10,000, of which 9,000 sessions.

        A session expires no later than its token. Raises UnknownToken if the token is gone.
        """

    def retire_token(self, token_id: str, seconds: float) -> Op[bool]:
        """Let a token and its sessions expire within `seconds`. Returns False if there is none."""

    def drop_token(self, token_id: str) -> Op[bool]:
        """Delete a token and its sessions. Returns False if there is none."""

    def reserve(self, rates: Sequence[Rate], wants: Sequence[Want]) -> Op[list[Share]]:
        """Reserve submissions for up to 500 clients, within limits that all servers share.

        Answers one share for each want. All servers of a store should have the same limits.
        """

    def put_blob(self, key: str, content: bytes) -> Op[None]:
        """Keep a blob in the store. The same key again replaces it. Raises PayloadTooLarge."""

    def drop_blob(self, key: str, older_than: float) -> Op[None]:
        """Delete a blob if it was written that many seconds ago."""

    def blob_owner(self) -> Op[str]:
        """Return an id that no other store has, made when it is first asked for.

        By this, blob stores elsewhere know whose blobs they have.
        """

    def record(self, entries: Sequence[NewAudit]) -> Op[None]:
        """Append up to 500 entries to the audit log. An actor keeps its newest 10,000."""

    def trim_audit(self) -> Op[int]:
        """Delete up to 500 entries of the audit log; returns how many.

        First those older than 90 days, then those beyond 100,000: of the actors that have most.
        """

    def register(self, worker: NewWorker) -> Op[str]:
        """Register a worker, or renew it unless it is dead. Returns its id.

        That is its own id, unless the store assigns ids itself.
        """

    def mark(self, worker_id: str, status: WorkerStatus) -> Op[bool]:
        """Set a worker's status. Returns False if there is no such worker, or it is dead."""

    def bury(self, worker_ids: Sequence[str]) -> Op[list[str]]:
        """Declare those of these workers dead whose lease has run out. Returns their ids."""

    def forget(self, worker_id: str) -> Op[bool]:
        """Remove a worker that leaves. Tasks it still holds count as lost. False: unknown."""


class Schema(Protocol):
    """The version of the store's schema."""

    def version(self) -> Op[int]:
        """Return the schema's version, 0 for an empty store. Raises NotAFairlaneStore."""

    def migrate(self) -> Op[int]:
        """Migrate the schema to this version of Fairlane. Returns the version."""

    def verify(self) -> Op[None]:
        """Raise SchemaMissing, SchemaTooOld, SchemaTooNew or NotAFairlaneStore if need be."""

    def publish_view(self) -> Op[None]:
        """Let an SQL prompt find the view `tasks` without its schema's name.

        Raises NotSupported where there is no SQL.
        """


class Clock(Protocol):
    """The engine's clock is the clock."""

    def shift_clock(self, seconds: float) -> Op[None]:
        """Shift the engine's clock for everyone who uses this store. For tests only."""


class Operations(Store, Inspect, Control, Schema, Clock, Protocol):
    """Everything that an engine can do."""
