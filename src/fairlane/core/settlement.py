"""Runs end: the core decides what follows from each, and the engine applies it.

A worker, a server or the maintenance reports an outcome together with the standing that the task
had when the run began. `settle` decides all of a batch in one place and hands the moves to the
engine's `apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import msgspec

from fairlane.core import sealing
from fairlane.core.flow import Flow, Op, writes
from fairlane.core.machine import COMPLETE, Move, Standing, allows, decide
from fairlane.core.model import Cause, Claimed, OnFailure, Overdue, Spec, Task, Verdict
from fairlane.core.outcomes import Completed, Lost, Outcome, TimedOut, Unstarted
from fairlane.core.states import TERMINAL, State
from fairlane.core.submission import same_payload
from fairlane.core.workflows import Verbs, cancel_all, read_workflow

Fence = tuple[str, int, str]
"""(task id, attempt, worker id)"""


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a run, under its fence.

    `standing` is the task as it was handed out. `seconds` is how long the run took, None if it
    never began. `jitter` in [0, 1) spreads retries in time. `matches` says whether a result in the
    store is the one of this outcome, where that is not seen from the bytes.
    """

    task_id: str
    attempt: int
    worker_id: str
    outcome: Outcome
    standing: Standing
    seconds: float | None = None
    jitter: float = 0.5
    matches: Callable[[bytes], bool] | None = None

    @property
    def fence(self) -> Fence:
        """Return what must match for the outcome to count."""
        return (self.task_id, self.attempt, self.worker_id)


def reaped(item: Overdue, jitter: float = 0.5, spread: float = 0.0) -> Settlement:
    """Return how the maintenance ends a run that is overdue.

    `spread` is the store's setting `requeue_spread`, see `store_settings`.
    """
    outcomes: dict[Cause, Outcome] = {
        Cause.LOST: Lost(item.started, spread),
        Cause.TIMEOUT: TimedOut(running=True),
        Cause.UNSTARTED: Unstarted(),
    }
    fence = (item.task_id, item.attempt, item.worker_id)
    return Settlement(*fence, outcomes[item.cause], item, jitter=jitter)


class FencedMove(msgspec.Struct, frozen=True, gc=False):
    """A move of an executing task, to be applied only if the task is still under this fence."""

    task_id: str
    attempt: int
    worker_id: str
    move: Move
    seconds: float | None = None
    result: bytes | None = None
    matches: Callable[[bytes], bool] | None = None

    @property
    def fence(self) -> Fence:
        """Return what must match."""
        return (self.task_id, self.attempt, self.worker_id)


class Settled(NamedTuple):
    """What became of a settlement. `move` is None if it was refused."""

    verdict: Verdict
    move: Move | None


class Applies(Verbs, Protocol):
    """What an engine offers to `settle`."""

    def apply(self, moves: Sequence[FencedMove], *, reaping: bool) -> Op[list[Verdict]]:
        """Move executing tasks whose fence matches. The same move again is `applied`."""


@writes
def settle(
    self: Applies, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Settled]]:
    moves = [_decide(item) for item in settlements]
    verdicts = yield from self.apply(moves, reaping=reaping).flow()
    if any(item.move is not COMPLETE for item in moves):
        yield from _cancel_rest(self, settlements, moves, verdicts)
    return [
        COMPLETED
        if verdict is _APPLIED and item.move is COMPLETE
        else Settled(verdict, item.move if verdict is _APPLIED else None)
        for verdict, item in zip(verdicts, moves, strict=True)
    ]


def _cancel_rest(
    self: Applies,
    settlements: Sequence[Settlement],
    moves: Sequence[FencedMove],
    verdicts: Sequence[Verdict],
) -> Flow[None]:
    """Cancel what is left of workflows of which a task has ended badly, if they are to end then.

    If the process dies before that, or nobody knows of what workflow the task is, the maintenance
    does it: see `workflow_watch`.
    """
    strict = {
        workflow
        for item, move, verdict in zip(settlements, moves, verdicts, strict=True)
        if verdict is _APPLIED and move.move.state in _BAD
        if (workflow := _strict_workflow(item.standing)) is not None
    }
    for workflow_id, size in sorted(strict):
        found = yield from read_workflow(self, workflow_id, size)
        if found is not None:
            yield from cancel_all(self, found.condemned)


def _strict_workflow(standing: Standing) -> tuple[str, int] | None:
    """Return the workflow of a task, and how many tasks it has, if one that ends badly ends it."""
    known = standing.spec if isinstance(standing, Claimed) else standing
    if not isinstance(known, Spec | Task) or known.membership is None or known.workflow_id is None:
        return None
    if known.membership.on_failure is not OnFailure.CANCEL:
        return None
    return known.workflow_id, known.membership.nodes


_BAD = TERMINAL - {State.COMPLETED}
_APPLIED = Verdict.APPLIED
COMPLETED = Settled(_APPLIED, COMPLETE)
"""The answer to nearly every settlement, made once."""


def _decide(item: Settlement) -> FencedMove:
    outcome, move, result = item.outcome, COMPLETE, None
    if isinstance(outcome, Completed):  # nearly all of them: nothing is to be decided
        result = outcome.result
    else:
        move = decide(item.standing, outcome, item.jitter)
        assert allows(move.verb, State.EXECUTING), move
    return FencedMove(
        item.task_id, item.attempt, item.worker_id, move, item.seconds, result, item.matches
    )


def judge_late(task: Task | None, late: FencedMove) -> Verdict:
    """Return the verdict on a move whose fence does not match the task as it stands.

    A report whose answer got lost is sent again: if the task's history has this very run, with the
    same result, the move was applied before.
    """
    if task is None:
        return Verdict.MISSING
    run = (late.attempt, late.worker_id, late.move.run)
    if any((past.number, past.worker_id, past.outcome) == run for past in task.attempts):
        same = late.move is not COMPLETE or _same_result(task.result or b"null", late)
        return Verdict.APPLIED if same else Verdict.STALE
    return Verdict.STALE


def _same_result(stored: bytes, late: FencedMove) -> bool:
    """Return whether a result is the same JSON as the stored one. Without a key, a sealed one is
    taken for the same: it differs each time it is sealed."""
    sent = late.result or b"null"
    if stored == sent:
        return True
    if late.matches is None and (sealing.parsed(stored) or sealing.parsed(sent)):
        return True
    matches = partial(same_payload, sent) if late.matches is None else late.matches
    try:
        return matches(stored)
    except (ValueError, msgspec.MsgspecError):
        return False  # what is stored is damaged
