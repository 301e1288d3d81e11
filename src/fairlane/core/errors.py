"""What can go wrong, as classes with stable codes.

    FairlaneError
    ├── InvalidInput                  the caller asked for something that cannot be: changes nothing
    │   ├── InvalidTask … one class per field, see below
    │   ├── InvalidHandler
    │   ├── UnknownCodec
    │   ├── InvalidTaskId
    │   ├── BatchTooLarge
    │   ├── InvalidWorker
    │   ├── InvalidResult
    │   │   └── ResultTooLarge
    │   ├── InvalidLimit
    │   ├── InvalidFilter
    │   ├── InvalidCursor
    │   ├── InvalidRetention
    │   ├── InvalidSetting
    │   ├── InvalidSchedule
    │   │   └── UnknownType
    │   ├── InvalidDefinition
    │   ├── InvalidToken
    │   ├── OutOfBounds
    │   ├── InvalidConnection
    │   ├── InvalidKey
    │   ├── InvalidBlobStore
    │   └── InvalidStoreURL
    ├── Conflict                      understood, but the present state does not allow it
    │   ├── IdempotencyConflict
    │   │   └── TaskIdConflict
    │   ├── DuplicateTask
    │   ├── TaskIdTaken
    │   ├── TooManyLanes
    │   ├── WorkerGone
    │   ├── UnknownToken
    │   ├── SettingsConflict
    │   ├── UnknownSchedule
    │   ├── ScheduleConflict
    │   ├── EncryptionRequired
    │   ├── LeaseLost
    │   ├── TransactionTooLong
    │   ├── EventLoopRunning
    │   ├── TaskFailed
    │   └── ResultTimeout
    └── StoreError                    the engine said no
        ├── StoreUnavailable          passing: the same call may go through later
        │   ├── StoreBusy
        │   ├── StoreFull
        │   ├── StoreReadOnly
        │   ├── StoreReplaced
        │   └── BlobsUnavailable
        └── StoreUnusable             lasting: a person has to do something
            ├── DriverMissing
            ├── NotSupported
            ├── AccessDenied
            ├── KeyMissing
            ├── SealBroken
            ├── BlobStoreMissing
            ├── BlobMissing
            ├── BlobDamaged
            ├── InputMissing
            │   └── InputsTooLarge
            ├── ResultDamaged
            ├── NotAFairlaneStore
            ├── SchemaMissing
            ├── SchemaTooOld
            └── SchemaTooNew

A class's docstring is its default message, so that raising one without words still says what to do.
"""

from __future__ import annotations

from typing import ClassVar


class FairlaneError(Exception):
    """Something went wrong in Fairlane."""

    code: ClassVar[str] = "fairlane_error"

    def __init__(self, message: str | None = None) -> None:
        self.message = message if message is not None else " ".join((self.__doc__ or "").split())
        super().__init__(self.message)


class InvalidInput(FairlaneError, ValueError):
    """The request cannot be carried out as it stands."""

    code = "invalid_input"


class InvalidTask(InvalidInput):
    """The task cannot be accepted as it stands."""

    code = "invalid_task"


class InvalidType(InvalidTask):
    """A task type has 1 to 255 characters out of A-Z a-z 0-9 _ . : - only."""

    code = "invalid_type"


class InvalidQueue(InvalidTask):
    """A queue name has 1 to 255 characters out of A-Z a-z 0-9 _ . : - only."""

    code = "invalid_queue"


class InvalidPayload(InvalidTask):
    """A payload is a JSON object: a dict with text keys, finite numbers and valid Unicode."""

    code = "invalid_payload"


class PayloadTooLarge(InvalidPayload):
    """The payload is too large: store the data elsewhere and pass a reference to it."""

    code = "payload_too_large"


class PayloadTooDeep(InvalidPayload):
    """The payload is nested too deeply: flatten it."""

    code = "payload_too_deep"


class InvalidPriority(InvalidTask):
    """A priority is critical, high, medium, normal, low, or a whole number from 0 to 10."""

    code = "invalid_priority"


class InvalidTime(InvalidTask):
    """A time is a datetime with a time zone; a delay is a number of seconds, zero or more."""

    code = "invalid_time"


