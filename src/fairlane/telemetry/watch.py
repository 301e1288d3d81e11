"""What a worker does, told to those who want to know: lines in the log, spans, or both.

A worker has no watch unless somebody asked for one when it started: then nothing of this costs
anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlane.core.machine import Outcome, Settlement, Verb
from fairlane.core.model import Claimed, Start, Verdict
from fairlane.telemetry import tracing, transitions
from fairlane.telemetry.bulk import Teller
from fairlane.telemetry.transitions import CLAIMED, COMPLETED, STARTED, Transition

if TYPE_CHECKING:
    from fairlane.telemetry.spans import RunSpans, Spans


End = tuple[Claimed | None, Settlement, Verdict | None]
"""A task, if it was held here, what is to become of it, and what the store said to that."""


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
        # What the store refuses for good has no verdict: then nobody knows whose is missing.
        known = verdicts if len(verdicts) == len(settlements) else [None] * len(settlements)
        tasks = [self._held.pop((each.task_id, each.attempt), None) for each in settlements]
        ends = list(zip(tasks, settlements, known, strict=True))
        if self._spans is not None:
            self._settle_spans(ends, since)
        if self._logged:
            self._log(ends)

    def _settle_spans(self, ends: Sequence[End], since: int) -> None:
        for task, settlement, verdict in ends:
            run = self._runs.pop((settlement.task_id, settlement.attempt), None)
            if task is not None and run is not None:
                run.settle(settlement, verdict, since)

    def _log(self, ends: Sequence[End]) -> None:
        plain = [
            (task, settlement.seconds)
            for task, settlement, verdict in ends
            if verdict is Verdict.APPLIED
            and settlement.change.verb is Verb.COMPLETE
            and task is not None
        ]
        if plain:
            self._teller.tell(COMPLETED, *zip(*plain, strict=True))
        if len(plain) == len(ends):
            return
        for task, settlement, verdict in ends:
            usual = verdict is Verdict.APPLIED and settlement.change.verb is Verb.COMPLETE
            if task is not None and not usual:
                transitions.settled(task, settlement, verdict).log()
