"""What a worker does, told to those who want to know: lines in the log, spans, or both.

A worker has no watch unless somebody asked for one when it started: then nothing of this costs
anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from fairlane.core.machine import Outcome, Settlement, Verb
from fairlane.core.model import Claimed, Start, Verdict
from fairlane.telemetry import tracing, transitions
from fairlane.telemetry.bulk import Teller
from fairlane.telemetry.transitions import CLAIMED, COMPLETED, STARTED, Transition

if TYPE_CHECKING:
    from fairlane.telemetry.spans import RunSpans, Spans


APPLIED: Final = Verdict.APPLIED
COMPLETE: Final = Verb.COMPLETE


def watching() -> Watch | None:
    """A watch, if somebody wants one."""
    spans, logged = tracing.spans(), transitions.wanted()
    return Watch(spans, logged=logged) if spans is not None or logged else None


class Watch:
    """Knows the tasks that one worker holds, from their claim to their end."""

    def __init__(self, spans: Spans | None, *, logged: bool) -> None:
        self._spans = spans
        self._logged = logged
        self._teller = Teller()
        self._held: dict[tuple[str, int], Claimed] = {}
        self._runs: dict[tuple[str, int], RunSpans] = {}

    @staticmethod
    def now() -> int:
        """When something begins that will be told of."""
        return time.time_ns()

    def claimed(self, tasks: Sequence[Claimed], since: int) -> None:
        """The worker holds these now; the claim began at `since`."""
        self._held.update({(task.task_id, task.attempt): task for task in tasks})
        if self._spans is not None:
            for task in tasks:
                self._runs[task.task_id, task.attempt] = self._spans.claimed(task, since)
        if self._logged:
            self._teller.tell(CLAIMED, tasks, [None] * len(tasks))

    def enter(self, task: Claimed) -> Callable[[], None] | None:
        """A run begins. What is answered is to be called when its handler has returned, by the
        coroutine that called this."""
        if self._spans is None:
            return None
        run = self._runs.get((task.task_id, task.attempt))
        return None if run is None else run.enter()

    def ended(self, task: Claimed, outcome: Outcome, *, told: bool) -> None:
        """This became of a run. `told`: a transaction of its own has told the store."""
        if self._spans is None and not told:
            return
        key = (task.task_id, task.attempt)
        if key not in self._held:
            return
        run = self._runs.get(key)
        if run is not None:
            run.end(outcome)
        if told:
            del self._held[key]
            self._runs.pop(key, None)
            if self._logged:
                Transition(COMPLETED, task).log()

    def started(self, starts: Sequence[Start]) -> None:
        """The store knows that these have begun."""
        for start in starts:
            task = self._held.get((start.task_id, start.attempt))
            if task is not None and self._logged:
                Transition(STARTED, task).log()

    def settled(
        self, settlements: Sequence[Settlement], verdicts: Sequence[Verdict], since: int
    ) -> None:
        """The store said this to those; they were sent at `since`."""
        tasks = [self._held.pop((each.task_id, each.attempt), None) for each in settlements]
        # What the store refuses for good has no verdict: then nobody knows whose is missing.
        known = verdicts if len(verdicts) == len(settlements) else [None] * len(settlements)
        if self._spans is not None:
            for task, settlement, verdict in zip(tasks, settlements, known, strict=True):
                run = self._runs.pop((settlement.task_id, settlement.attempt), None)
                if task is not None and run is not None:
                    run.settle(settlement, verdict, since)
        if self._logged:
            self._log(tasks, settlements, known)

    def _log(
        self,
        tasks: Sequence[Claimed | None],
        settlements: Sequence[Settlement],
        verdicts: Sequence[Verdict | None],
    ) -> None:
        done: list[Claimed] = []
        durations: list[float | None] = []
        others: list[Transition] = []
        for task, settlement, verdict in zip(tasks, settlements, verdicts, strict=True):
            if task is None:
                continue
            if verdict is APPLIED and settlement.change.verb is COMPLETE:
                done.append(task)
                durations.append(settlement.seconds)
            else:
                others.append(transitions.settled(task, settlement, verdict))
        self._teller.tell(COMPLETED, done, durations)
        for each in others:
            each.log()
