"""What a worker does, as lines in the log, as spans, or both.

A worker has an observer only if one of the two is wanted when it starts. Without one this costs
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Final

from fairlane.core.machine import Move, Verb
from fairlane.core.model import Claimed
from fairlane.core.outcomes import Outcome
from fairlane.core.settlement import Settled, Settlement
from fairlane.telemetry import tracing, transitions
from fairlane.telemetry.transitions import CLAIMED, COMPLETED, STARTED, TransitionLog

if TYPE_CHECKING:
    from fairlane.telemetry.spans import RunSpans, Spans


COMPLETE: Final = Verb.COMPLETE


def new_observer() -> Observer | None:
    """Return an observer, or None if neither logs nor spans are wanted."""
    spans, logged = tracing.spans(), transitions.enabled()
    return Observer(spans, logged=logged) if spans is not None or logged else None


class Observer:
    """Reports the tasks of one worker, from their claim to their end."""

    def __init__(self, spans: Spans | None, *, logged: bool) -> None:
        self._spans = spans
        self._logged = logged
        self._log = TransitionLog()
        self._runs: dict[tuple[str, int], RunSpans] = {}

    @property
    def traces(self) -> bool:
        """Whether runs have spans. If not, `enter` and `ended` need not be called for each run."""
        return self._spans is not None

    @staticmethod
    def now() -> int:
        """Return the time, for the `since` of a later call."""
        return time.time_ns()

    def claimed(self, tasks: Sequence[Claimed], since: int) -> None:
        """Report that the worker has claimed these tasks; the claim began at `since`."""
        if self._spans is not None:
            for task in tasks:
                self._runs[task.task_id, task.attempt] = self._spans.claimed(task, since)
        if self._logged:
            self._log.write(CLAIMED, tasks)

    def enter(self, task: Claimed) -> Callable[[], None] | None:
        """Report that a run begins.

        When the handler has returned, the same coroutine must call what this returns.
        """
        if self._spans is None:
            return None
        run = self._runs.get((task.task_id, task.attempt))
        return None if run is None else run.enter()

    def ended(self, task: Claimed, outcome: Outcome, *, settled: bool) -> None:
        """Report the outcome of a run. `settled`: its completing transaction has settled it."""
        if self._spans is not None:
            run = self._runs.get((task.task_id, task.attempt))
            if run is not None:
                run.end(outcome)
        if settled:
            self._runs.pop((task.task_id, task.attempt), None)
            if self._logged:
                self._log.write(COMPLETED, [task])

    def started(self, tasks: Sequence[Claimed]) -> None:
        """Report that the store has recorded the start of these runs."""
        if self._logged:
            self._log.write(STARTED, tasks)

    def settled(
        self,
        tasks: Sequence[Claimed],
        settlements: Sequence[Settlement],
        answers: Sequence[Settled],
        since: int,
    ) -> None:
        """Report the store's answers to settlements that were sent at `since`."""
        # A settlement that the store refuses for good has no answer, and nothing says which.
        known = answers if len(answers) == len(settlements) else [None] * len(settlements)
        if self._spans is not None:
            for settlement, answer in zip(settlements, known, strict=True):
                run = self._runs.pop((settlement.task_id, settlement.attempt), None)
                if run is not None:
                    run.settle(answer, since)
        if self._logged:
            moves = [None if answer is None else answer.move for answer in known]
            self._log_settled(tasks, settlements, moves)

    def _log_settled(
        self,
        tasks: Sequence[Claimed],
        settlements: Sequence[Settlement],
        moves: Sequence[Move | None],
    ) -> None:
        durations = [settlement.seconds for settlement in settlements]
        completed = [move is not None and move.verb is COMPLETE for move in moves]
        if all(completed):  # the common case
            self._log.write(COMPLETED, tasks, durations)
            return
        done = list(compress(tasks, completed)), list(compress(durations, completed))
        self._log.write(COMPLETED, *done)
        every = zip(tasks, settlements, moves, completed, strict=True)
        for task, settlement, move, complete in every:
            if not complete:
                transitions.settled(task, settlement, move).log()
