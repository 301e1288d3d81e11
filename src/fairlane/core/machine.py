"""The state machine: which moves exist, and what each of them does to a task.

This is the only place that knows the rules of states, retries, timeouts and dead letters. It is
pure and has no clock: a `Move` carries durations, and the engine that applies it adds its own now.

                     submit
                   ┌───┴────┐
                   ▼        ▼        claim                 complete
     ┌────────▶ scheduled  queued ─────────▶ executing ───────────────▶ completed
     │             │ due    ▲ ▲ ▲               │ │
     │ snooze      └────────┘ │ └── release ────┤ ├── fail ───────────▶ failed
     └────────────────────────┼─────────────────┤ ├── dead_letter ────▶ dead_letter
                          due │                 │ └── cancel ─────────▶ cancelled
                       retrying ◀──── retry ────┘

`cancel` also ends every waiting state. `expire` ends a waiting task as failed. `replay` returns a
task that failed, died, was cancelled or still waits for its time to the queue. `rerun` and `rebind`
do so with any task of a workflow that has ended; `rebind` lets it wait for its parents again.
`delete` removes a task that has ended. `due` also moves a task whose dependencies are met.
"""

from __future__ import annotations

from enum import Enum, Flag, StrEnum, auto
from typing import Protocol, assert_never

import msgspec

from fairlane.core import limits
from fairlane.core.model import TaskError
from fairlane.core.outcomes import (
    Completed,
    Disowned,
    Failed,
    Lost,
    Outcome,
    Released,
    Snoozed,
    TimedOut,
    Unstarted,
)
from fairlane.core.retry import SLOW_DOWN, RetryPolicy
from fairlane.core.states import TERMINAL, WAITING, State


class Verb(StrEnum):
    """The transitions, by the one name they have everywhere."""

    SUBMIT = "submit"
    DUE = "due"
    CLAIM = "claim"
    COMPLETE = "complete"
    RETRY = "retry"
    SNOOZE = "snooze"
    RELEASE = "release"
    FAIL = "fail"
    DEAD_LETTER = "dead_letter"
    CANCEL = "cancel"
    EXPIRE = "expire"
    REPLAY = "replay"
    RERUN = "rerun"
    REBIND = "rebind"
    DELETE = "delete"


class Place(Enum):
    """Where in its queue a task stands after a move."""

    KEEP = "keep"
    """Where it stood before: its `ready_at` stays."""
    RESET = "reset"
    """At the end: its `ready_at` becomes the time at which it is due."""


class Slot(Enum):
    """What happens to the concurrency slot of the run that a move ends."""

    FREE = "free"
    LINGER = "linger"
    """It stays taken until the worker, which still runs the task, reports or dies."""


class Clears(Flag):
    """What a move removes from a task."""

    NOTHING = 0
    ERROR = auto()
    """The error of the last run; the error of the move, if it has one, takes its place."""
    PROGRESS = auto()
    EXPIRY = auto()
    """Only an expiry that has passed."""


class Transition(msgspec.Struct, frozen=True):
    """A row of the table: from which states a verb leads, to which, and what comes with it.

    `wakes`: the task can be claimed at once, so idle workers are woken.
    """

    sources: frozenset[State]
    targets: frozenset[State]
    place: Place = Place.KEEP
    clears: Clears = Clears.NOTHING
    wakes: bool = False


_EXECUTING = frozenset({State.EXECUTING})
_QUEUED = frozenset({State.QUEUED})
RERUN = Clears.ERROR | Clears.PROGRESS
"""What every move removes by which a task can run again."""

