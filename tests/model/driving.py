"""A store and the reference model, driven by the same steps and compared after each.

Steps speak of tasks, claims and workers by number, so that one program fits any store. The store's
clock goes on while a program runs, the model's does not: every duration in a program is an odd
multiple of ten seconds, every leap of the clock a multiple of twenty, so that a few seconds more or
less decide nothing. A program that took longer proves nothing, and says so.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from fairlane.core.backend import Backend
from fairlane.core.breaker import Breaker
from fairlane.core.errors import FairlaneError
from fairlane.core.filters import Filter
from fairlane.core.flow import Op
from fairlane.core.history import history_of
from fairlane.core.ids import new_id
from fairlane.core.merging import ParentResult, merged, wanted
from fairlane.core.model import (
    Ask,
    Beat,
    Claimed,
    Grant,
    NewTask,
    NewWorker,
    Report,
    Start,
    Task,
    TaskError,
    WorkerStatus,
    moment,
)
from fairlane.core.outcomes import Completed, Failed, Outcome, Released, Snoozed, TimedOut
from fairlane.core.reruns import Rerun
from fairlane.core.settlement import Settlement, reaped
from fairlane.core.states import State
from tests.fixtures.counters import depths, tallies
from tests.model.reference import Model, MTask, Refused

T = TypeVar("T")

SLACK = 5.0
"""Seconds by which times may differ, and that a program may take as far as times go."""
LIMIT = 9.0
"""Seconds that a program may take: after ten, something may be due that is not for the model."""

KEPT: dict[str, float | None] = {
    "completed": 50.0,
    "failed": 130.0,
    "cancelled": 130.0,
    "dead_letter": 250.0,
    "workers": 10.0**8,
    "journal": 10.0**8,
}
"""So that programs live to see tasks go, and nothing else."""


_REFUSALS = frozenset(
    {"unknown_dependency", "duplicate_task", "idempotency_conflict", "task_id_conflict"}
)
"""A batch may be refused for more than one reason; which is named first is nobody's business."""


class TooSlow(Exception):
    """The machine was busy: what was seen proves nothing."""


