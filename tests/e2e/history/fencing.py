"""One outcome for each attempt, one end for each task, and no way back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from fairlane import State
from fairlane.core import limits
from fairlane.core.machine import REVIVALS, Verb
from fairlane.core.model import Event
from tests.e2e.history.dump import Dump
from tests.e2e.history.lines import History
from tests.e2e.history.terms import Terms, Violation

OUTCOMES = frozenset(
    {Verb.COMPLETE, Verb.RETRY, Verb.SNOOZE, Verb.RELEASE, Verb.FAIL, Verb.DEAD_LETTER}
)
"""How an attempt ends by its worker, or by the maintenance."""
ENDS = frozenset({Verb.COMPLETE, Verb.FAIL, Verb.DEAD_LETTER, Verb.CANCEL, Verb.EXPIRE})
TAKEN_AWAY = frozenset({"lost", "returned", "timed_out", "released", "cancelled"})
"""Outcomes that others decide while the handler may still run."""
FREE = frozenset({"released", "snoozed"})


def one_outcome(_: History, dump: Dump, __: Terms) -> Iterator[Violation]:
    """I3: one accepted outcome for each fence, one end for each task and replay."""
    for task_id, task in dump.tasks.items():
        for number, count in Counter(each.number for each in task.attempts).items():
            if count > 1:
                yield Violation("I3", task_id, f"attempt {number} has {count} outcomes")
    for task_id, events in _by_task(dump.events).items():
        outcomes = Counter(event.attempt for event in events if event.verb in OUTCOMES)
        for attempt, count in outcomes.items():
            if count > 1:
                yield Violation("I3", task_id, f"attempt {attempt} ended {count} times")
        ended = False
        for event in events:
            if event.verb in REVIVALS:
                ended = False
            elif ended and event.verb != Verb.DELETE:
                yield Violation("I3", task_id, f"had ended, then came: {event.verb}")
            ended = ended or event.verb in ENDS


def fences_grow(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I4: attempts grow with every claim, and only the last one issued is ever accepted."""
    for task_id, events in _by_task(dump.events).items():
        highest = 0
        for event in events:
            attempt = event.attempt or 0
            if event.verb == Verb.CLAIM:
                if attempt <= highest:
                    yield Violation("I4", task_id, f"attempt {attempt} was issued after {highest}")
                highest = max(highest, attempt)
            elif event.verb in OUTCOMES and attempt != highest:
                yield Violation(
                    "I4", task_id, f"{event.verb} of attempt {attempt}, when {highest} was issued"
                )
    for task_id, runs in history.runs.items():
        fences = Counter(run.start.attempt for run in runs)
        for attempt, count in fences.items():
            if count > 1:
                yield Violation("I4", task_id, f"attempt {attempt} was begun {count} times")
        task = dump.tasks.get(task_id)
        if task is not None and max(fences) > task.attempt:
            yield Violation(
                "I4", task_id, f"attempt {max(fences)} was begun, but {task.attempt} is the last"
            )


def starts_are_bounded(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I5: no more runs than retries and free returns allow."""
    for task_id, task in dump.tasks.items():
        free = sum(each.outcome in FREE for each in task.attempts)
        per_life = task.max_retries + 1 + limits.FREE_RETURNS
        allowed = per_life * (1 + history.replays(task_id)) + free
        begun = len(history.runs.get(task_id, ()))
        if begun > allowed:
            yield Violation("I5", task_id, f"was begun {begun} times, {allowed} are allowed")


def cancelled_stays(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I8: what was cancelled is not completed afterwards."""
    for call in history.asked("cancel"):
        task = dump.tasks.get(call.asked.task or "")
        if call.ok and task and not history.replays(task.task_id):
            if task.status is not State.CANCELLED:
                yield Violation("I8", task.task_id, f"was cancelled and is {task.status}")
    for task_id, events in _by_task(dump.events).items():
        cancelled = False
        for event in events:
            if event.verb == Verb.CANCEL or event.verb in REVIVALS:
                cancelled = event.verb == Verb.CANCEL
            elif cancelled and event.verb == Verb.COMPLETE:
                yield Violation("I8", task_id, "was cancelled, then completed")


def no_overlap(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I14: a run overlaps the one before only if that one had lost the task."""
    for task_id, runs in history.runs.items():
        task = dump.tasks.get(task_id)
        outcomes = {each.number: each.outcome for each in task.attempts} if task else {}
        for earlier, later in pairwise(runs):
            overlapping = earlier.end is not None and earlier.end.at > later.start.at
            if overlapping and outcomes.get(earlier.start.attempt) not in TAKEN_AWAY:
                yield Violation(
                    "I14",
                    task_id,
                    f"attempt {later.start.attempt} began while {earlier.start.attempt}, which had "
                    f"not lost it, was running",
                )


def _by_task(events: tuple[Event, ...]) -> dict[str, list[Event]]:
    found = defaultdict(list)
    for event in events:
        if event.task_id is not None:
            found[event.task_id].append(event)
    return dict(found)
