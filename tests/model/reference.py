"""A slow, obvious Fairlane in memory: what every engine must agree with.

It is written from the specification, for reading, with none of the engine's or the machine's code:
dictionaries, loops, one pass after another. Time is in seconds and stands still between steps.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fairlane.core.model import NewTask

WAITING = {"scheduled", "queued", "retrying"}
LIVE = WAITING | {"executing"}
FREE_RETURNS = 3
DAY = 86_400.0
KEPT = {"completed", "failed", "cancelled", "dead_letter", "workers", "journal"}


class Refused(Exception):
    """The model would not do it. `code` is that of the error an engine raises."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


@dataclass
class Run:
    """A finished run."""

    number: int
    worker: str | None
    outcome: str
    code: str | None = None


@dataclass
class Problem:
    """Why a task is not well, as far as the model tells it."""

    code: str | None
    reason: str | None


@dataclass
class MTask:
    """A task."""

    new: NewTask
    status: str
    created: float
    run_at: float
    ready_at: float
    level: int
    due: float | None = None
    expires: float | None = None
    attempt: int = 0
    retries: int = 0
    returns: int = 0
    version: int = 1
    timeout: float | None = None
    worker: str | None = None
    claimed: float = 0.0
    started: float | None = None
    ended: float | None = None
    error: Problem | None = None
    result: bytes | None = None
    progress: float | None = None
    runs: list[Run] = field(default_factory=list)
    parents: set[str] = field(default_factory=set)
    """Those it still waits for."""
    dependents: set[str] = field(default_factory=set)
    """Those that were stored to depend on it, whatever became of them."""
    history: list[str] = field(default_factory=list)
    """Every state that it has entered."""
    counted: str = ""
    """The state that it was last counted in."""

    @property
    def id(self) -> str:
        return self.new.task_id


@dataclass
class MWorker:
    """A worker."""

    lease: float
    seen: float
    start_within: float | None = None
    status: str = "active"
    request: str | None = None
    granted: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class MRules:
    """What is set for a type."""

    paused: bool = False
    rate: float = 0.0
    concurrency: int = 0
    timeout: float = 0.0
    breaker: tuple[int, float, float] | None = None
    failures: list[float] = field(default_factory=list)
    open_until: float | None = None


Found = tuple[NewTask | None, MTask | None]
"""What a new task repeats: an earlier one of its batch, or one that is stored."""