TRANSITIONS: dict[Verb, Transition] = {
    Verb.SUBMIT: Transition(frozenset(), _QUEUED | {State.SCHEDULED}),
    Verb.DUE: Transition(frozenset({State.SCHEDULED, State.RETRYING}), _QUEUED, wakes=True),
    Verb.CLAIM: Transition(_QUEUED, _EXECUTING),
    Verb.COMPLETE: Transition(_EXECUTING, frozenset({State.COMPLETED}), clears=Clears.ERROR),
    Verb.RETRY: Transition(_EXECUTING, frozenset({State.RETRYING}), clears=RERUN),
    # A snoozed task starts over. A retry keeps its place in the queue.
    Verb.SNOOZE: Transition(
        _EXECUTING, frozenset({State.SCHEDULED}), place=Place.RESET, clears=RERUN
    ),
    Verb.RELEASE: Transition(_EXECUTING, _QUEUED, clears=RERUN, wakes=True),
    Verb.FAIL: Transition(_EXECUTING, frozenset({State.FAILED}), clears=Clears.ERROR),
    Verb.DEAD_LETTER: Transition(_EXECUTING, frozenset({State.DEAD_LETTER}), clears=Clears.ERROR),
    Verb.CANCEL: Transition(
        WAITING | _EXECUTING, frozenset({State.CANCELLED}), clears=Clears.ERROR
    ),
    Verb.EXPIRE: Transition(WAITING, frozenset({State.FAILED}), clears=Clears.ERROR),
    Verb.REPLAY: Transition(
        (TERMINAL - {State.COMPLETED}) | {State.RETRYING, State.SCHEDULED},
        _QUEUED,
        place=Place.RESET,
        clears=RERUN | Clears.EXPIRY,
        wakes=True,
    ),
    Verb.RERUN: Transition(
        TERMINAL, _QUEUED, place=Place.RESET, clears=RERUN | Clears.EXPIRY, wakes=True
    ),
    Verb.REBIND: Transition(
        TERMINAL, frozenset({State.SCHEDULED}), place=Place.RESET, clears=RERUN | Clears.EXPIRY
    ),
    # A task that waits to be retried is cancelled first.
    Verb.DELETE: Transition(TERMINAL | {State.RETRYING}, frozenset()),
}


REVIVALS = frozenset({Verb.REPLAY, Verb.RERUN, Verb.REBIND})
"""The verbs by which an operator has a task run again."""


def allows(verb: Verb, source: State) -> bool:
    """Return whether a task in `source` may undergo `verb`."""
    return source in TRANSITIONS[verb].sources


def sources_of(verb: Verb, among: frozenset[State] | None = None) -> frozenset[State]:
    """Return the states from which `verb` leads, as far as they are in `among` (None: all)."""
    sources = TRANSITIONS[verb].sources
    return sources if among is None else sources & among


# Why a task ended, as users read it in `error.reason` and in the dead letter queue.
RETRIES_EXHAUSTED = "max_retries_exceeded"
TIMED_OUT = "timeout"
WORKER_LOST = "worker_lost"
NOT_STARTED = "not_started"
NOT_RETRIABLE = "not_retriable"
EXPIRED = "expired"
REPLACED = "replaced"
DEPENDENCY_FAILED = "dependency_failed"


class Move(msgspec.Struct, frozen=True, gc=False):
    """One step of a task through the table, with its values resolved. Engines apply it as it is.

    `run` names the run that ends with it in the task's history: nothing is recorded, and no slot is
    concerned, if the task was not executing. `label` is what the move is counted under. `after`
    counts from the engine's now. `retry_count`, `returns`, `timeout` and `level` replace the task's
    own values; None leaves them as they are.
    """

    verb: Verb
    state: State
    run: str | None = None
    label: str = ""
    place: Place = Place.KEEP
    slot: Slot = Slot.FREE
    clears: Clears = Clears.NOTHING
    wakes: bool = False
    after: float = 0.0
    retry_count: int | None = None
    returns: int | None = None
    timeout: float | None = None
    level: int | None = None
    error: TaskError | None = None

    @property
    def ends(self) -> bool:
        """Whether the task has ended after it."""
        return self.state in TERMINAL