class Pair:
    """One store beside one model."""

    def __init__(self, backend: Backend, reopen: Callable[[], Backend] | None = None) -> None:
        self.backend = backend
        self._reopen = reopen
        self.steps = 0
        self.workers: list[str] = []
        self.claims: list[Claimed] = []
        self._asks: dict[str, Ask] = {}
        self._given: dict[str, list[str]] = {}
        """By worker: the requests that brought something, after one that never was."""
        self.ids: list[str] = []
        self._gone: set[str] = set()
        self._begun = time.monotonic()
        self.model = Model(0.0)
        self.change_settings(KEPT, None)
        self.register(10_010.0, None, new_id())
        (worker,) = self.run(self.backend.ops.workers())
        self.epoch = worker.registered_at.timestamp()
        self.model.epoch = self.epoch

    def run(self, op: Op[T]) -> T:
        return self.backend.run_sync(op)

    # -- comparing ---------------------------------------------------------------------------------

    def agree(self, ours: object, theirs: object, what: str, limit: float = LIMIT) -> None:
        if ours != theirs:
            if time.monotonic() - self._begun > limit:
                raise TooSlow
            raise AssertionError(f"{what}: the model says {ours!r}, the store {theirs!r}")

    def both(
        self,
        ours: Callable[[], T],
        theirs: Callable[[], T],
        what: str,
        alike: frozenset[str] = frozenset(),
    ) -> T | None:
        """What both answer, or None when both refuse. Refusals that are `alike` count as one."""
        mine: Any
        store: Any
        try:
            mine = ours()
        except Refused as refused:
            mine = refused.code
        try:
            store = theirs()
        except FairlaneError as error:
            store = error.code
            if not (isinstance(mine, str) and {mine, store} <= alike):
                self.agree(mine, store, what)
            return None
        self.agree(mine, store, what)
        return store  # type: ignore[no-any-return]

    def do(self, step: Callable[[Pair], None]) -> None:
        """A step, done with both and compared."""
        self.steps += 1
        self.model.now += 0.001  # later than the step before, as it is for the store
        step(self)
        self.compare()

    def compare(self) -> None:
        """Every task, as both see it."""
        found = self.run(self.backend.ops.get(self.ids)) if self.ids else []
        for task_id, task in zip(self.ids, found, strict=True):
            mine = self.model.tasks.get(task_id)
            if mine is None or task is None:
                self.agree(mine and mine.id, task and task.task_id, f"task {task_id}")
            else:
                self.agree(self._model_view(mine), view(task), f"task {task_id}")
                states = [str(step.state) for step in history_of(task)]
                # Nobody keeps whether its parents had ended before it, if it did not run at first.
                ran = task.trail[0].attempt if task.trail else task.attempt
                known = 0 if ran or not task.depends_on else 1
                history = mine.history[known:], states[known:]
                self.agree(*history, f"the history of task {task_id}")
                self._compare_times(mine, task)

    def _model_view(self, task: MTask) -> dict[str, object]:
        queued = task.status == "queued"
        return {
            "type": task.new.type,
            "queue": task.new.queue,
            "payload": task.new.payload,
            "status": task.status,
            "priority": task.level,
            "effective": self.model.effective(task) if queued else task.level,
            "attempt": task.attempt,
            "retries": task.retries,
            "returns": task.returns,
            "timeout": task.timeout,
            "version": task.version,
            "worker": task.worker,
            "started": task.started is not None,
            "ended": task.ended is not None,
            "error": None if task.error is None else (task.error.code, task.error.reason),
            "result": task.result,
            "progress": task.progress,
            "runs": [(run.number, run.worker, run.outcome, run.code) for run in task.runs],
            "depends_on": task.new.depends_on,
            "key": task.new.idempotency_key,
        }

    def _compare_times(self, mine: MTask, task: Task) -> None:
        due = mine.due if mine.status == "retrying" else None
        for name, ours, theirs in (
            ("created_at", mine.created, task.created_at),
            ("run_at", mine.run_at, task.run_at),
            ("ready_at", mine.ready_at, task.ready_at),
            ("next_retry_at", due, task.next_retry_at),
            ("expires_at", mine.expires, task.expires_at),
            ("completed_at", mine.ended, task.completed_at),
        ):
            self._agree_on_time(ours, theirs, f"{name} of {mine.id}")

    def _agree_on_time(self, ours: float | None, theirs: datetime | None, what: str) -> None:
        if ours is None or theirs is None:
            self.agree(ours, theirs, what)
        elif abs(ours - (theirs.timestamp() - self.epoch)) > SLACK:
            self.agree(ours, theirs.timestamp() - self.epoch, what, SLACK)

    def finish(self) -> None:
        """Counters, depths, limits and journal, at the end of a program."""
        self.compare()
        counted: Counter[tuple[str, str, str]] = Counter()
        for key, times, _ in self.run(tallies(self.backend.ops)):
            if key.source or key.target:
                counted[_name(key.source), _name(key.target), key.label] += times
        self.agree(dict(self.model.counters), dict(+counted), "the counters")
        queued = Counter(
            (task.new.queue, task.level)
            for task in self.model.tasks.values()
            if task.status == "queued"
        )
        self.agree(dict(queued), self.run(depths(self.backend.ops)), "the depths")
        facts = self.run(self.backend.ops.facts())
        self.agree(
            sum(queued.values()), sum(stream.depth for stream in facts.streams), "the streams"
        )
        held = Counter(
            task.new.type for task in self.model.tasks.values() if task.status == "executing"
        )
        held.update(self.model.lingering.values())
        found: Counter[str] = Counter()
        for lane, count in facts.held.items():
            found[facts.lanes[lane].type] += count
        self.agree(+held, +found, "what is held")
        self.agree(
            sorted(self.model.workers),
            sorted(worker.worker_id for worker in facts.workers),
            "the workers",
        )
        self._compare_journal()

    def _compare_journal(self) -> None:
        told: list[tuple[str, str]] = []
        cursor: str | None = None
        while True:
            page = self.run(self.backend.ops.events(cursor, 500))
            told += [(event.verb, event.task_id) for event in page.events if event.task_id]
            cursor = page.cursor
            if not page.events:
                break
        self.agree(Counter(self.model.log), Counter(told), "the journal")
        for task_id in self.ids:
            self.agree(
                [verb for verb, each in self.model.log if each == task_id],
                [verb for verb, each in told if each == task_id],
                f"the journal of {task_id}",
            )

    # -- steps: submission -------------------------------------------------------------------------

    def submit(self, batch: Sequence[NewTask]) -> None:
        def ours() -> list[tuple[str, str, bool]]:
            return told(self.model.submit(list(batch)))

        def theirs() -> list[tuple[str, str, bool]]:
            answers = self.run(self.backend.ops.submit(batch))
            return told([(each.task_id, str(each.state), each.known) for each in answers])

        def told(answers: list[tuple[str, str, bool]]) -> list[tuple[str, str, bool]]:
            # Whether what is told is from before or after a replacement is nobody's business.
            if self.model.has_replaced:
                return [(task_id, "", known) for task_id, _, known in answers]
            return answers

        answer = self.both(ours, theirs, "submit", _REFUSALS)
        for task_id, _, known in answer or []:
            if not known and task_id not in self.ids:
                self.ids.append(task_id)

    # -- steps: workers ----------------------------------------------------------------------------

    def register(self, lease: float, start_within: float | None, worker_id: str) -> None:
        worker = NewWorker(worker_id, lease=lease, start_within=start_within)
        self.run(self.backend.ops.register(worker))
        self.model.register(worker_id, lease, start_within)
        self.workers.append(worker_id)

    def heartbeat(self, worker: int) -> None:
        worker_id = self._worker(worker)

        def theirs() -> set[tuple[str, int]]:
            return set(self.run(self.backend.ops.heartbeat(Beat(worker_id))).let_go)

        self.both(lambda: self.model.heartbeat(worker_id), theirs, "heartbeat")

    def mark(self, worker: int, status: WorkerStatus) -> None:
        worker_id = self._worker(worker)
        self.both(
            lambda: self.model.mark(worker_id, str(status)),
            lambda: self.run(self.backend.ops.mark(worker_id, status)),
            "mark",
        )

    def forget(self, worker: int) -> None:
        worker_id = self._worker(worker)
        self.both(
            lambda: self.model.forget(worker_id),
            lambda: self.run(self.backend.ops.forget(worker_id)),
            "forget",
        )

    def claim(
        self, worker: int, request: str, slots: int, heard: int | None, **options: Any
    ) -> None:
        """`heard`: how many of its grants the worker says to have missed, if it says so at all."""
        worker_id = self._worker(worker)
        given = self._given.get(worker_id, [""])
        said = None if heard is None else given[max(0, len(given) - 1 - heard)]
        ask = Ask(worker_id, request, slots, heard=said, **options)
        self._asks[ask.worker_id] = ask
        self._claim(ask, order=sorted if heard else list)

    def claim_again(self, worker: int) -> None:
        """The same request once more: its answer got lost."""
        ask = self._asks.get(self._worker(worker))
        if ask is not None:
            self._claim(ask, order=sorted)

    def _claim(
        self,
        ask: Ask,
        order: Callable[[list[tuple[str, int]]], list[tuple[str, int]]] = list,
    ) -> None:
        """`order`: that of a repeated answer is not promised."""
        granted: list[Claimed] = []

        def ours() -> list[tuple[str, int]]:
            what = (ask.slots, ask.ahead, ask.types, ask.queues, ask.capabilities, ask.heard)
            return order(self.model.claim(ask.worker_id, ask.request_id, *what))

        def theirs() -> list[tuple[str, int]]:
            grant = self.grant(ask)
            granted.extend(grant.tasks)
            if grant.tasks and grant.request_id is None:
                self._given.setdefault(ask.worker_id, [""]).append(ask.request_id)
            return order([(task.task_id, task.attempt) for task in granted])

        self.both(ours, theirs, "claim")
        for task in granted:
            if task.spec.inputs:
                self._take(task)
        known = {(task.task_id, task.attempt) for task in self.claims}
        self.claims += [task for task in granted if (task.task_id, task.attempt) not in known]

    def _take(self, task: Claimed) -> None:
        """What it would run with: the results of its parents, as those who run it read them."""

        def theirs() -> object:
            found = self.run(self.backend.ops.get(list(wanted(task.spec))))
            results = {each.task_id: ParentResult.of(each) for each in found if each is not None}
            parameters = msgspec.json.decode(merged(task.payload, task.spec, results))
            return {name: told(parameters[name]) for name in task.spec.inputs}

        def told(value: Any) -> Any:
            if isinstance(value, list):
                return [told(each) for each in value]
            failed = None if value is None else value.get("$failed")
            return value if failed is None else (failed["task_id"], failed["state"])

        self.both(lambda: self.model.inputs(task.task_id), theirs, f"the inputs of {task.task_id}")

    def grant(self, ask: Ask) -> Grant:
        """What the store answers to a claim."""
        return self.run(self.backend.ops.claim(ask))

    # -- steps: runs -------------------------------------------------------------------------------

    def start(self, claim: int, *, stranger: bool = False) -> None:
        task, worker_id = self._claimed(claim, stranger)
        if task is not None:
            start = Start(task.task_id, task.attempt)
            self.both(
                lambda: self.model.start(worker_id, task.task_id, task.attempt),
                lambda: str(self.run(self.backend.ops.start(worker_id, [start]))[0]),
                "start",
            )

    def progress(self, claim: int, percent: float, *, stranger: bool = False) -> None:
        task, worker_id = self._claimed(claim, stranger)
        if task is not None:
            report = Report(task.task_id, task.attempt, percent)
            self.both(
                lambda: self.model.progress(worker_id, task.task_id, task.attempt, percent),
                lambda: str(self.run(self.backend.ops.progress(worker_id, [report]))[0]),
                "progress",
            )

    def disown(self, claim: int, *, stranger: bool = False) -> None:
        task, worker_id = self._claimed(claim, stranger)
        if task is not None:
            run = (task.task_id, task.attempt)
            self.both(
                lambda: self.model.disown(worker_id, *run),
                lambda: str(self.run(self.backend.ops.disown(worker_id, [run]))[0]),
                "disown",
            )

    def holdings(self, worker: int) -> None:
        worker_id = self._worker(worker)

        def theirs() -> set[tuple[str, int]]:
            runs: set[tuple[str, int]] = set()
            cursor: str | None = None
            while True:
                page = self.run(self.backend.ops.holdings(worker_id, 2, cursor))
                runs.update(page.runs)
                if page.cursor is None:
                    return runs
                cursor = page.cursor

        self.both(lambda: self.model.holdings(worker_id), theirs, "holdings")

    def settle(self, reports: Sequence[tuple[int, str, float | None, bool]]) -> None:
        """Several at once: number of the claim, outcome, seconds it asks for, by a stranger."""
        chosen = [
            (self._claimed(claim, stranger), outcome, after)
            for claim, outcome, after, stranger in reports
            if self.claims
        ]
        settlements = [
            settlement(task, worker_id, outcome, after)
            for (task, worker_id), outcome, after in chosen
            if task is not None
        ]
        self.both(
            lambda: [
                self.model.settle(
                    worker_id,
                    task.task_id,
                    task.attempt,
                    outcome,
                    result(task, after) if outcome == "completed" else after,
                )
                for (task, worker_id), outcome, after in chosen
                if task is not None
            ],
            lambda: [str(each.verdict) for each in self.run(self.backend.ops.settle(settlements))],
            "settle",
        )

    def move_due(self) -> None:
        """Without a claim: what is due, has expired, or waited for a parent that has ended."""
        self.model.move_due()
        while self.run(self.backend.ops.move_due()).more:
            pass

    def reap(self) -> None:
        def theirs() -> list[str]:
            workers = self.run(self.backend.ops.workers())
            # All are named: it is the store that says who is lost, whatever the caller has seen.
            self.run(self.backend.ops.bury([each.worker_id for each in workers]))
            overdue = self.run(self.backend.ops.expired(500))
            spread = self.run(self.backend.ops.settings()).requeue_spread
            settlements = [reaped(item, spread=spread) for item in overdue]
            settled = self.run(self.backend.ops.settle(settlements, reaping=True))
            return sorted(
                item.task_id
                for item, answer in zip(overdue, settled, strict=True)
                if answer.verdict == "applied"
            )

        self.both(self.model.reap, theirs, "reap")

    # -- steps: operators --------------------------------------------------------------------------

    def cancel(self, task: int) -> None:
        self._operate("cancel", task, self.model.cancel, self.backend.ops.cancel)

    def replay(self, task: int, level: int | None) -> None:
        self._operate(
            "replay",
            task,
            lambda task_id: self.model.replay(task_id, level),
            lambda ids: self.backend.ops.replay(ids, level=level),
        )

    def rerun(self, tasks: Sequence[int], *, behind: int) -> None:
        """`behind`: how old the versions are that it goes by."""
        if not self.ids:
            return
        chosen = dict.fromkeys(self.ids[task % len(self.ids)] for task in tasks)
        wanted: list[tuple[str, int]] = []
        reruns: list[Rerun] = []
        for task_id in chosen:
            task = self.model.tasks.get(task_id)
            version = 1 if task is None else max(1, task.version - behind)
            wanted.append((task_id, version))
            parents = () if task is None else tuple(task.new.depends_on)
            tolerant = task is not None and task.new.spec.tolerant
            reruns.append(Rerun(task_id, version, parents, tolerant))

        def theirs() -> list[tuple[bool, str | None]]:
            # None: dependents of earlier ends come first. They are never more than a few here.
            found = (self.run(self.backend.ops.rerun(reruns)) for _ in range(5))
            answers = next((each for each in found if each is not None), None)
            assert answers is not None, "some are left over for ever"
            return [
                (answer.applied, None if answer.state is None else str(answer.state))
                for answer in answers
            ]

        self.both(lambda: self.model.rerun(wanted), theirs, "rerun")

    def delete(self, task: int) -> None:
        self._operate("delete", task, self.model.delete, self.backend.ops.delete)

    def _operate(
        self,
        what: str,
        task: int,
        ours: Callable[[str], tuple[bool, str | None]],
        op: Callable[[list[str]], Op[Any]],
    ) -> None:
        if not self.ids:
            return
        task_id = self.ids[task % len(self.ids)]

        def theirs() -> tuple[bool, str | None]:
            (answer,) = self.run(op([task_id]))
            return answer.applied, None if answer.state is None else str(answer.state)

        self.both(lambda: ours(task_id), theirs, what)

    def prune(self) -> None:
        """What the maintenance does: by the store's settings."""
        settings = self.run(self.backend.ops.settings())
        self.agree(
            (self.model.settings, self.model.settings_version),
            (settings.values(), settings.version),
            "settings",
        )
        self.both(
            self.model.prune,
            lambda: self.run(self.backend.ops.prune(settings.retention)).tasks,
            "prune",
        )

    def change_settings(
        self, changes: dict[str, float | None], behind: int | None, *, elsewhere: bool = False
    ) -> None:
        """`behind`: how old the version is that the change goes by, None: it names none.
        `elsewhere`: another process changes it."""
        version = None if behind is None else self.model.settings_version - behind
        other = self._reopen() if elsewhere and self._reopen is not None else None
        backend = other or self.backend
        try:
            self.both(
                lambda: self.model.change_settings(changes, version),
                lambda: (
                    backend.run_sync(backend.ops.change_settings(changes, version=version)).version
                ),
                "change settings",
            )
        finally:
            if other is not None:
                other.driver.close()

    def pause(self, paused: bool, queue: str | None, type: str | None) -> None:
        self.run(self.backend.ops.pause(paused, queue=queue, type=type))
        if queue is not None:
            (self.model.paused_queues.add if paused else self.model.paused_queues.discard)(queue)
        if type is not None:
            self.model.rules(type).paused = paused
        if queue is None and type is None:
            self.model.paused = paused

    def limit(self, type: str | None, rate: float | None, concurrency: int | None) -> None:
        self.run(self.backend.ops.limit(type, rate=rate, concurrency=concurrency))
        if type is None:
            self.model.rate = self.model.rate if rate is None else rate
            return
        rules = self.model.rules(type)
        rules.rate = rules.rate if rate is None else rate
        rules.concurrency = rules.concurrency if concurrency is None else concurrency

    def time_runs(self, type: str, timeout: float) -> None:
        self.run(self.backend.ops.limit(type, timeout=timeout))
        self.model.rules(type).timeout = timeout

    def break_circuits(self, type: str, breaker: tuple[int, float, float] | None) -> None:
        self.run(
            self.backend.ops.limit(type, breaker=False if breaker is None else Breaker(*breaker))
        )
        rules = self.model.rules(type)
        rules.breaker, rules.open_until, rules.failures = breaker, None, []

    def advance(self, seconds: int) -> None:
        assert seconds % 20 == 0
        self.run(self.backend.ops.shift_clock(seconds))
        self.model.now += seconds

    def restart(self) -> None:
        """As if the process had been started anew, where the store outlives it."""
        if self._reopen is not None:
            self.backend.driver.close()
            self.backend = self._reopen()

    def find(self, filter: Filter) -> None:
        def theirs() -> list[str]:
            found: list[str] = []
            cursor: str | None = None
            while True:
                page = self.run(self.backend.ops.find(filter, 7, cursor))
                found += page.task_ids
                cursor = page.cursor
                if cursor is None:
                    return found

        self.both(lambda: self._admitted(filter), theirs, f"find {filter}")

    def _admitted(self, filter: Filter) -> list[str]:
        found = [
            task.id
            for task in self.model.tasks.values()
            if (filter.states is None or State(task.status) in filter.states)
            and (filter.types is None or task.new.type in filter.types)
            and (filter.queues is None or task.new.queue in filter.queues)
            and (filter.levels is None or task.level in filter.levels)
            and filter.tags.items() <= task.new.spec.tags.items()
        ]
        return sorted(found, reverse=True)

    # -- names -------------------------------------------------------------------------------------

    def _worker(self, number: int) -> str:
        """Of those that came last: one that may claim more often than not, if there is any."""
        last = self.workers[-3:]
        known = self.model.workers
        able = [each for each in last if each in known and known[each].status == "active"]
        choice = [*able, *able, *able, *last]
        return choice[number % len(choice)]

    def _claimed(self, number: int, stranger: bool) -> tuple[Claimed, str] | tuple[None, str]:
        if not self.claims:
            return None, ""
        task = self.claims[-1 - number % len(self.claims)]
        return task, "stranger" if stranger else task.worker_id

    def absolute(self, seconds: float) -> datetime:
        """A time so many seconds from now, by the store's clock."""
        return moment(int((self.epoch + self.model.now + seconds) * 1_000_000))


