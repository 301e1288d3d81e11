"""What a worker does, told to those who want to know: lines in the log, spans, or both.

A worker has no watch unless somebody asked for one when it started: then nothing of this costs
anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Final

from fairlane.core.machine import Outcome, Settlement, Verb
from fairlane.core.model import Claimed, Verdict
from fairlane.telemetry import tracing, transitions
from fairlane.telemetry.bulk import Teller
from fairlane.telemetry.transitions import CLAIMED, COMPLETED, STARTED

if TYPE_CHECKING:
    from fairlane.telemetry.spans import RunSpans, Spans


APPLIED: Final = Verdict.APPLIED
COMPLETE: Final = Verb.COMPLETE


def watching() -> Watch | None:
    """A watch, if somebody wants one."""
    spans, logged = tracing.spans(), transitions.wanted()
    return Watch(spans, logged=logged) if spans is not None or logged else None


class Watch:
    """Tells of the tasks that one worker holds, from their claim to their end."""

    def __init__(self, spans: Spans | None, *, logged: bool) -> None:
        self._spans = spans
        self._logged = logged
        self._teller = Teller()
        self._runs: dict[tuple[str, int], RunSpans] = {}

    @property
    def traces(self) -> bool:
        """Whether runs have spans. If not, nobody need say when a run begins, nor each by itself
        that it has ended."""
        return self._spans is not None

    @staticmethod
    def now() -> int:
        """When something begins that will be told of."""
        return time.time_ns()

    def claimed(self, tasks: Sequence[Claimed], since: int) -> None:
        """The worker holds these now; the claim began at `since`."""
        if self._spans is not None:
            for task in tasks:
                self._runs[task.task_id, task.attempt] = self._spans.claimed(task, since)
        if self._logged:
            self._teller.tell(CLAIMED, tasks)

    def enter(self, task: Claimed) -> Callable[[], None] | None:
        """A run begins. What is answered is to be called when its handler has returned, by the
        coroutine that called this."""
        if self._spans is None:
            return None
        run = self._runs.get((task.task_id, task.attempt))
        return None if run is None else run.enter()

    def ended(self, task: Claimed, outcome: Outcome, *, told: bool) -> None:
        """This became of a run. `told`: a transaction of its own has told the store."""
        if self._spans is not None:
            run = self._runs.get((task.task_id, task.attempt))
            if run is not None:
                run.end(outcome)
        if told:
            self._runs.pop((task.task_id, task.attempt), None)
            if self._logged:
                self._teller.tell(COMPLETED, [task])

    def started(self, tasks: Sequence[Claimed]) -> None:
        """The store knows that these have begun."""
        if self._logged:
            self._teller.tell(STARTED, tasks)

    def settled(
        self,
        tasks: Sequence[Claimed],
        settlements: Sequence[Settlement],
        verdicts: Sequence[Verdict],
        since: int,
    ) -> None:
        """The store said this to those; they were sent at `since`."""
        # What the store refuses for good has no verdict: then nobody knows whose is missing.
        known = verdicts if len(verdicts) == len(settlements) else [None] * len(settlements)
        if self._spans is not None:
            for settlement, verdict in zip(settlements, known, strict=True):
                run = self._runs.pop((settlement.task_id, settlement.attempt), None)
                if run is not None:
                    run.settle(settlement, verdict, since)
        if self._logged:
            self._log(tasks, settlements, known)

    def _log(
        self,
        tasks: Sequence[Claimed],
        settlements: Sequence[Settlement],
        verdicts: Sequence[Verdict | None],
    ) -> None:
        durations = [settlement.seconds for settlement in settlements]
        verbs = [settlement.change.verb for settlement in settlements]
        if verbs.count(COMPLETE) == verdicts.count(APPLIED) == len(tasks):  # the common case
            self._teller.tell(COMPLETED, tasks, durations)
            return
        completed = [
            verb is COMPLETE and verdict is APPLIED
            for verb, verdict in zip(verbs, verdicts, strict=True)
        ]
        done = list(compress(tasks, completed)), list(compress(durations, completed))
        self._teller.tell(COMPLETED, *done)
        every = zip(tasks, settlements, verdicts, completed, strict=True)
        for task, settlement, verdict, complete in every:
            if not complete:
                transitions.settled(task, settlement, verdict).log()