def _move(
    verb: Verb,
    *,
    run: str | None = None,
    label: str = "",
    place: Place | None = None,
    slot: Slot = Slot.FREE,
    after: float = 0.0,
    retry_count: int | None = None,
    returns: int | None = None,
    timeout: float | None = None,
    level: int | None = None,
    error: TaskError | None = None,
) -> Move:
    """Make a move from its row of the table."""
    row = TRANSITIONS[verb]
    (state,) = row.targets
    return Move(
        verb,
        state,
        run,
        label,
        row.place if place is None else place,
        slot,
        row.clears,
        row.wakes,
        after,
        retry_count,
        returns,
        timeout,
        level,
        error,
    )


COMPLETE = _move(Verb.COMPLETE, run="completed")
"""The handler returned. The result travels beside the move."""

CANCEL = _move(Verb.CANCEL, run="cancelled", slot=Slot.LINGER)
"""An operator ends the task, whether it waits or runs."""

DOOM = _move(
    Verb.CANCEL,
    label=DEPENDENCY_FAILED,
    error=TaskError(
        "A task it depends on did not complete.",
        code="DEPENDENCY_FAILED",
        retriable=False,
        reason=DEPENDENCY_FAILED,
    ),
)
"""A task that it depends on ended badly."""

REPLACE = _move(
    Verb.CANCEL,
    label=REPLACED,
    error=TaskError("A newer task took its place.", "REPLACED", retriable=False, reason=REPLACED),
)
"""A newer unique task took its place."""

EXPIRE = _move(
    Verb.EXPIRE,
    label=EXPIRED,
    error=TaskError(
        "The task expired before it could run.", "EXPIRED", retriable=False, reason=EXPIRED
    ),
)
"""Nobody claimed it in time."""

DUE = _move(Verb.DUE)
"""Its time has come: it takes the place that it had reserved."""

FREE = _move(Verb.DUE, place=Place.RESET)
"""Its last parent has ended, after its time had come: it queues from now on."""


def replay(*, reset_retry_count: bool, level: int | None) -> Move:
    """Return the move by which an operator has a task run again, perhaps at another level."""
    return _move(Verb.REPLAY, retry_count=0 if reset_retry_count else None, returns=0, level=level)


FROM_START = _move(Verb.RERUN, retry_count=0, returns=0)
"""A task of a workflow that ended runs again. All of its parents are met."""

BIND_AGAIN = _move(Verb.REBIND, retry_count=0, returns=0)
"""A task of a workflow that ended waits again for parents that run again."""


class Standing(Protocol):
    """What a decision depends on: the counters and the terms of the task."""

    @property
    def retry_count(self) -> int: ...
    @property
    def max_retries(self) -> int: ...
    @property
    def returns(self) -> int: ...
    @property
    def timeout(self) -> float | None: ...
    @property
    def retry(self) -> RetryPolicy: ...


def decide(task: Standing, outcome: Outcome, jitter: float) -> Move:
    """Return the move that the outcome of a run leads to.

    `jitter` in [0, 1) spreads retries in time.
    """
    if isinstance(outcome, Completed):  # ahead of the others: every task passes here
        return COMPLETE
    match outcome:
        case Failed(error, after):
            return _after_failure(task, error, after, jitter)
        case TimedOut(running):
            return _after_timeout(task, running, jitter)
        case Lost(started, spread):
            after = jitter * spread if started else 0.0
            return _after_loss(task, _DIED, WORKER_LOST, started=started, after=after)
        case Unstarted():
            return _after_loss(task, _IDLE, NOT_STARTED, started=False)
        case Disowned(started):
            return _after_loss(task, _DISOWNED, WORKER_LOST, started=started)
        case Released():
            return _run_again(task, Verb.RELEASE, "released")
        case Snoozed(after):
            return _run_again(task, Verb.SNOOZE, "snoozed", after=bounded(after))
        case _:
            assert_never(outcome)