class InvalidRetries(InvalidTask):
    """max_retries is a whole number, zero or more."""

    code = "invalid_max_retries"


class InvalidTimeout(InvalidTask):
    """A timeout is a number of seconds above zero, or None for no timeout."""

    code = "invalid_timeout"


class InvalidCapabilities(InvalidTask):
    """Capabilities are a set of short names."""

    code = "invalid_capabilities"


class InvalidTags(InvalidTask):
    """Tags are a dict from text to text."""

    code = "invalid_tags"


class InvalidIdempotencyKey(InvalidTask):
    """An idempotency key is a text of 1 to 255 characters without control characters."""

    code = "invalid_idempotency_key"


class InvalidTrace(InvalidTask):
    """Trace context is plain text, as the W3C traceparent header has it."""

    code = "invalid_trace"


class InvalidDependencies(InvalidTask):
    """depends_on is a list of ids of tasks that exist already or come earlier in the batch."""

    code = "invalid_dependencies"


class UnknownDependency(InvalidDependencies):
    """A task it depends on does not exist: submit that one first, or earlier in the same batch."""

    code = "unknown_dependency"


class InvalidInputs(InvalidTask):
    """inputs says which parameters are results of tasks that are named in depends_on."""

    code = "invalid_inputs"


class InvalidWorkflow(InvalidTask):
    """The tasks of a workflow, and how they depend on each other, do not fit together."""

    code = "invalid_workflow"


class ResultNotKnown(InvalidWorkflow):
    """A result is known only when the task has run."""

    code = "result_not_known"


class UnknownNode(InvalidWorkflow):
    """The workflow has no task of this name."""

    code = "unknown_node"


class InvalidUnique(InvalidTask):
    """unique says by which arguments, in which states and for how long a task is the only one."""

    code = "invalid_unique"


