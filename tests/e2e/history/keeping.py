"""Nothing is lost, nothing is invented, and the books are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from fairlane import State
from fairlane.core.states import TERMINAL, WAITING
from tests.e2e.history.dump import Dump
from tests.e2e.history.holding import Held, Spell
from tests.e2e.history.lines import Fail, History, Run, digest
from tests.e2e.history.terms import Terms, Violation

UNSETTLED_SECONDS = 30.0
"""How long, beyond two leases, a worker may hold what it does not run. It compares once in a lease,
acts on what it finds twice, and waits for its last claim, which over HTTP takes up to 20 s."""


def accepted_is_kept(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I1: what was accepted exists, and has ended, waits, or is in living hands; what was asked for
    without an answer exists once at the most."""
    places = Counter(task_id for task_id, _ in dump.rows)
    for call in history.asked("submit"):
        if call.ok is None:
            continue
        task_id = call.ok.task
        task = None if task_id is None else dump.tasks.get(task_id)
        if task is None or not places[task.task_id]:
            where = "the store" if task is None else "its tables"
            yield Violation("I1", task_id, f"was accepted and is not in {where}")
        elif task.status not in TERMINAL | WAITING and task.assigned_worker_id not in dump.alive:
            yield Violation("I1", task_id, "is executing, but its worker is gone")
    copies = Counter(digest(task.payload) for task in dump.tasks.values())
    keyless = Counter(
        call.asked.payload
        for call in history.asked("submit")
        if call.asked.key is None and not isinstance(call.answer, Fail)
    )
    keyed = {call.asked.payload for call in history.asked("submit") if call.asked.key is not None}
    for payload, count in copies.items():
        asked = keyless[payload] + (payload in keyed)
        if asked and count > asked:
            yield Violation("I1", None, f"payload {payload} is there {count} times, for {asked}")


def nothing_is_invented(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I2: every task was asked for, by itself or by a schedule; payloads and results are what was
    sent."""
    submissions = history.asked("submit")
    asked = {
        call.asked.payload
        for call in history.asked("submit", "schedule")
        if not isinstance(call.answer, Fail)
    }
    sent = {call.ok.task: call.asked.payload for call in submissions if call.ok}
    for task_id, task in dump.tasks.items():
        payload = digest(task.payload)
        if payload not in asked:
            yield Violation("I2", task_id, "is in the store, but nobody submitted it")
        elif sent.get(task_id, payload) != payload:
            yield Violation("I2", task_id, "has another payload than was sent")
        if task.status is State.COMPLETED and task.result is not None:
            ends = [run.end for run in history.runs.get(task_id, ()) if run.end]
            results = {end.result for end in ends if end.attempt == task.attempt}
            if results and digest(task.result) not in results:
                yield Violation("I2", task_id, "has another result than its handler returned")


def completed_was_run(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I6: a handler came to its end under the fence that completed the task."""
    for task_id, task in dump.tasks.items():
        if task.status is not State.COMPLETED:
            continue
        runs = history.runs.get(task_id, ())
        if not any(run.end and run.end.attempt == task.attempt for run in runs):
            yield Violation("I6", task_id, f"is completed, but attempt {task.attempt} never ended")


def executing_is_run(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I21: a living worker runs what it holds, but for the time that a comparison may take."""
    for spell in dump.spells:
        task_id = spell.held.task
        runs = [
            run
            for run in history.runs.get(task_id, ())
            if Held(task_id, run.start.attempt, run.start.worker) == spell.held
        ]
        idle = _longest_idle(spell, runs)
        if idle > 2 * spell.lease + UNSETTLED_SECONDS:
            says = f"was executing for {idle:.0f} s in a worker that did not run it"
            yield Violation("I21", task_id, says)


def _longest_idle(spell: Spell, runs: list[Run]) -> float:
    """Return for how many seconds in a row a task was held and not run. A run without an end may
    have died, but nobody knows when: it counts as running."""
    idle, since = 0.0, spell.since
    for run in runs:
        idle = max(idle, min(run.start.at, spell.until) - since)
        since = max(since, float("inf") if run.end is None else run.end.at)
    return max(idle, spell.until - since)


def one_per_key(history: History, dump: Dump, _: Terms) -> Iterator[Violation]:
    """I11: one task for an idempotency key, and all who used the key were told so."""
    holders = defaultdict(set)
    for task_id, task in dump.tasks.items():
        if task.idempotency_key is not None:
            holders[task.idempotency_key].add(task_id)
    for call in history.asked("submit"):
        if call.asked.key is not None and call.ok and call.ok.task:
            holders[call.asked.key].add(call.ok.task)
    for key, tasks in holders.items():
        if len(tasks) > 1:
            yield Violation("I11", min(tasks), f"shares the key {key} with {len(tasks) - 1} others")


def effects_match(_: History, dump: Dump, terms: Terms) -> Iterator[Violation]:
    """I15: exactly one effect for each completed task of a transactional type, none for others."""
    if dump.effects is None:
        return
    for task_id, task in dump.tasks.items():
        wanted = int(task.status is State.COMPLETED and task.type in terms.transactional)
        found = dump.effects.get(task_id, 0)
        if found != wanted:
            yield Violation("I15", task_id, f"is {task.status} and has {found} effects")
    for task_id in dump.effects.keys() - dump.tasks.keys():
        yield Violation("I15", task_id, "does not exist and has an effect")


def books_are_right(_: History, dump: Dump, __: Terms) -> Iterator[Violation]:
    """I16: counters, the API and the tables say the same."""
    states = dict(dump.rows)
    for task_id, count in Counter(task_id for task_id, _ in dump.rows).items():
        if count > 1:
            yield Violation("I16", task_id, f"is in {count} places at once")
    for task_id in sorted(states.keys() | dump.tasks.keys()):
        task, row = dump.tasks.get(task_id), states.get(task_id)
        if task is None or task.status is not row:
            shown = None if task is None else task.status
            yield Violation("I16", task_id, f"is {shown} for the API and {row} in the tables")
    recount = Counter(state for _, state in dump.rows)
    for state in State:
        if dump.counted.get(state, 0) != recount[state]:
            counted = dump.counted.get(state, 0)
            yield Violation("I16", None, f"{counted} {state} by the counters, {recount[state]} are")
