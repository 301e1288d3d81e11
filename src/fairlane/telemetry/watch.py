"""What a worker does, told to those who want to know: lines in the log, spans, or both.

A worker has no watch unless somebody asked for one when it started: then nothing of this costs
anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlane.core.machine import Outcome, Settlement
from fairlane.core.model import Claimed, Start, Verdict
from fairlane.telemetry import tracing, transitions

if TYPE_CHECKING:
    from fairlane.telemetry.spans import RunSpans, Spans


def watching() -> Watch | None:
    """A watch, if somebody wants one."""
    spans, logged = tracing.spans(), transitions.wanted()
    return Watch(spans, logged=logged) if spans is not None or logged else None


class Watch:
    """Knows the tasks that one worker holds, from their claim to their end."""

    def __init__(self, spans: Spans | None, *, logged: bool) -> None:
        self._spans = spans
        self._logged = logged
        self._held: dict[tuple[str, int], _Held] = {}

    @staticmethod
    def now() -> int:
        """When something begins that will be told of."""
        return time.time_ns()

    def claimed(self, tasks: Sequence[Claimed], since: int) -> None:
        """The worker holds these now; the claim began at `since`."""
        for task in tasks:
            spans = None if self._spans is None else self._spans.claimed(task, since)
            self._held[task.task_id, task.attempt] = _Held(task, spans)
            if self._logged:
                transitions.tell_claimed(task)

    def enter(self, task: Claimed) -> Callable[[], None] | None:
        """A run begins. What is answered is to be called when its handler has returned, by the
        coroutine that called this."""
        held = self._held.get((task.task_id, task.attempt))
        return None if held is None or held.spans is None else held.spans.enter()

    def ended(self, task: Claimed, outcome: Outcome, *, told: bool) -> None:
        """This became of a run. `told`: a transaction of its own has told the store."""
        key = (task.task_id, task.attempt)
        held = self._held.pop(key, None) if told else self._held.get(key)
        if held is None:
            return
        if held.spans is not None:
            held.spans.end(outcome)
        if told and self._logged:
            transitions.tell_completed(task)

    def started(self, starts: Sequence[Start]) -> None:
        """The store knows that these have begun."""
        for start in starts:
            held = self._held.get((start.task_id, start.attempt))
            if held is not None and self._logged:
                transitions.tell_started(held.task)

    def settled(
        self, settlements: Sequence[Settlement], verdicts: Sequence[Verdict], since: int
    ) -> None:
        """The store said this to those; they were sent at `since`."""
        # What the store refuses for good has no verdict: then nobody knows whose is missing.
        known = len(verdicts) == len(settlements)
        for number, settlement in enumerate(settlements):
            verdict = verdicts[number] if known else None
            held = self._held.pop((settlement.task_id, settlement.attempt), None)
            if held is None:
                continue
            if held.spans is not None:
                held.spans.settle(settlement, verdict, since)
            if self._logged:
                transitions.tell_settled(held.task, settlement, verdict)


class _Held:
    __slots__ = ("spans", "task")

    def __init__(self, task: Claimed, spans: RunSpans | None) -> None:
        self.task = task
        self.spans = spans
