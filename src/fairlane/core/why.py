"""Why a waiting task waits: the question every operator asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from fairlane.core.dependencies import Dependency, dependency_on
from fairlane.core.estimates import position_of
from fairlane.core.facts import Facts
from fairlane.core.held_back import takes
from fairlane.core.lanes import UNRULED, Rules, refilled, serves
from fairlane.core.model import Task, WorkerStatus, microseconds_of
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import WAITING, State

PAUSED: Final = "paused"
NO_WORKER: Final = "no_worker"
HELD_BACK: Final = "held_back"
"""Codes of reasons that do not go away by themselves."""

NOBODY: Final = "No worker is running: start one with `fairlane worker --app module:app`."
"""What is said wherever a worker may have been forgotten."""


class Reason(msgspec.Struct, frozen=True):
    """One reason: a code for programs, a sentence for people."""

    code: str
    message: str


def reasons(task: Task, facts: Facts, parents: Sequence[Task]) -> list[Reason]:
    """Return why the task does not run yet, the decisive reasons first; empty unless it waits."""
    if task.state not in WAITING:
        return []
    return [
        *_not_yet(task, facts.now, parents),
        *_paused(task, facts),
        *_no_worker(task, facts),
        *_limited(task, facts),
        *_in_line(task, facts),
    ]


def _named(parent: Task, task: Task) -> str:
    """Return what a parent is called: by its name, if both are tasks of one workflow."""
    place = parent.membership
    if place is None or (parent.workflow_id, parent.owner) != (task.workflow_id, task.owner):
        return f"task {parent.task_id}"
    which = "its workflow" if place.name is None else f"the workflow {place.name}"
    return f"{place.node} of {which} (task {parent.task_id})"


def _not_yet(task: Task, now: int, parents: Sequence[Task]) -> Iterator[Reason]:
    if task.state is State.QUEUED:
        return
    pending = [
        parent
        for parent in parents
        if dependency_on(parent.state, tolerant=task.tolerant) is Dependency.PENDING
    ]
    if pending and task.state is State.SCHEDULED and not task.attempt:
        more = f" and {len(pending) - 1} more" if len(pending) > 1 else ""
        yield Reason("dependency", f"It waits for {_named(pending[0], task)}{more} to end.")
    due = task.next_retry_at or task.run_at
    seconds = (microseconds_of(due) - now) / MICROSECONDS
    if seconds > 0:
        what = "It failed and is tried again" if task.state is State.RETRYING else "It is due"
        yield Reason("due", f"{what} in {seconds:,.0f} s.")


def _paused(task: Task, facts: Facts) -> Iterator[Reason]:
    controls = facts.controls
    if controls.everything.paused:
        yield Reason(PAUSED, "Everything is paused.")
    if task.queue in controls.paused_queues:
        yield Reason(PAUSED, f"The queue {task.queue} is paused.")
    if _rules(task, facts).paused:
        yield Reason(PAUSED, f"The type {task.type} is paused.")


def _no_worker(task: Task, facts: Facts) -> Iterator[Reason]:
    takers = [worker for worker in facts.workers if serves(worker, task)]
    active = [
        worker for worker in takers if worker.status is WorkerStatus.ACTIVE and not worker.lost
    ]
    if any(takes(worker, task) for worker in active):
        return
    if active:
        yield Reason(HELD_BACK, f"Its workers hold it back: handlers of {task.type} hang.")
        return
    alive = [
        worker
        for worker in facts.workers
        if worker.status is not WorkerStatus.DEAD and not worker.lost
    ]
    if not alive:
        yield Reason(NO_WORKER, NOBODY)
    elif not takers:
        needs = [f"queue {task.queue}", f"type {task.type}"]
        needs += [f"capability {name}" for name in task.capabilities]
        yield Reason(
            NO_WORKER,
            f"No worker serves it: it needs {', '.join(needs)}. Start one that does, or correct "
            "the names: `fairlane workers` lists those that are served.",
        )
    else:
        yield Reason(
            NO_WORKER,
            "Every worker that serves it is draining, unhealthy or dead: start another one.",
        )


def _limited(task: Task, facts: Facts) -> Iterator[Reason]:
    rules = _rules(task, facts)
    lanes = {lane.id for lane in facts.lanes.values() if lane.type == task.type}
    held = sum(count for lane, count in facts.held.items() if lane in lanes)
    if rules.open_until is not None:
        seconds = (rules.open_until - facts.now) / MICROSECONDS
        cools = rules.cools(facts.now)
        then = f"for {seconds:,.0f} s more" if cools else "but for one task at a time"
        yield Reason("breaker", f"Too many runs of {task.type} failed: it is left alone {then}.")
    if rules.concurrency and held >= rules.concurrency:
        yield Reason(
            "concurrency", f"{held} of at most {rules.concurrency} {task.type} are running."
        )
    if _out_of_tokens(task.type, rules.rate, facts):
        yield Reason("rate", f"{task.type} is limited to {rules.rate:g} a second.")
    overall = facts.controls.everything.rate
    if _out_of_tokens("", overall, facts):
        yield Reason("rate", f"Everything together is limited to {overall:g} a second.")


def _out_of_tokens(bucket: str, rate: float, facts: Facts) -> bool:
    return rate > 0 and refilled(facts.buckets.get(bucket), rate, facts.now).tokens < 1


def _in_line(task: Task, facts: Facts) -> Iterator[Reason]:
    place = position_of(task, facts)
    if place is None:
        return
    if place.position == 1:
        yield Reason("position", "It is next in line.")
    else:
        ahead = place.position - 1
        count = "One task is" if ahead == 1 else f"About {ahead:,} tasks are"
        yield Reason("position", f"{count} ahead of it.")


def _rules(task: Task, facts: Facts) -> Rules:
    return facts.controls.types.get(task.type, UNRULED)
