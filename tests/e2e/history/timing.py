"""What happens when, in what order, how often at once, and how soon after trouble."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator

from fairlane import State
from fairlane.core.machine import Verb
from fairlane.core.model import Event, Task
from fairlane.core.states import WAITING
from tests.e2e.history.dump import Dump
from tests.e2e.history.fencing import ENDS, OUTCOMES
from tests.e2e.history.lines import Call, Healed, History, Killed, Start
from tests.e2e.history.terms import SLACK, Terms, Violation


def never_too_soon(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I7: no start before its time or after a cancellation; no claim when expired or paused."""
    for task_id, runs in history.runs.items():
        task = dump.tasks.get(task_id)
        if task is None:
            continue
        first = runs[0].start
        # A snooze moves run_at, so it says nothing of the runs before.
        snoozed = any(each.outcome == "snoozed" for each in task.attempts)
        if not snoozed and first.wall < task.run_at.timestamp() - SLACK:
            yield Violation("I7", task_id, "was begun before its time")
    for event in _claims(dump):
        task = dump.tasks.get(event.task_id or "")
        if task and task.expires_at is not None and event.at > task.expires_at:
            yield Violation("I7", event.task_id, "was claimed after it had expired")
    for call in history.asked("cancel"):
        if call.ok and call.ok.found in WAITING and not history.replays(call.asked.task or ""):
            for run in history.runs.get(call.asked.task or "", ()):
                if run.start.at > call.ok.at:
                    yield Violation("I7", call.asked.task, "was cancelled in the queue, then begun")
    for began, ended in _pauses(history):
        for event in _claims(dump):
            if began + SLACK < event.at.timestamp() < ended - SLACK:
                yield Violation("I7", event.task_id, "was claimed while everything was paused")


def first_come_first_served(_: History, dump: Dump, terms: Terms) -> Iterator[Violation]:
    """I9: among tasks alike that ran once, few younger ones are claimed before an older one."""
    if terms.overtakes is None:
        return
    alike: dict[tuple[object, ...], list[tuple[Task, int]]] = defaultdict(list)
    for place, event in enumerate(_claims(dump)):
        task = dump.tasks.get(event.task_id or "")
        # With expiry, dependencies or a delay it became ready at a time of its own.
        if task and task.attempt == 1 and task.ready_at == task.created_at:
            alike[task.queue, task.type, task.priority].append((task, place))
    for claimed in alike.values():
        claimed.sort(key=lambda each: (each[0].ready_at, each[0].task_id), reverse=True)
        younger: list[int] = []
        for task, place in claimed:
            overtaken = bisect_left(younger, place)
            if overtaken > terms.overtakes:
                yield Violation("I9", task.task_id, f"was overtaken by {overtaken} younger tasks")
            insort(younger, place)


def nobody_starves(history: History, dump: Dump, terms: Terms) -> Iterator[Violation]:
    """I10: a task of the lowest priority begins within the bound."""
    if terms.longest_wait is None or not dump.tasks:
        return
    lowest = min(task.priority for task in dump.tasks.values())
    for task_id, task in dump.tasks.items():
        runs = history.runs.get(task_id)
        if task.priority == lowest and runs:
            waited = runs[0].start.wall - task.ready_at.timestamp()
            if waited > terms.longest_wait:
                yield Violation("I10", task_id, f"waited {waited:.1f} s")


def concurrency_is_kept(_: History, dump: Dump, terms: Terms) -> Iterator[Violation]:
    """I12: never more of a type in workers' hands than its limit."""
    held: dict[str, set[str]] = defaultdict(set)
    for event in dump.events:
        limit = terms.concurrency.get(event.type or "")
        if limit is None or event.type is None or event.task_id is None:
            continue
        hands = held[event.type]
        if event.verb == Verb.CLAIM:
            hands.add(event.task_id)
            if len(hands) > limit:
                says = f"{len(hands)} of {event.type} are held at once, the limit is {limit}"
                yield Violation("I12", event.task_id, says)
        elif event.verb in OUTCOMES | ENDS:
            hands.discard(event.task_id)


def rate_is_kept(_: History, dump: Dump, terms: Terms) -> Iterator[Violation]:
    """I13: claims in any w seconds are at most burst + rate x w."""
    for type, rate in terms.rates.items():
        burst = max(1.0, rate)
        # Claims i to j are j - i + 1 within t(j) - t(i): compare j - rate * t(j) with the least.
        least = float("inf")
        claims = (event for event in _claims(dump) if event.type == type)
        for number, event in enumerate(claims):
            level = number - rate * event.at.timestamp()
            least = min(least, level)
            if level - least + 1 > burst + rate * SLACK:
                yield Violation("I13", event.task_id, f"{type} was claimed faster than {rate}/s")


def recovery_is_quick(history: History, dump: Dump, terms: Terms) -> Iterator[Violation]:
    """I17: after trouble every process soon begins something, and so does what a dead one held."""
    starts = [line for line in history.lines if isinstance(line, Start)]
    for line in history.lines:
        if isinstance(line, Healed):
            back = {each.pid for each in starts if 0 <= each.at - line.at <= terms.recovery}
            yield from (
                Violation("I17", None, f"process {pid} began nothing for {terms.recovery} s")
                for pid in line.pids
                if pid not in back
            )
        elif isinstance(line, Killed):
            yield from _taken_over(history, dump, terms, line)


def _taken_over(history: History, dump: Dump, terms: Terms, killed: Killed) -> Iterator[Violation]:
    within = terms.lease + terms.reap + 5
    for task_id, runs in history.runs.items():
        task = dump.tasks.get(task_id)
        for run, later in zip(runs, [*runs[1:], None], strict=True):
            if run.end is not None or run.start.worker != killed.worker:
                continue
            if later is None:
                # What was cancelled meanwhile is nobody's to begin again.
                if task is not None and task.status not in {State.DEAD_LETTER, State.CANCELLED}:
                    yield Violation("I17", task_id, "died with its worker and was not begun again")
            elif later.start.at - killed.at > within:
                waited = later.start.at - killed.at
                yield Violation("I17", task_id, f"was begun {waited:.1f} s after its worker died")


def parents_come_first(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I18: nothing begins before what it depends on is completed (or has ended, if tolerant)."""
    for task_id, task in dump.tasks.items():
        runs = history.runs.get(task_id)
        for parent_id in task.depends_on if runs else ():
            parent = dump.tasks.get(parent_id)
            if parent is None or runs is None:
                continue  # deleted since
            ended = None if parent.completed_at is None else parent.completed_at.timestamp()
            right = parent.status is State.COMPLETED or task.tolerant
            if ended is None or not right or runs[0].start.wall < ended - SLACK:
                yield Violation("I18", task_id, f"was begun before {parent_id} was completed")


def _claims(dump: Dump) -> Iterator[Event]:
    return (event for event in dump.events if event.verb == Verb.CLAIM)


def _pauses(history: History) -> Iterator[tuple[float, float]]:
    """From the answer to a pause until someone asks to resume."""
    began: Call | None = None
    for call in history.asked("pause", "resume"):
        if call.asked.op == "pause" and call.ok:
            began = began or call
        elif call.asked.op == "resume" and began and began.ok:
            yield began.ok.wall, call.asked.wall
            began = None
    if began and began.ok:
        yield began.ok.wall, float("inf")