def _after_failure(task: Standing, error: TaskError, after: float | None, jitter: float) -> Move:
    if not error.retriable:
        # Failing is final, but the run counts like any other.
        return _move(
            Verb.FAIL,
            run="failed",
            label=NOT_RETRIABLE,
            retry_count=task.retry_count + 1,
            error=msgspec.structs.replace(error, reason=NOT_RETRIABLE),
        )
    if after is None:
        after = task.retry.delay(task.retry_count, jitter)
        if error.code in SLOW_DOWN:
            after *= 2
    return _retry_or_bury(task, "failed", error, RETRIES_EXHAUSTED, bounded(after))


def _after_timeout(task: Standing, running: bool, jitter: float) -> Move:
    limit = task.timeout
    shown = "its time limit" if limit is None else f"its time limit of {limit:g} s"
    error = TaskError(
        f"The attempt took longer than {shown}: give the task a longer `timeout`, or less to do in "
        "one run.",
        code="TIMEOUT",
    )
    after = task.retry.delay(task.retry_count, jitter)
    slot = Slot.LINGER if running else Slot.FREE
    return _retry_or_bury(task, "timed_out", error, TIMED_OUT, after, _longer(limit), slot)


_DIED = TaskError("The worker died while it held the task.", code="WORKER_LOST")
# It counts like a lost run: nobody can tell whether the store lost the end of the run or the worker
# the run itself, and a task that its workers keep losing must not run for ever.
_DISOWNED = TaskError("The worker that held the task does not run it.", code="WORKER_LOST")
_IDLE = TaskError("The worker did not start the task in time.", code="NOT_STARTED")


def _after_loss(
    task: Standing, error: TaskError, reason: str, *, started: bool, after: float = 0.0
) -> Move:
    run = "lost" if started else "returned"
    spent = task.retry_count + 1 if started else task.retry_count
    returns = task.returns if started else task.returns + 1
    if (started and spent > task.max_retries) or returns > limits.FREE_RETURNS:
        return _bury(run, reason, error, spent)
    # Not the task's fault as far as anyone knows: it runs again at once, or when its part of the
    # spread is over.
    return _run_again(
        task,
        Verb.RETRY if after > 0 else Verb.RELEASE,
        run,
        reason,
        after=after,
        error=error,
        retry_count=spent,
        returns=returns,
    )


def _retry_or_bury(
    task: Standing,
    run: str,
    error: TaskError,
    reason: str,
    after: float,
    timeout: float | None = None,
    slot: Slot = Slot.FREE,
) -> Move:
    spent = task.retry_count + 1
    if spent > task.max_retries:
        return _bury(run, reason, error, spent, slot)
    return _run_again(
        task,
        Verb.RETRY,
        run,
        "timeout" if reason == TIMED_OUT else "error",
        after=after,
        error=error,
        retry_count=spent,
        timeout=timeout,
        slot=slot,
    )


def _bury(
    run: str, reason: str, error: TaskError, retry_count: int, slot: Slot = Slot.FREE
) -> Move:
    return _move(
        Verb.DEAD_LETTER,
        run=run,
        label=reason,
        slot=slot,
        retry_count=retry_count,
        error=msgspec.structs.replace(error, reason=reason),
    )


def _run_again(
    task: Standing,
    verb: Verb,
    run: str,
    label: str = "",
    *,
    after: float = 0.0,
    error: TaskError | None = None,
    retry_count: int | None = None,
    returns: int | None = None,
    timeout: float | None = None,
    slot: Slot = Slot.FREE,
) -> Move:
    return _move(
        verb,
        run=run,
        label=label,
        slot=slot,
        after=after,
        retry_count=task.retry_count if retry_count is None else retry_count,
        returns=task.returns if returns is None else returns,
        timeout=task.timeout if timeout is None else timeout,
        error=error,
    )


def bounded(seconds: float) -> float:
    """Bring a delay that a handler asked for into range; not a number counts as none."""
    return min(max(0.0, seconds), limits.DELAY_SECONDS)


def _longer(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    return max(timeout, min(timeout * limits.TIMEOUT_GROWTH, limits.TIMEOUT_GROWTH_CAP))
