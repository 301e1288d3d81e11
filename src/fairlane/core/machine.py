"""The state machine: which transitions exist, and what an attempt's outcome leads to.

This is the only place that knows the rules of retries, timeouts and dead letters. It is pure and
has no clock: a `Change` carries durations, and the engine that applies it adds its own now.

                     submit
                   ┌───┴────┐
                   ▼        ▼        claim                 complete
     ┌────────▶ scheduled  queued ─────────▶ executing ───────────────▶ completed
     │             │ due    ▲ ▲ ▲               │ │
     │ snooze      └────────┘ │ └── release ────┤ ├── fail ───────────▶ failed
     └────────────────────────┼─────────────────┤ ├── dead_letter ────▶ dead_letter
                          due │                 │ └── cancel ─────────▶ cancelled
                       retrying ◀──── retry ────┘

`cancel` also ends every waiting state; `expire` ends a waiting task as failed; `replay` brings
what failed, died, was cancelled or still waits for its time back to queued; `delete` takes what has
ended away. `due` also tells of a task whose dependencies are met.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, assert_never

import msgspec

from fairlane.core import limits
from fairlane.core.model import Task, TaskError, Verdict
from fairlane.core.retry import RATE_LIMIT, RetryPolicy
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
    DELETE = "delete"


class Transition(msgspec.Struct, frozen=True):
    """From which states a verb leads, and to which."""

    sources: frozenset[State]
    targets: frozenset[State]


_EXECUTING = frozenset({State.EXECUTING})

TRANSITIONS: dict[Verb, Transition] = {
    Verb.SUBMIT: Transition(frozenset(), frozenset({State.SCHEDULED, State.QUEUED})),
    Verb.DUE: Transition(
        frozenset({State.SCHEDULED, State.RETRYING}),
        frozenset({State.QUEUED}),
    ),
    Verb.CLAIM: Transition(frozenset({State.QUEUED}), _EXECUTING),
    Verb.COMPLETE: Transition(_EXECUTING, frozenset({State.COMPLETED})),
    Verb.RETRY: Transition(_EXECUTING, frozenset({State.RETRYING})),
    Verb.SNOOZE: Transition(_EXECUTING, frozenset({State.SCHEDULED})),
    Verb.RELEASE: Transition(_EXECUTING, frozenset({State.QUEUED})),
    Verb.FAIL: Transition(_EXECUTING, frozenset({State.FAILED})),
    Verb.DEAD_LETTER: Transition(_EXECUTING, frozenset({State.DEAD_LETTER})),
    Verb.CANCEL: Transition(WAITING | _EXECUTING, frozenset({State.CANCELLED})),
    Verb.EXPIRE: Transition(WAITING, frozenset({State.FAILED})),
    Verb.REPLAY: Transition(
        (TERMINAL - {State.COMPLETED}) | {State.RETRYING, State.SCHEDULED},
        frozenset({State.QUEUED}),
    ),
    # A task that still waits to be retried is cancelled first.
    Verb.DELETE: Transition(TERMINAL | {State.RETRYING}, frozenset()),
}


def allows(verb: Verb, source: State) -> bool:
    """Whether a task in `source` may undergo `verb`."""
    return source in TRANSITIONS[verb].sources


# Why a task ended, as users read it in `error.reason` and in the dead letter queue.
RETRIES_EXHAUSTED = "max_retries_exceeded"
TIMED_OUT = "timeout"
WORKER_LOST = "worker_lost"
NOT_RETRIABLE = "not_retriable"
EXPIRED = "expired"
REPLACED = "replaced"

# What such an end says where no run failed.
EXPIRY = TaskError(
    "The task expired before it could run.", "EXPIRED", retriable=False, reason=EXPIRED
)
REPLACEMENT = TaskError(
    "A newer task took its place.", "REPLACED", retriable=False, reason=REPLACED
)


class Completed(msgspec.Struct, frozen=True, gc=False):
    """The handler returned `result` (JSON)."""

    result: bytes


class Failed(msgspec.Struct, frozen=True):
    """The handler raised. `after` is the delay it asked for, if any."""

    error: TaskError
    after: float | None = None


class TimedOut(msgspec.Struct, frozen=True):
    """The attempt took longer than it was given."""


class Lost(msgspec.Struct, frozen=True):
    """The worker died with the task in its hands."""

    started: bool


class Released(msgspec.Struct, frozen=True):
    """The worker gave the task back: it is shutting down."""


class Snoozed(msgspec.Struct, frozen=True):
    """The handler asked to run again in `after` seconds, at no cost."""

    after: float


Outcome = Completed | Failed | TimedOut | Lost | Released | Snoozed


class Change(msgspec.Struct, frozen=True, gc=False):
    """What an engine applies to an executing task: a verb with its values resolved.

    `after` counts from the engine's now. `retry_count`, `returns` and `timeout` replace the task's
    own; `error` is what users then read; `outcome` names the attempt in its history.
    """

    verb: Verb
    state: State
    outcome: str
    retry_count: int
    returns: int
    timeout: float | None
    after: float = 0.0
    reason: str | None = None
    result: bytes | None = None
    error: TaskError | None = None


Fence = tuple[str, int, str]
"""(task id, attempt, worker id)"""


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """A change under its fence. `seconds`: how long the attempt ran, None when it never began.

    `outcome` is what the change was decided from, for stores that decide themselves.
    """

    task_id: str
    attempt: int
    worker_id: str
    change: Change
    seconds: float | None = None
    outcome: Outcome | None = None

    @property
    def fence(self) -> Fence:
        """What must match for the change to be applied."""
        return (self.task_id, self.attempt, self.worker_id)


class Refusal(msgspec.Struct, frozen=True):
    """Why an outcome changes nothing."""

    state: State
    message: str


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


def decide(
    task: Standing, outcome: Outcome, luck: float, state: State = State.EXECUTING
) -> Change | Refusal:
    """What `outcome` leads to for a task in `state`. `luck` in [0, 1) spreads retries in time."""
    if state is not State.EXECUTING:
        return Refusal(state, f"A task that is {state} has no running attempt to end.")
    if isinstance(outcome, Completed):  # ahead of the others: every task passes here
        return Change(
            Verb.COMPLETE,
            State.COMPLETED,
            "completed",
            task.retry_count,
            task.returns,
            task.timeout,
            result=outcome.result,
        )
    match outcome:
        case Failed(error, after):
            return _after_failure(task, error, after, luck)
        case TimedOut():
            return _after_timeout(task, luck)
        case Lost(started):
            return _after_loss(task, started)
        case Released():
            return _change(task, Verb.RELEASE, State.QUEUED, "released")
        case Snoozed(after):
            pause = _bounded(after)
            return _change(task, Verb.SNOOZE, State.SCHEDULED, "snoozed", after=pause)
        case _:
            assert_never(outcome)


def verdict_on_late(task: Task | None, late: Settlement) -> Verdict:
    """What to say of a settlement whose fence does not match the task as it stands.

    A report whose answer got lost is sent again: if this very outcome is in the task's history, it
    was applied.
    """
    if task is None:
        return Verdict.MISSING
    told = (late.attempt, late.worker_id, late.change.outcome)
    if any((past.number, past.worker_id, past.outcome) == told for past in task.attempts):
        return Verdict.APPLIED
    return Verdict.STALE


def _after_failure(task: Standing, error: TaskError, after: float | None, luck: float) -> Change:
    if not error.retriable:
        # Failing is final, but the run counts like any other.
        failed = msgspec.structs.replace(error, reason=NOT_RETRIABLE)
        return _change(
            task,
            Verb.FAIL,
            State.FAILED,
            "failed",
            retry_count=task.retry_count + 1,
            reason=NOT_RETRIABLE,
            error=failed,
        )
    if after is None:
        after = task.retry.delay(task.retry_count, luck)
        if error.code == RATE_LIMIT:
            after *= 2
    pause = _bounded(after)
    return _retry_or_bury(task, "failed", error, RETRIES_EXHAUSTED, pause, task.timeout)


def _after_timeout(task: Standing, luck: float) -> Change:
    limit = task.timeout
    shown = "its time limit" if limit is None else f"its time limit of {limit:g} s"
    error = TaskError(f"The attempt took longer than {shown}.", code="TIMEOUT")
    after = task.retry.delay(task.retry_count, luck)
    return _retry_or_bury(task, "timed_out", error, TIMED_OUT, after, _longer(limit))


def _after_loss(task: Standing, started: bool) -> Change:
    error = TaskError("The worker died while it held the task.", code="WORKER_LOST")
    spent = task.retry_count + 1 if started else task.retry_count
    returns = task.returns if started else task.returns + 1
    if (started and spent > task.max_retries) or returns > limits.FREE_RETURNS:
        verb, state, reason = Verb.DEAD_LETTER, State.DEAD_LETTER, WORKER_LOST
        error = msgspec.structs.replace(error, reason=reason)
    else:
        # Not the task's fault as far as anyone knows: it runs again at once.
        verb, state, reason = Verb.RELEASE, State.QUEUED, WORKER_LOST
    return _change(
        task,
        verb,
        state,
        "lost" if started else "returned",
        retry_count=spent,
        returns=returns,
        reason=reason,
        error=error,
    )


def _retry_or_bury(
    task: Standing,
    outcome: str,
    error: TaskError,
    reason: str,
    after: float,
    timeout: float | None,
) -> Change:
    spent = task.retry_count + 1
    if spent > task.max_retries:
        return _change(
            task,
            Verb.DEAD_LETTER,
            State.DEAD_LETTER,
            outcome,
            retry_count=spent,
            reason=reason,
            error=msgspec.structs.replace(error, reason=reason),
        )
    return _change(
        task,
        Verb.RETRY,
        State.RETRYING,
        outcome,
        retry_count=spent,
        timeout=timeout,
        after=after,
        reason="timeout" if reason == TIMED_OUT else "error",
        error=error,
    )


def _bounded(seconds: float) -> float:
    """A delay that a handler asked for, brought into range (not a number counts as none)."""
    return min(max(0.0, seconds), limits.DELAY_SECONDS)


def _longer(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    return max(timeout, min(timeout * limits.TIMEOUT_GROWTH, limits.TIMEOUT_GROWTH_CAP))


def _change(
    task: Standing,
    verb: Verb,
    state: State,
    outcome: str,
    *,
    retry_count: int | None = None,
    returns: int | None = None,
    timeout: float | None = None,
    after: float = 0.0,
    reason: str | None = None,
    error: TaskError | None = None,
) -> Change:
    return Change(
        verb=verb,
        state=state,
        outcome=outcome,
        retry_count=task.retry_count if retry_count is None else retry_count,
        returns=task.returns if returns is None else returns,
        timeout=task.timeout if timeout is None else timeout,
        after=after,
        reason=reason,
        error=error,
    )