class InvalidArguments(InvalidTask):
    """The arguments do not fit the handler."""

    code = "invalid_arguments"

    def __init__(self, message: str | None = None, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        """The parameter that does not fit, if it is known."""


class InvalidHandler(InvalidInput):
    """This function cannot be a task."""

    code = "invalid_handler"


class UnknownCodec(InvalidInput):
    """There is no codec of this name here: register it with app.codec(name, codec)."""

    code = "unknown_codec"


class InvalidTaskId(InvalidInput):
    """A task id is a UUID in its 36-character lower-case form."""

    code = "invalid_task_id"


class BatchTooLarge(InvalidInput):
    """Too many items in one call: send them in smaller batches."""

    code = "batch_too_large"


class InvalidWorker(InvalidInput):
    """The worker cannot be registered as it stands."""

    code = "invalid_worker"


class InvalidResult(InvalidInput):
    """A result is JSON that everyone can read: finite numbers, valid Unicode, not too deep."""

    code = "invalid_result"


class ResultTooLarge(InvalidResult):
    """The result is too large: store it elsewhere and report a reference to it."""

    code = "result_too_large"


class InvalidLimit(InvalidInput):
    """A limit is a number, zero or more; zero means unlimited."""

    code = "invalid_limit"


class InvalidFilter(InvalidInput):
    """A filter names states, types, queues, priorities, a tag, a worker or times."""

    code = "invalid_filter"


class InvalidCursor(InvalidInput):
    """This cursor was not made here: begin without one."""

    code = "invalid_cursor"


class InvalidRetention(InvalidInput):
    """A retention is a number of seconds, 1 or more."""

    code = "invalid_retention"


class InvalidSetting(InvalidInput):
    """There is no such setting of a store, or it cannot have this value."""

    code = "invalid_setting"


class InvalidSchedule(InvalidInput):
    """The schedule cannot be stored as it stands."""

    code = "invalid_schedule"


class UnknownType(InvalidSchedule):
    """No worker has published this task type, and none that runs handles it: check the name, or
    start a worker that has it. allow_unknown_type stores the schedule all the same."""

    code = "unknown_type"

    def __init__(self, message: str | None = None, *, similar: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.similar = similar
        """The known types with similar names, the most similar one first."""


class InvalidDefinition(InvalidInput):
    """The definition of a type cannot be published as it stands."""

    code = "invalid_definition"


class InvalidToken(InvalidInput):
    """The token cannot be stored as it stands."""

    code = "invalid_token"


class OutOfBounds(InvalidInput):
    """The token is bound, and this is outside of its bounds."""

    code = "out_of_bounds"


class InvalidConnection(InvalidInput):
    """A caller's own connection leads to the store's database and is of a driver that is known."""

    code = "invalid_connection"


class InvalidKey(InvalidInput):
    """An encryption key is an id and 32 bytes in base64, id:base64: `fairlane key` makes one."""

    code = "invalid_key"


class InvalidBlobStore(InvalidInput):
    """Blobs are kept in the store ("store"), in a folder ("file:///var/lib/fairlane/blobs") or in
    a bucket ("s3://bucket/prefix")."""

    code = "invalid_blob_store"


class InvalidStoreURL(InvalidInput):
    """A store URL looks like sqlite:///tasks.db, postgresql://host/db or redis://host:6379/0."""

    code = "invalid_store_url"


class Conflict(FairlaneError):
    """The present state does not allow this."""

    code = "conflict"


class IdempotencyConflict(Conflict):
    """This idempotency key was used for a different task: use a new key for a new request."""

    code = "idempotency_conflict"


class TaskIdConflict(IdempotencyConflict):
    """A different task has this id: choose another id, or none, for a new task."""

    code = "task_id_conflict"


class DuplicateTask(Conflict):
    """A unique task like this one exists already: wait for it, or submit with another mode."""

    code = "duplicate_task"


class WorkflowRunning(Conflict):
    """This workflow has not ended: cancel it first, or wait until it has."""

    code = "workflow_running"


class TaskIdTaken(Conflict):
    """This task id is taken: choose another one, or let Fairlane choose it."""

    code = "task_id_taken"


class TooManyLanes(Conflict):
    """No further combination of queue, type and capabilities is accepted: 10,000 are in use. Put
    what varies from task to task into the payload or the tags instead. Combinations without tasks
    are forgotten after a while."""

    code = "too_many_lanes"


class WorkerGone(Conflict):
    """This worker is not registered, or was declared dead: register again under a new id."""

    code = "worker_gone"


class WorkerStuck(Conflict):
    """Too many handlers hang in threads, which nothing but the end of the process can end. The
    worker has left: start the process again, and give those tasks `isolation="process"`."""

    code = "worker_stuck"


class UnknownToken(Conflict):
    """There is no such token, or it has expired: `fairlane token list` shows those there are."""

    code = "unknown_token"


class SettingsConflict(Conflict):
    """Another process has changed the settings: read them again."""

    code = "settings_conflict"


class UnknownSchedule(Conflict):
    """There is no schedule with this id."""

    code = "unknown_schedule"


class ScheduleConflict(Conflict):
    """The schedule was changed meanwhile: read it again."""

    code = "schedule_conflict"


class EncryptionRequired(Conflict):
    """This store holds encrypted values only, and the process that writes to it has no encryption
    keys: give it encryption_keys, or permit plain text with `fairlane encryption optional`."""

    code = "encryption_required"


class LeaseLost(Conflict):
    """This attempt is no longer the worker's: what it did is not recorded."""

    code = "lease_lost"


class TransactionTooLong(Conflict):
    """A transaction held the store's lock for too long, and was rolled back: keep it short."""

    code = "transaction_too_long"


class EventLoopRunning(Conflict, RuntimeError):
    """This call would block the running event loop until a task has ended: await its twin without
    `_sync` instead, such as `await handle.result()`."""

    code = "event_loop_running"


class TaskFailed(Conflict):
    """The task ended without a result."""

    code = "task_failed"

    def __init__(
        self,
        message: str | None = None,
        *,
        task_id: str | None = None,
        state: str | None = None,
        attempt: int = 0,
        error_code: str | None = None,
        exception_type: str | None = None,
        reason: str | None = None,
        traceback: str | None = None,
    ) -> None:
        super().__init__(message)
        self.task_id = task_id
        self.state = state
        """The state in which it ended; None if there is no such task."""
        self.attempt = attempt
        """The number of its last run."""
        self.error_code = error_code
        """The code of its error: that of `Fail(code=…)`, or the name of the exception's class."""
        self.exception_type = exception_type
        """The class of the exception that the handler raised, with its module, if known."""
        self.reason = reason
        """Why it ended, such as `max_retries_exceeded` or `not_retriable`."""
        self.traceback = traceback
        """The handler's traceback, as text."""


class ResultTimeout(Conflict, TimeoutError):
    """The task has not ended in time: it goes on, ask again later."""

    code = "result_timeout"

    def __init__(self, message: str | None = None, *, reasons: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.reasons = reasons
        """Why the task waits, in sentences, the decisive one first; empty if it runs, or if nobody
        could say."""


class StoreError(FairlaneError):
    """The store could not do what was asked."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """The store cannot be reached at the moment: the same call may go through later."""

    code = "store_unavailable"
    after: float = 0.0
    """Seconds for which the store asked to be left alone."""


class StoreBusy(StoreUnavailable):
    """Someone else holds the store's lock: the same call may go through later."""

    code = "store_busy"


class StoreFull(StoreUnavailable):
    """The store has no room left: free space or memory, and the same call will go through."""

    code = "store_full"


class StoreReadOnly(StoreUnavailable):
    """The store does not accept writes: it is read-only, or a replica."""

    code = "store_read_only"


class StoreReplaced(StoreUnavailable):
    """The store's files were replaced or deleted while they were open: the same call goes to those
    that are there now."""

    code = "store_replaced"


class BlobsUnavailable(StoreUnavailable):
    """The blob store cannot be used at the moment: the same call may go through later."""

    code = "blobs_unavailable"


class StoreUnusable(StoreError):
    """The store cannot be used as it is set up."""

    code = "store_unusable"


class DriverMissing(StoreUnusable):
    """The driver for this store is not installed."""

    code = "driver_missing"


class NotSupported(StoreUnusable):
    """This engine cannot do that."""

    code = "not_supported"


class AccessDenied(StoreUnusable):
    """The store refused access: check the user, the password and the rights in the store URL."""

    code = "access_denied"


class KeyMissing(StoreUnusable):
    """This was sealed with an encryption key that is not here: add it to encryption_keys."""

    code = "key_missing"


class SealBroken(StoreUnusable):
    """What is stored here was altered, or taken from another task: it cannot be opened."""

    code = "seal_broken"


class BlobStoreMissing(StoreUnusable):
    """The payload is in a blob store that is not set up here: give the setting blobs."""

    code = "blob_store_missing"


class BlobMissing(StoreUnusable):
    """The blob of this payload is gone: restore it from a backup, or submit the task again."""

    code = "blob_missing"


class BlobDamaged(StoreUnusable):
    """The blob of this payload was altered: restore it from a backup, or submit the task again."""

    code = "blob_damaged"


class InputMissing(StoreUnusable):
    """A parameter is the result of another task, and that result is gone: submit both again."""

    code = "input_missing"

    def __init__(
        self, message: str | None = None, *, parameter: str | None = None, parent: str | None = None
    ) -> None:
        super().__init__(message)
        self.parameter = parameter
        """The parameter that has no value."""
        self.parent = parent
        """The id of the task whose result it is."""


class InputsTooLarge(InputMissing):
    """The results that this task takes are too large together: gather them in steps."""

    code = "inputs_too_large"


class ResultDamaged(StoreUnusable):
    """The stored result is compressed, and damaged: it cannot be expanded. Replay the task."""

    code = "result_damaged"


class NotAFairlaneStore(StoreUnusable):
    """This belongs to something else: nothing was changed. Use another file, database or prefix."""

    code = "not_a_fairlane_store"


class SchemaMissing(StoreUnusable):
    """The store has not been prepared: run `fairlane migrate` or open it with migration allowed."""

    code = "schema_missing"


class SchemaTooOld(StoreUnusable):
    """The store was written by an older Fairlane: run `fairlane migrate`."""

    code = "schema_too_old"


class SchemaTooNew(StoreUnusable):
    """The store was written by a newer Fairlane: upgrade this one."""

    code = "schema_too_new"
