"""Holds a history against what a store ended up with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from operator import itemgetter

from tests.e2e.history import fencing, inheriting, keeping, timing
from tests.e2e.history.dump import Dump
from tests.e2e.history.lines import History
from tests.e2e.history.terms import Terms, Violation

Invariant = Callable[[History, Dump, Terms], Iterator[Violation]]

INVARIANTS: dict[str, Invariant] = {
    "I1": keeping.accepted_is_kept,
    "I2": keeping.nothing_is_invented,
    "I3": fencing.one_outcome,
    "I4": fencing.fences_grow,
    "I5": fencing.starts_are_bounded,
    "I6": keeping.completed_was_run,
    "I7": timing.never_too_soon,
    "I8": fencing.cancelled_stays,
    "I9": timing.first_come_first_served,
    "I10": timing.nobody_starves,
    "I11": keeping.one_per_key,
    "I12": timing.concurrency_is_kept,
    "I13": timing.rate_is_kept,
    "I14": fencing.no_overlap,
    "I15": keeping.effects_match,
    "I16": keeping.books_are_right,
    "I17": timing.recovery_is_quick,
    "I18": timing.parents_come_first,
    "I21": keeping.executing_is_run,
    "I22": inheriting.results_are_the_parents,
    "I23": inheriting.the_doomed_never_run,
    "I24": inheriting.workflows_are_whole,
}

SHOWN = 50


def check(
    history: History,
    dump: Dump,
    terms: Terms = Terms(),  # noqa: B008
    without: Collection[str] = (),
) -> list[Violation]:
    """Everything that must not be, of every invariant but those that cannot hold here."""
    assert set(without) <= set(INVARIANTS)
    return [
        each
        for name, invariant in INVARIANTS.items()
        if name not in without
        for each in invariant(history, dump, terms)
    ]


def verdict(history: History, dump: Dump, violations: list[Violation]) -> str:
    """What to tell of a run: how much there was, what was wrong, and all that is known of that."""
    states = Counter(task.status.value for task in dump.tasks.values())
    answers = Counter(call.answer.__class__.__name__.lower() for call in history.calls)
    runs = [run for each in history.runs.values() for run in each]
    unfinished = sum(run.end is None for run in runs)
    told = [f"calls {dict(answers)}, tasks {dict(states)}, events {len(dump.events)}"]
    told += [f"runs {len(runs)}, of which {unfinished} did not come to their end"]
    told += map(str, violations[:SHOWN])
    if len(violations) > SHOWN:
        told.append(f"… and {len(violations) - SHOWN} more")
    for task_id in dict.fromkeys(each.task for each in violations[:5] if each.task):
        told += _story(history, dump, task_id)
    return "\n".join(told)


def _story(history: History, dump: Dump, task_id: str) -> list[str]:
    """One task, by the engine's clock: the journal's word beside that of clients and handlers."""
    moments = [
        (event.at.timestamp(), f"journal {event.verb} {event.attempt} by {event.worker_id}")
        for event in dump.events
        if event.task_id == task_id
    ]
    for run in history.runs.get(task_id, ()):
        for line in (run.start, run.end) if run.end else (run.start,):
            word = line.__class__.__name__.lower()
            moments.append((line.wall, f"handler {word} {line.attempt} in {line.pid}"))
    for call in history.calls:
        if task_id in {call.asked.task, call.ok.task if call.ok else None}:
            moments.append((call.asked.wall, f"client {call.asked.op}"))
            moments.append((call.answer.wall, f"client {call.answer.__class__.__name__.lower()}"))
    task = dump.tasks.get(task_id)
    shown = "is not in the store" if task is None else f"is {task.status}"
    moments.sort(key=itemgetter(0))  # and no further: the journal has its own order
    return [f"--- {task_id} {shown}", *(f"{at:.6f} {says}" for at, says in moments)]
