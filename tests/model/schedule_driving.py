"""Schedules of a store beside those of the model, driven by the same steps.

A tick comes ten minutes after a multiple of twenty minutes from the beginning. The clock is moved
by multiples of twenty minutes, or to half a minute after a tick: a few seconds decide nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from typing import Any

from fairlane.core.backend import Backend
from fairlane.core.flow import Op
from fairlane.core.ids import new_id, numbered
from fairlane.core.model import Ask, Claimed, NewWorker, TaskError, moment
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.recurrence import every
from fairlane.core.schedules import (
    Missed,
    NewSchedule,
    Outcome,
    Overlap,
    Schedule,
    ScheduleRun,
    new_schedule,
)
from fairlane.core.settlement import Settlement
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.model.driving import Pair
from tests.model.schedule_reference import Declared, MSchedule, Schedules, changed

SECOND = 1_000_000
STEP = 1_200
AFTER_A_TICK = 630
STEPS_AT_MOST = 100
WAITING = {State.SCHEDULED, State.QUEUED}


Step = Callable[["SchedulePair"], None]


class SchedulePair(Pair):
    """A store beside a model of its schedules."""

    def __init__(self, backend: Backend, reopen: Callable[[], Backend] | None = None) -> None:
        super().__init__(backend, reopen)
        self.schedules = Schedules()
        self.begun = self.schedules.now = int(self.epoch)
        self.numbers: dict[str, int] = {}
        """The model's numbers of the store's tasks."""
        self.claimed: dict[int, Claimed] = {}
        self._requests = count()

    @property
    def task_ids(self) -> dict[int, str]:
        return {number: task_id for task_id, number in self.numbers.items()}

    # -- comparing -----------------------------------------------------------------------------

    def compare(self) -> None:
        ids = sorted({*self.schedules.known, "a", "b", "c"})
        for id, theirs in zip(ids, self.run(self.backend.ops.schedules(ids)), strict=True):
            ours = self.schedules.known.get(id)
            if ours is None or theirs is None:
                self.agree(ours and id, theirs and id, f"schedule {id}")
            else:
                self._learn(ours, theirs)
                self.agree(_ours(ours), self._theirs(theirs), f"schedule {id}")
        counts = self.run(self.backend.ops.tick_counts()).outcomes
        counted = {str(outcome): number for outcome, number in counts.items()}
        self.agree(dict(self.schedules.counted), counted, "the counts of ticks")
        self._compare_tasks()

    def _learn(self, ours: MSchedule, theirs: Schedule) -> None:
        """Learn the ids of tasks that were fired. Which is which is compared by their ticks."""
        for mine, run in zip(ours.runs[-100:], theirs.standing.runs, strict=False):
            if mine.task is not None and run.task_id is not None:
                self.numbers.setdefault(run.task_id, mine.task)

    def _theirs(self, schedule: Schedule) -> dict[str, Any]:
        standing = schedule.standing
        return {
            "payload": schedule.payload,
            "owner": standing.owner or None,
            "version": standing.version,
            "tick": _seconds(standing.tick),
            "left": standing.left,
            "last": None if standing.last_task is None else self.numbers[standing.last_task],
            "last_at": _seconds(standing.last_at),
            "failures": standing.failures,
            "paused": standing.pause is not None,
            "until": None if standing.pause is None else _seconds(standing.pause.until),
            "fired": standing.fired,
            "missed": standing.missed,
            "skipped": standing.skipped,
            "runs": [self._run(run) for run in standing.runs],
        }

    def _run(self, run: ScheduleRun) -> tuple[int | None, str, int, int | None]:
        # The time of a run besides the ticks is the store's.
        tick = 0 if run.outcome is Outcome.MANUAL else _seconds(run.tick)
        overlaps = run.outcome is Outcome.OVERLAP
        task = None if overlaps or run.task_id is None else self.numbers[run.task_id]
        return tick, str(run.outcome), run.count, task

    def _compare_tasks(self) -> None:
        ids = list(self.numbers)
        states: dict[int, str] = {}
        for start in range(0, len(ids), 500):
            batch = ids[start : start + 500]
            for task_id, task in zip(batch, self.run(self.backend.ops.heads(batch)), strict=True):
                state = "deleted" if task is None else str(task.state)
                waits = task is not None and task.state in WAITING
                states[self.numbers[task_id]] = "waiting" if waits else state
        ours = {number: self.schedules.tasks[number] for number in states}
        self.agree(ours, states, "the tasks")

    def follow(self, step: Step) -> None:
        """Do a step with both, and compare."""
        self.steps += 1
        step(self)
        self.compare()

    def outcome(self) -> list[dict[str, Any] | None]:
        """All there is to say, the same on every store."""
        found = self.run(self.backend.ops.schedules(["a", "b", "c"]))
        return [None if each is None else self._relative(self._theirs(each)) for each in found]

    def _relative(self, view: dict[str, Any]) -> dict[str, Any]:
        def relative(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return [relative(each) for each in value]
            return value - self.begun if isinstance(value, int) and value > 10**8 else value

        return {name: relative(value) for name, value in view.items()}

    # -- steps ---------------------------------------------------------------------------------

    def put(self, id: str, said: Declared, owner: str | None, version: int | None) -> None:
        # What is said of times is said from the beginning of the program.
        times = {
            name: None if value is None else value + self.begun
            for name, value in (("starts_at", said.starts_at), ("ends_at", said.ends_at))
        }
        offset = (self.begun + STEP // 2) % said.interval
        said = changed(said, offset=offset, **times)
        self.both(
            lambda: self.schedules.put(id, said, owner, version),
            lambda: self._put(_new(id, said), owner, version),
            f"put {id}",
        )

    def _put(self, new: NewSchedule, owner: str | None, version: int | None) -> None:
        self.run(self.backend.ops.put_schedules([new], owner=owner, version=version))

    def drop(self, id: str) -> None:
        drop = self.backend.ops.drop_schedule(id)
        self.both(lambda: self.schedules.drop(id), lambda: self.run(drop), "drop")

    def sweep(self) -> None:
        self.run(self.backend.ops.sweep_schedules())
        self.schedules.sweep()

    def pause_one(self, id: str, steps: int | None) -> None:
        until = None if steps is None else self.schedules.now + steps * STEP + 300
        theirs = self.backend.ops.pause_schedule(id, until=until and until * SECOND)
        self._change(lambda: self.schedules.pause(id, until), theirs)

    def resume(self, id: str, missed: Missed) -> None:
        theirs = self.backend.ops.resume_schedule(id, missed=missed)
        self._change(lambda: self.schedules.resume(id, missed), theirs)

    def _change(self, ours: Callable[[], None], theirs: Op[Schedule]) -> None:
        def change() -> None:
            self.run(theirs)

        self.both(ours, change, theirs.name)

    def run_now(self, id: str) -> None:
        task_id = new_id()
        self.numbers[task_id] = len(self.schedules.tasks)

        def theirs() -> int:
            return self.numbers[self.run(self.backend.ops.run_schedule(id, task_id))]

        if self.both(lambda: self.schedules.run(id), theirs, "run") is None:
            del self.numbers[task_id]

    def backfill(self, id: str, ticks: int, overlap: Overlap | None) -> None:
        schedule = self.schedules.known.get(id)
        interval, offset = (STEP, 0) if schedule is None else _rule(schedule)
        now, first = self.schedules.now, new_id()
        since = now - (now - offset) % interval - (ticks - 1) * interval
        begin = len(self.schedules.tasks)

        def theirs() -> list[int]:
            op = self.backend.ops.backfill_schedule(
                id, first, since * SECOND, now * SECOND, overlap=overlap
            )
            found = self.run(op)
            assert found == [numbered(first, number) for number in range(len(found))]
            self.numbers |= {each: begin + number for number, each in enumerate(found)}
            return [self.numbers[each] for each in found]

        self.both(lambda: self.schedules.backfill(id, ticks, overlap), theirs, "backfill")

    def fire(self) -> None:
        for _ in range(STEPS_AT_MOST):
            if not self.run(self.backend.ops.fire_due()).handled:
                break
        else:
            raise AssertionError("the store fires for ever")
        self.schedules.fire()

    def move(self, number: int) -> None:
        """To half a minute after a tick, or some steps on; or back."""
        begin = (self.schedules.now - self.begun) % STEP
        steps = [STEP, 3 * STEP, 30 * STEP, 100 * STEP, -3 * STEP]
        moves = [*steps, STEP - begin, AFTER_A_TICK - begin]
        self._let_pass(moves[number % len(moves)])

    def _let_pass(self, seconds: int) -> None:
        self.run(self.backend.ops.shift_clock(seconds))
        self.schedules.now += seconds

    def look(self, number: int, outcome: str) -> None:
        """Just after a tick, and again before the next one, when a task may have ended."""
        self._let_pass(AFTER_A_TICK - (self.schedules.now - self.begun) % STEP)
        self.fire()
        self.compare()
        self.claim_all()
        self.end_run(number, outcome)
        self._let_pass(STEP - AFTER_A_TICK)
        self.fire()
        self.delete_one(number)

    def claim_all(self) -> None:
        worker = self.run(self.backend.ops.register(NewWorker(new_id(), lease=86_400.0)))
        grant = self.run(self.backend.ops.claim(Ask(worker, f"r{next(self._requests)}", 50)))
        for task in grant.tasks:
            number = self.numbers[task.task_id]
            assert self.schedules.is_free(number), f"task {number} is claimed too early"
            self.schedules.tasks[number] = "executing"
            self.claimed[number] = task

    def end_run(self, choice: int, outcome: str) -> None:
        running = [n for n, state in self.schedules.tasks.items() if state == "executing"]
        if not running:
            return
        number = running[choice % len(running)]
        task = self.claimed[number]
        error = TaskError("x", "E", retriable=outcome == "retrying")
        told = Completed(b"null") if outcome == "completed" else Failed(error, after=86_400.0 * 300)
        settlement = Settlement(task.task_id, task.attempt, task.worker_id, told, task, 0.5)
        self.run(self.backend.ops.settle([settlement]))
        self.schedules.tasks[number] = outcome

    def cancel_one(self, choice: int) -> None:
        live = [n for n, s in self.schedules.tasks.items() if s in {"waiting", "executing"}]
        if live:
            number = live[choice % len(live)]
            self.run(self.backend.ops.cancel([self.task_ids[number]]))
            self.schedules.tasks[number] = "cancelled"

    def delete_one(self, choice: int) -> None:
        gone = {"completed", "cancelled", "failed"}
        ended = [n for n, state in self.schedules.tasks.items() if state in gone]
        if ended:
            number = ended[choice % len(ended)]
            self.run(self.backend.ops.delete([self.task_ids[number]]))
            self.schedules.tasks[number] = "deleted"


def make_step(rng: random.Random) -> Step:
    """A step of a program, the same for every store."""
    id, number = rng.choice("aab"), rng.randrange(1_000)
    steps: list[tuple[int, Callable[[], Step]]] = [
        (3, lambda: _make_put(rng, id)),
        (9, lambda: lambda pair: pair.fire()),
        (8, lambda: lambda pair: pair.move(number)),
        (6, lambda: lambda pair: pair.claim_all()),
        (9, lambda: _make_settle(rng, number)),
        (1, lambda: lambda pair: pair.cancel_one(number)),
        (1, lambda: lambda pair: pair.delete_one(number)),
        (4, lambda: _make_look(rng, number)),
        (2, lambda: _make_pause(rng, id)),
        (2, lambda: _make_resume(rng, id)),
        (1, lambda: lambda pair: pair.run_now(id)),
        (1, lambda: _make_backfill(rng, id)),
        (1, lambda: lambda pair: pair.drop("abcc"[number % 4])),
        (1, lambda: lambda pair: pair.sweep()),
        (1, lambda: lambda pair: pair.restart()),
    ]
    (chosen,) = rng.choices([make for _, make in steps], [weight for weight, _ in steps])
    return chosen()


def _make_put(rng: random.Random, id: str) -> Step:
    said = Declared(
        interval=STEP * rng.choice([1, 1, 3]),
        offset=0,
        payload=rng.randrange(2),
        missed=rng.choice(list(Missed)),
        most=rng.choice([2, 100]),
        within=rng.choice([1_500, 4_900, 86_700]),
        overlap=rng.choice(list(Overlap)),
        starts_at=rng.choice([None, None, None, 30 * STEP + 300]),
        ends_at=rng.choice([None, None, None, 60 * STEP + 300]),
        count=rng.choice([None, None, 3]),
        pause_after_failures=rng.choice([None, 1, 2]),
    )
    owner = rng.choice([None, None, "shop", "office"])
    version = rng.choice([None] * 6 + [0, 1, 2])
    return lambda pair: pair.put(id, said, owner, version)


def _make_settle(rng: random.Random, number: int) -> Step:
    outcome = rng.choice(["completed", "completed", "failed", "failed", "retrying"])
    return lambda pair: pair.end_run(number, outcome)


def _make_look(rng: random.Random, number: int) -> Step:
    outcome = rng.choice(["completed", "failed", "failed"])
    return lambda pair: pair.look(number, outcome)


def _make_pause(rng: random.Random, id: str) -> Step:
    steps = rng.choice([None, 1, 4, 40])
    return lambda pair: pair.pause_one(id, steps)


def _make_resume(rng: random.Random, id: str) -> Step:
    missed = rng.choice(list(Missed))
    return lambda pair: pair.resume(id, missed)


def _make_backfill(rng: random.Random, id: str) -> Step:
    ticks, overlap = rng.choice([1, 3]), rng.choice([None, Overlap.ALLOW, Overlap.QUEUE])
    return lambda pair: pair.backfill(id, ticks, overlap)


def _rule(schedule: MSchedule) -> tuple[int, int]:
    return schedule.said.interval, schedule.said.offset


def _new(id: str, said: Declared) -> NewSchedule:
    options = asdict(said)
    rule = every(options.pop("interval"), options.pop("offset"))
    task = new_task("work", {"n": options.pop("payload")})
    for name in ("starts_at", "ends_at"):
        time = options[name]
        options[name] = None if time is None else moment(time * SECOND)
    return new_schedule(id, rule, task, **options)


def _seconds(time: int | None) -> int | None:
    return None if time is None else time // SECOND


def _ours(schedule: MSchedule) -> dict[str, Any]:
    def total(*outcomes: str) -> int:
        return sum(run.count for run in schedule.runs if run.outcome in outcomes)

    return {
        "payload": b'{"n":%d}' % schedule.said.payload,
        "owner": schedule.owner,
        "version": schedule.version,
        "tick": schedule.next_tick,
        "left": schedule.left,
        "last": schedule.last,
        "last_at": schedule.last_at,
        "failures": schedule.failures,
        "paused": schedule.paused,
        "until": schedule.until if schedule.paused else None,
        "fired": total("fired"),
        "missed": total("missed"),
        "skipped": total("overlap", "paused"),
        "runs": [
            (0 if run.outcome == "manual" else run.tick, run.outcome, run.count, run.task)
            for run in schedule.runs[-100:]
        ],
    }