class Model:
    """The whole queue."""

    def __init__(self, epoch: float) -> None:
        self.epoch = epoch
        """When its time began, in seconds since 1970."""
        self.now = 0.0
        self.tasks: dict[str, MTask] = {}
        self.workers: dict[str, MWorker] = {}
        self.keys: dict[str, tuple[str, bytes | None, float]] = {}
        self.uniques: dict[bytes, str] = {}
        self.has_replaced = False
        """Whether the last batch took the place of others."""
        self.lingering: dict[tuple[str, str, int], str] = {}
        """Runs that go on although their task moved on: (worker, id, attempt), and its type."""
        self.log: list[tuple[str, str]] = []
        """Every transition: (verb, id)."""
        self.counters: Counter[tuple[str, str, str]] = Counter()
        """Transitions by (state before, state after, label); "" where there is no task."""
        self.types: dict[str, MRules] = {}
        self.paused = False
        self.paused_queues: set[str] = set()
        self.rate = 0.0
        self.buckets: dict[str, tuple[float, float]] = {}
        self.settings: dict[str, float | None] = {
            "low_to_medium": 600.0,
            "medium_to_high": 1200.0,
            "high_to_critical": None,
            "completed": DAY,
            "failed": 7 * DAY,
            "cancelled": 7 * DAY,
            "dead_letter": 30 * DAY,
            "workers": DAY,
            "journal": DAY,
            "requeue_spread": 0.0,
        }
        self.settings_version = 0
        self.fences: dict[str, tuple[int, float]] = {}
        """The last attempts of deleted tasks, and until when they are kept."""

    # -- submission --------------------------------------------------------------------------------

    def submit(self, batch: list[NewTask]) -> list[tuple[str, str, bool]]:
        """(id, state, known) of each. All or none: tried on a copy first."""
        attempt = copy.deepcopy(self)
        answers = attempt._submit(batch)
        self.__dict__ = attempt.__dict__
        return answers

    def _submit(self, batch: list[NewTask]) -> list[tuple[str, str, bool]]:
        """A batch is one moment: what is there before it decides who is let in, in its order; then
        those who are replaced end, and those who are let in are stored."""
        answers: dict[str, tuple[str, str, bool]] = {}
        twins: dict[str, str] = {}
        fresh: list[NewTask] = []
        replaced: list[MTask] = []
        for new in batch:
            stored = self.tasks.get(new.task_id)
            if stored is None:
                continue
            if self._asked(stored.new) != self._asked(new):
                raise Refused("task_id_conflict")
            answers[new.task_id] = stored.id, stored.status, True
        for new in batch:
            if new.task_id in answers:
                continue
            twin, known = self._repeated(new, fresh)
            if twin is None and known is None:
                twin, known = self._double(new, fresh, replaced)
            if twin is not None:
                twins[new.task_id] = twin.task_id
            elif known is not None:
                answers[new.task_id] = known.id, known.status, True
            else:
                fresh.append(new)
        self.has_replaced = bool(replaced)
        for task in replaced:
            self._end(task, "cancelled", Problem("REPLACED", "replaced"), alone=True)
        for new in fresh:
            self._store(new)
            answers[new.task_id] = new.task_id, self.tasks[new.task_id].status, False
        for task in replaced:
            self._resolve_children(task)
        for task_id, first in twins.items():
            answers[task_id] = first, answers[first][1], True
        return [answers[new.task_id] for new in batch]

    def _asked(self, new: NewTask) -> object:
        """What makes a task the one that it is: its inputs count by whose results they are."""
        inputs = {
            name: ([new.depends_on[place] for place in each.parents], each.many)
            for name, each in new.spec.inputs.items()
        }
        return new.type, new.payload, inputs

    def inputs(self, task_id: str) -> dict[str, object]:
        """The results that it would run with now."""
        new = self.tasks[task_id].new
        found: dict[str, object] = {}
        for name, each in new.spec.inputs.items():
            values = [self._left_by(new.depends_on[place], new) for place in each.parents]
            found[name] = values if each.many else values[0]
        return found

    def _left_by(self, parent_id: str, child: NewTask) -> object:
        """A result, or whose end stands in its place, and which it was."""
        parent = self.tasks.get(parent_id)
        if parent is None:
            raise Refused("input_missing")
        if parent.status == "completed":
            return None if parent.result is None else json.loads(parent.result)
        if not child.spec.tolerant:  # it was replayed since, or the child was
            raise Refused("input_missing")
        return parent.id, parent.status

    def _repeated(self, new: NewTask, fresh: list[NewTask]) -> Found:
        key = new.idempotency_key
        if key is None:
            return None, None
        twin = next((each for each in fresh if each.idempotency_key == key), None)
        task_id, fingerprint, until = self.keys.get(key, ("", None, -1.0))
        known = self.tasks.get(task_id) if until > self.now else None
        if twin is not None:
            known, fingerprint = None, twin.fingerprint
        if (twin or known) and fingerprint != new.fingerprint:
            raise Refused("idempotency_conflict")
        return twin, known

    def _double(self, new: NewTask, fresh: list[NewTask], replaced: list[MTask]) -> Found:
        """What it is a double of. One that it takes the place of is only noted."""
        hold = new.unique
        if hold is None:
            return None, None
        twin = next((each for each in fresh if each.unique and each.unique.key == hold.key), None)
        holder = self.tasks.get(self.uniques.get(hold.key, ""))
        if twin is None:
            if holder is None or not self._counts(hold.states, holder.status):
                return None, None
            if hold.period is not None and self.now - holder.created >= hold.period / 1e6:
                return None, None
        if hold.mode == "existing":
            return twin, holder
        if hold.mode == "reject" or twin or holder is None or holder.status not in WAITING:
            raise Refused("duplicate_task")
        replaced.append(holder)
        return None, None

    def _store(self, new: NewTask) -> None:
        run_at = self.now + new.delay
        later = run_at > self.now
        task = MTask(
            new=new,
            status="scheduled" if later else "queued",
            created=self.now,
            run_at=run_at,
            ready_at=run_at,
            level=new.level,
            due=run_at if later else None,
            expires=None if new.expires_at is None else new.expires_at / 1e6 - self.epoch,
            timeout=new.timeout,
        )
        for parent in new.depends_on:
            if parent not in self.tasks:
                raise Refused("unknown_dependency")
        self.tasks[task.id] = task
        if new.idempotency_key is not None:
            self.keys[new.idempotency_key] = (task.id, new.fingerprint, self.now + DAY)
        if new.unique is not None:
            self.uniques[new.unique.key] = task.id
        broken = False
        for parent in new.depends_on:
            state = self.tasks[parent].status
            if state in LIVE:
                task.parents.add(parent)
            elif state != "completed" and not new.spec.tolerant:
                broken = True
        if not broken:
            for parent in new.depends_on:
                self.tasks[parent].dependents.add(task.id)
        if broken or task.parents:
            task.status, task.due = "scheduled", None
        attempt, until = self.fences.get(task.id, (0, 0.0))
        if until > self.now and not broken:
            task.attempt = attempt
        self._tell("submit", task)
        if broken:
            self._end(task, "cancelled", Problem("DEPENDENCY_FAILED", "dependency_failed"))

    # -- claims ------------------------------------------------------------------------------------

    def claim(
        self,
        worker_id: str,
        request: str,
        slots: int,
        ahead: int = 0,
        types: frozenset[str] | None = None,
        queues: frozenset[str] | None = None,
        capabilities: frozenset[str] = frozenset(),
        heard: str | None = None,
    ) -> list[tuple[str, int]]:
        """(id, attempt) of each task, in order."""
        worker = self.workers.get(worker_id)
        if worker is None or worker.status == "dead":
            raise Refused("worker_gone")
        said_otherwise = heard is not None and heard != (worker.request or "")
        if worker.request == request or said_otherwise:
            return [each for each in worker.granted if self._held(*each, worker_id)]
        self.move_due()
        taken: list[tuple[str, int]] = []
        if worker.status == "active":
            taken = self._take(worker_id, slots, ahead, types, queues, capabilities)
        if taken:
            worker.request, worker.granted = request, taken
        if taken or self.now - worker.seen > worker.lease / 3:
            worker.seen = self.now
        return taken

    def move_due(self) -> None:
        """What comes before every claim, and happens without one as well."""
        for task in self.tasks.values():
            if task.due is not None and task.due <= self.now:
                self._make_ready(task, task.ready_at, "due")
        expired = [
            task
            for task in self.tasks.values()
            if task.status in WAITING and task.expires is not None and task.expires <= self.now
        ]
        for task in expired:
            self._end(task, "failed", Problem("EXPIRED", "expired"), verb="expire", alone=True)
        for task in expired:  # only now: a task that has expired is not released nor doomed
            self._resolve_children(task)

    def _take(
        self,
        worker_id: str,
        slots: int,
        ahead: int,
        types: frozenset[str] | None,
        queues: frozenset[str] | None,
        capabilities: frozenset[str],
    ) -> list[tuple[str, int]]:
        taken: list[tuple[str, int]] = []
        limited_taken = 0
        most = slots if self.rate else slots + ahead
        for task in sorted(self._queued(), key=self._rank):
            new = task.new
            rules = self.types.get(new.type, MRules())
            if (
                self.paused
                or rules.paused
                or new.queue in self.paused_queues
                or (types is not None and new.type not in types)
                or (queues is not None and new.queue not in queues)
                or not set(new.capabilities) <= capabilities
            ):
                continue
            if len(taken) >= most or (self.rate and self._tokens("", self.rate) < 1):
                break
            limited = rules.rate or rules.concurrency or rules.open_until is not None
            if limited:
                if limited_taken >= slots or not self._allows(new.type, rules):
                    continue
                limited_taken += 1
            if rules.rate:
                self._pay(new.type, rules.rate)
            if self.rate:
                self._pay("", self.rate)
            effective = self.effective(task)
            task.status, task.worker, task.claimed = "executing", worker_id, self.now
            if rules.timeout and not new.spec.timed and task.retries == 0:
                task.timeout = rules.timeout
            task.attempt += 1
            task.version += 1
            self._tell("claim", task, "" if effective == task.level else str(effective))
            taken.append((task.id, task.attempt))
        return taken

    def _queued(self) -> list[MTask]:
        return [task for task in self.tasks.values() if task.status == "queued"]

    def _rank(self, task: MTask) -> tuple[int, float, str]:
        return (-self.effective(task), task.ready_at, task.id)

    def effective(self, task: MTask) -> int:
        """What a task counts as: one band becomes the next, each after its own time."""
        level, age = task.level, self.now - task.ready_at
        for lowest, highest, name, target in (
            (0, 4, "low_to_medium", 5),
            (5, 7, "medium_to_high", 8),
            (8, 9, "high_to_critical", 10),
        ):
            step = self.settings[name]
            if lowest <= level <= highest and step is not None and age >= step:
                level, age = target, age - step
        return level

    def _allows(self, type: str, rules: MRules) -> bool:
        held = sum(of == type for of in self.lingering.values())
        held += sum(
            task.status == "executing" and task.new.type == type for task in self.tasks.values()
        )
        if rules.open_until is not None and (self.now < rules.open_until or held >= 1):
            return False
        if rules.concurrency and held >= rules.concurrency:
            return False
        return not rules.rate or self._tokens(type, rules.rate) >= 1

    def _tokens(self, bucket: str, rate: float) -> float:
        burst = max(1.0, rate)
        tokens, at = self.buckets.get(bucket, (burst, self.now))
        return min(burst, tokens + (self.now - at) * rate)

    def _pay(self, bucket: str, rate: float) -> None:
        self.buckets[bucket] = (self._tokens(bucket, rate) - 1, self.now)

    # -- what becomes of runs ----------------------------------------------------------------------

    def start(self, worker_id: str, task_id: str, attempt: int) -> str:
        task = self.tasks.get(task_id)
        if task is None:
            return "missing"
        if not self._held(task_id, attempt, worker_id):
            return "stale"
        task.started = self.now
        self._tell("start", task)
        return "applied"

    def progress(self, worker_id: str, task_id: str, attempt: int, percent: float) -> str:
        task = self.tasks.get(task_id)
        if task is None:
            return "missing"
        if not self._held(task_id, attempt, worker_id):
            return "stale"
        task.progress = percent
        task.started = self.now if task.started is None else task.started
        self._tell("progress", task)
        return "applied"

    def settle(
        self, worker_id: str, task_id: str, attempt: int, outcome: str, value: Any = None
    ) -> str:
        """A worker's report. `value`: a result, or the seconds a failure or snooze asks for."""
        task = self.tasks.get(task_id)
        if task is not None and self._held(task_id, attempt, worker_id):
            task.started = self.now if task.started is None else task.started
            self._apply(task, outcome, value)
            return "applied"
        self.lingering.pop((worker_id, task_id, attempt), None)
        if task is None:
            return "missing"
        if outcome == "completed" and value != task.result:
            return "stale"
        told = (attempt, worker_id, OUTCOMES.get(outcome, outcome))
        return (
            "applied"
            if any((run.number, run.worker, run.outcome) == told for run in task.runs)
            else "stale"
        )

    def disown(self, worker_id: str, task_id: str, attempt: int) -> str:
        """The worker does not have a run that it holds."""
        task = self.tasks.get(task_id)
        if task is None:
            return "missing"
        if not self._held(task_id, attempt, worker_id):
            return "stale"
        self._apply(task, "lost" if task.started is not None else "returned", None)
        return "applied"

    def holdings(self, worker_id: str) -> set[tuple[str, int]]:
        return {
            (task.id, task.attempt)
            for task in self.tasks.values()
            if task.status == "executing" and task.worker == worker_id
        }

    def reap(self) -> list[str]:
        """Bury the dead, take from them what they hold, end what takes too long; ids."""
        for worker_id, worker in self.workers.items():
            if worker.status != "dead" and worker.seen + worker.lease <= self.now:
                self._bury(worker_id)
        reaped = []
        for task in list(self.tasks.values()):
            if task.status != "executing" or task.worker is None:
                continue
            holder = self.workers.get(task.worker)
            dead = holder is None or holder.status == "dead"
            late = (
                task.started is not None
                and task.timeout is not None
                and task.started + task.timeout <= self.now
            )
            idle = (
                holder is not None
                and holder.start_within is not None
                and task.started is None
                and task.claimed + holder.start_within <= self.now
            )
            if dead:
                spread = self.settings["requeue_spread"] or 0.0
                self._apply(task, "lost" if task.started is not None else "returned", spread / 2)
            elif late:
                self._linger(task)
                self._apply(task, "timed_out", None)
            elif idle:
                self._apply(task, "unstarted", None)
            if dead or late or idle:
                reaped.append(task.id)
        return sorted(reaped)

    def _bury(self, worker_id: str) -> None:
        self.workers[worker_id].status = "dead"
        for slot in [slot for slot in self.lingering if slot[0] == worker_id]:
            del self.lingering[slot]

    def _linger(self, task: MTask) -> None:
        worker = self.workers.get(task.worker or "")
        if task.worker is not None and worker is not None and worker.status != "dead":
            self.lingering[task.worker, task.id, task.attempt] = task.new.type

    def _tell(self, verb: str, task: MTask, label: str = "") -> None:
        self.log.append((verb, task.id))
        if verb not in {"start", "progress", "delete"}:
            task.history.append(task.status)
        if verb not in {"start", "progress"}:
            self._count(task, "" if verb == "delete" else task.status, label)

    def _count(self, task: MTask, state: str, label: str = "") -> None:
        self.counters[task.counted, state, label] += 1
        task.counted = state

    def _held(self, task_id: str, attempt: int, worker_id: str) -> bool:
        task = self.tasks.get(task_id)
        return (
            task is not None
            and task.status == "executing"
            and (task.attempt, task.worker) == (attempt, worker_id)
        )

    def _apply(self, task: MTask, outcome: str, value: Any) -> None:
        """The rules of SPEC section 5."""
        if outcome == "completed":
            task.result = value
            self._judge(task.new.type, good=True)
            self._end(task, "completed", None, outcome)
        elif outcome == "fatal":
            task.retries += 1
            self._judge(task.new.type, good=False)
            self._end(task, "failed", Problem("E", "not_retriable"), "failed")
        elif outcome in {"failed", "timed_out"}:
            self._fail(task, outcome, value)
        elif outcome in {"lost", "returned"}:
            self._lose(task, outcome, "worker_lost", value or 0.0)
        elif outcome == "unstarted":
            self._lose(task, "returned", "not_started")
        elif outcome == "released":
            self._wait(task, outcome, None, "queued", None)
        elif outcome == "snoozed":
            self._wait(task, outcome, None, "scheduled", self.now + value)
            task.ready_at = task.run_at = self.now + value
        else:
            raise AssertionError(outcome)

    def _fail(self, task: MTask, outcome: str, after: float | None) -> None:
        code, reason = ("E", "max_retries_exceeded")
        if outcome == "timed_out":
            code, reason = ("TIMEOUT", "timeout")
        policy = task.new.spec.retry
        pause = min(policy.base * policy.factor**task.retries, policy.cap)
        pause = pause if after is None else after
        task.retries += 1
        self._judge(task.new.type, good=False)
        if task.retries > task.new.max_retries:
            self._end(task, "dead_letter", Problem(code, reason), outcome)
            return
        self._wait(task, outcome, Problem(code, None), "retrying", self.now + pause)
        if outcome == "timed_out" and task.timeout is not None:
            task.timeout = max(task.timeout, min(task.timeout * 1.5, 3600.0))

    def _lose(self, task: MTask, outcome: str, reason: str, after: float = 0.0) -> None:
        code = reason.upper()
        if outcome == "lost":
            task.retries += 1
            self._judge(task.new.type, good=False)
        else:
            task.returns += 1
        if (outcome == "lost" and task.retries > task.new.max_retries) or (
            task.returns > FREE_RETURNS
        ):
            self._end(task, "dead_letter", Problem(code, reason), outcome)
        elif outcome == "lost" and after:
            self._wait(task, outcome, Problem(code, None), "retrying", self.now + after, reason)
        else:
            self._wait(task, outcome, Problem(code, None), "queued", None, reason)

    def _wait(
        self,
        task: MTask,
        outcome: str,
        error: Problem | None,
        status: str,
        due: float | None,
        label: str = "",
    ) -> None:
        code = None if error is None else error.code
        task.runs.append(Run(task.attempt, task.worker, outcome, code))
        task.status, task.due, task.error = status, due, error
        task.worker = task.started = task.progress = None
        task.version += 1
        verb = {"queued": "release", "scheduled": "snooze"}.get(status, "retry")
        labels = {"failed": "error", "timed_out": "timeout"}
        self._tell(verb, task, label or labels.get(outcome, ""))

    # -- ends --------------------------------------------------------------------------------------

    def _end(
        self,
        task: MTask,
        status: str,
        error: Problem | None,
        outcome: str | None = None,
        verb: str | None = None,
        *,
        alone: bool = False,
    ) -> None:
        held = task.status == "executing"
        if outcome is not None:
            code = None if error is None else error.code
            task.runs.append(Run(task.attempt, task.worker, outcome, code))
        task.error = error
        task.status, task.ended, task.due = status, self.now, None
        task.version += 1
        task.parents = set()
        self._tell(verb or ENDS[status], task, (error and error.reason) or "")
        if not held:
            task.worker = None
        hold = task.new.unique
        if (
            hold is not None
            and self.uniques.get(hold.key) == task.id
            and not self._counts(hold.states, status)
        ):
            del self.uniques[hold.key]
        if not alone:
            self._resolve_children(task)

    def _resolve_children(self, task: MTask) -> None:
        for child in list(self.tasks.values()):
            if task.id in child.parents:
                self._resolve(child, task)

    def _resolve(self, child: MTask, parent: MTask) -> None:
        if parent.status != "completed" and not child.new.spec.tolerant:
            self._end(child, "cancelled", Problem("DEPENDENCY_FAILED", "dependency_failed"))
            return
        child.parents.remove(parent.id)
        if child.parents:
            return
        if child.run_at <= self.now:
            self._make_ready(child, self.now, "due")
        else:
            child.due = child.run_at

    def _make_ready(self, task: MTask, ready_at: float, verb: str) -> None:
        task.status, task.due, task.ready_at = "queued", None, ready_at
        task.version += 1
        self._tell(verb, task, "" if task.counted else "moved")

    def _counts(self, mask: int, status: str) -> bool:
        return bool(mask >> (1 + STATES.index(status)) & 1)

    def _judge(self, type: str, *, good: bool) -> None:
        """The circuit breaker hears of a run."""
        rules = self.types.get(type)
        if rules is None or rules.breaker is None:
            return
        failures, within, cooldown = rules.breaker
        if rules.open_until is not None:
            if self.now >= rules.open_until:
                rules.open_until = None if good else self.now + cooldown
                rules.failures = []
        elif not good:
            rules.failures = [at for at in rules.failures if at > self.now - within] + [self.now]
            if len(rules.failures) >= failures:
                rules.open_until, rules.failures = self.now + cooldown, []

    # -- operators ---------------------------------------------------------------------------------

    def cancel(self, task_id: str) -> tuple[bool, str | None]:
        task = self.tasks.get(task_id)
        if task is None or task.status not in LIVE:
            return False, None if task is None else task.status
        before = task.status
        if before == "executing":
            self._linger(task)
        self._end(task, "cancelled", None, "cancelled" if before == "executing" else None)
        return True, before

    def replay(self, task_id: str, level: int | None) -> tuple[bool, str | None]:
        task = self.tasks.get(task_id)
        if task is None or task.status in {"queued", "executing", "completed"}:
            return False, None if task is None else task.status
        before = task.status
        if level is not None and level != task.level:
            task.level = level
            self._count(task, "", "moved")
        self._clear(task)
        task.parents = set()
        self._make_ready(task, self.now, "replay")
        if task.new.unique is not None:
            self.uniques.setdefault(task.new.unique.key, task.id)
        return True, before

    def rerun(self, reruns: list[tuple[str, int]]) -> list[tuple[bool, str | None]]:
        """Run tasks again that have ended, by their ids and the versions they must have."""
        return [self._rerun(self.tasks.get(task_id), version) for task_id, version in reruns]

    def _rerun(self, task: MTask | None, version: int) -> tuple[bool, str | None]:
        if task is None:
            return False, None
        before = task.status
        if before in LIVE or task.version != version:
            return False, before
        waits = set()
        for parent in task.new.depends_on:
            state = self.tasks[parent].status if parent in self.tasks else "gone"
            if state in LIVE:
                waits.add(parent)
            elif state != "completed" and not task.new.spec.tolerant:
                return False, before
        self._clear(task)
        task.parents = waits
        if waits:
            task.status, task.run_at, task.ready_at = "scheduled", self.now, self.now
            task.version += 1
            self._tell("rebind", task)
        else:
            self._make_ready(task, self.now, "rerun")
        if task.new.unique is not None:
            self.uniques.setdefault(task.new.unique.key, task.id)
        return True, before

    def _clear(self, task: MTask) -> None:
        """Forget what an earlier life has left behind."""
        task.retries = task.returns = 0
        task.error = task.result = task.progress = task.worker = task.started = task.ended = None
        if task.expires is not None and task.expires <= self.now:
            task.expires = None

    def delete(self, task_id: str) -> tuple[bool, str | None]:
        task = self.tasks.get(task_id)
        if task is None or task.status in {"scheduled", "queued", "executing"}:
            return False, None if task is None else task.status
        before = task.status
        if before == "retrying":
            self._end(task, "cancelled", None)
        self._tell("delete", task)
        self._leave_fence(task)
        self._forget(task)
        return True, before

    def _leave_fence(self, task: MTask) -> None:
        assert task.ended is not None
        if task.attempt and task.ended > self.now - DAY:
            self.fences[task.id] = task.attempt, self.now + DAY

    def change_settings(self, changes: dict[str, float | None], version: int | None) -> int:
        """The version after it."""
        for name, seconds in changes.items():
            if name not in self.settings:
                raise Refused("invalid_setting")
            if name in KEPT and (seconds is None or seconds < 1):
                raise Refused("invalid_retention")
            if name == "requeue_spread" and (seconds is None or not 0 <= seconds <= 3600):
                raise Refused("invalid_setting")
            if seconds is not None and seconds < 0:
                raise Refused("invalid_priority")
        wanted = {**self.settings, **changes}
        if wanted != self.settings:
            if version is not None and version != self.settings_version:
                raise Refused("settings_conflict")
            self.settings = wanted
            self.settings_version += 1
        return self.settings_version

    def prune(self) -> int:
        old = [
            task
            for task in self.tasks.values()
            if task.ended is not None
            and task.ended <= self.now - (self.settings[task.status] or 0.0)
            and not any(self._is_live(child) for child in task.dependents)
        ]
        for task in old:
            self._count(task, "")
            if task.status != "completed":
                self._leave_fence(task)
            self._forget(task)
        return len(old)

    def _is_live(self, task_id: str) -> bool:
        task = self.tasks.get(task_id)
        return task is not None and task.status in LIVE

    def _forget(self, task: MTask) -> None:
        del self.tasks[task.id]
        if task.new.unique is not None and self.uniques.get(task.new.unique.key) == task.id:
            del self.uniques[task.new.unique.key]

    def rules(self, type: str) -> MRules:
        return self.types.setdefault(type, MRules())

    # -- workers -----------------------------------------------------------------------------------

    def register(self, worker_id: str, lease: float, start_within: float | None) -> None:
        self.workers[worker_id] = MWorker(lease, self.now, start_within)

    def heartbeat(self, worker_id: str) -> set[tuple[str, int]]:
        """What the worker is to let go of."""
        worker = self.workers.get(worker_id)
        if worker is None or worker.status == "dead":
            raise Refused("worker_gone")
        worker.seen = self.now
        return {(task_id, attempt) for who, task_id, attempt in self.lingering if who == worker_id}

    def mark(self, worker_id: str, status: str) -> bool:
        worker = self.workers.get(worker_id)
        if worker is None or worker.status == "dead":
            return False
        worker.status = status
        return True

    def forget(self, worker_id: str) -> bool:
        if worker_id not in self.workers:
            return False
        self._bury(worker_id)
        if not any(
            task.status == "executing" and task.worker == worker_id for task in self.tasks.values()
        ):
            del self.workers[worker_id]
        return True


STATES = [
    "scheduled",
    "queued",
    "executing",
    "retrying",
    "completed",
    "failed",
    "dead_letter",
    "cancelled",
]

OUTCOMES = {"fatal": "failed"}
"""What a run's history calls it, where that differs."""

ENDS = {
    "completed": "complete",
    "failed": "fail",
    "dead_letter": "dead_letter",
    "cancelled": "cancel",
}