def _name(state: int) -> str:
    return str(State.of(state)) if state else ""


def result(task: Claimed, number: float | None) -> bytes:
    """It says whose it is, and of which attempt."""
    return b'{"n": %d, "of": "%b", "attempt": %d}' % (
        number or 0,
        task.task_id.encode(),
        task.attempt,
    )


def settlement(task: Claimed, worker_id: str, outcome: str, after: float | None) -> Settlement:
    """What a worker reports."""
    outcomes: dict[str, Outcome] = {
        "completed": Completed(result(task, after)),
        "failed": Failed(TaskError("x", "E"), after),
        "fatal": Failed(TaskError("x", "E", retriable=False)),
        "timed_out": TimedOut(),
        "released": Released(),
        "snoozed": Snoozed(after or 0.0),
    }
    return Settlement(task.task_id, task.attempt, worker_id, outcomes[outcome], task, 0.5)


def view(task: Task) -> dict[str, object]:
    """A task as the store shows it, without its times."""
    return {
        "type": task.type,
        "queue": task.queue,
        "payload": task.payload,
        "status": str(task.status),
        "priority": task.priority,
        "effective": task.effective_priority,
        "attempt": task.attempt,
        "retries": task.retry_count,
        "returns": task.returns,
        "timeout": task.timeout_seconds,
        "version": task.version,
        "worker": task.assigned_worker_id,
        "started": task.started_at is not None,
        "ended": task.completed_at is not None,
        "error": None if task.error is None else (task.error.code, task.error.reason),
        "result": task.result,
        "progress": None if task.progress is None else task.progress.percent,
        "runs": [
            (run.number, run.worker_id, run.outcome, run.error and run.error.code)
            for run in task.attempts
        ],
        "depends_on": task.depends_on,
        "key": task.idempotency_key,
    }
