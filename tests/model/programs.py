"""Random programs: the steps they are made of.

A step is a function that makes its choices through `choose`, be it a seeded generator's or a
property test's, and says what is to be done with a `Pair`. Choices that may depend on the store
(which task, which claim) are numbers, so that the same step can be done with several stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from fairlane.core.filters import Filter
from fairlane.core.ids import new_id
from fairlane.core.inputs import Input
from fairlane.core.model import NewTask, WorkerStatus
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import LIVE, WAITING, State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Mode, Unique
from tests.model.driving import Pair

T = TypeVar("T")
Do = Callable[[Pair], None]


class Choices:
    """Where a program's choices come from."""

    def __init__(self, pick: Callable[[Sequence[Any]], Any]) -> None:
        self._pick = pick

    def one(self, *options: T) -> T:
        picked: T = self._pick(options)
        return picked

    def seldom(self, odds: int) -> bool:
        """Once in so many times."""
        return self.number(odds) == odds - 1

    def number(self, most: int = 50) -> int:
        picked: int = self._pick(range(most))
        return picked


TYPES = ("a", "b", "c")
QUEUES = ("q", "r")
RETRY = RetryPolicy(base=10.0, factor=3.0, cap=90.0, jitter=0.0)


def submit(choices: Choices, ids: list[str], clock: Callable[[float], datetime]) -> Do:
    batch: list[NewTask] = []
    for _ in range(choices.one(1, 2, 3, 6)):
        earlier = [*ids, *(task.task_id for task in batch)]
        batch.append(_new_task(choices, earlier, clock))
    if ids and choices.seldom(5):
        again = ids[choices.number() % len(ids)]
        if again not in batch[0].depends_on:
            batch[0] = replace(batch[0], task_id=again, chosen=True)
    return lambda pair: pair.submit(batch)


def _new_task(choices: Choices, earlier: list[str], clock: Callable[[float], datetime]) -> NewTask:
    parents: list[str] = []
    if earlier and choices.seldom(3):
        parents = [earlier[choices.number() % len(earlier)] for _ in range(choices.one(1, 1, 2))]
    if choices.seldom(50):
        parents.append(new_id())  # that never was
    expires = choices.one(None, None, None, 70.0, 190.0)
    task = new_task(
        choices.one(*TYPES),
        {"n": choices.number(2)},
        queue=choices.one(*QUEUES),
        priority=choices.one(0, 2, 5, 6, 8, 10),
        required_capabilities=choices.one((), (), (), ("gpu",)),
        max_retries=choices.one(0, 1, 2),
        timeout_seconds=choices.one(None, 30.0, 90.0),
        delay_seconds=choices.one(0, 0, 0, 10, 50, 130),
        expires_at=None if expires is None else clock(expires),
        idempotency_key=choices.one("k", "l", "m") if choices.seldom(6) else None,
        unique=choices.one(*UNIQUES) if choices.seldom(3) else None,
        tags=choices.one(None, {"t": "1"}, {"t": "2"}),
        retry_policy=RETRY,
        depends_on=parents,
        on_parent_failure=choices.one("cancel", "cancel", "continue"),
    )
    # A task that names no timeout: the defaults are no odd multiples of ten seconds.
    task = replace(task, spec=replace(task.spec, timed=choices.seldom(2)))
    # Not chosen, so that programs stay what they were: it comes to the same. Inputs make tasks
    # differ, and those that are unique or have a key should often be alike.
    if not parents or len(earlier) % 2 or task.unique is not None or task.idempotency_key:
        return task
    count = len(task.depends_on)
    places = tuple((len(earlier) + each) % count for each in range(1 + len(earlier) % 3))
    inputs = {"got": Input(places, many=len(places) > 1)}
    return replace(task, spec=replace(task.spec, inputs=inputs))


UNIQUES = (
    Unique(),
    Unique(),
    Unique(mode=Mode.REJECT),
    Unique(mode=Mode.REPLACE),
    Unique(("n",), WAITING, mode=Mode.REPLACE),
    Unique(("n",), LIVE | {State.COMPLETED}, 110.0),
)


def claim(
    choices: Choices, slots: Sequence[int] = (1, 2, 5), ahead: Sequence[int] = (0, 0, 3)
) -> Do:
    worker, free = choices.number(), choices.one(*slots)
    options: dict[str, Any] = {
        "ahead": choices.one(*ahead),
        "types": choices.one(None, None, frozenset("ab")),
        "queues": choices.one(None, None, frozenset("q")),
        "capabilities": choices.one(frozenset(), frozenset({"gpu"})),
    }
    request, heard = new_id(), choices.one(None, 0, 0, 0, 0, 1, 2)
    return lambda pair: pair.claim(worker, request, free, heard, **options)


def claim_again(choices: Choices) -> Do:
    worker = choices.number()
    return lambda pair: pair.claim_again(worker)


def start(choices: Choices) -> Do:
    number, stranger = choices.number(), choices.seldom(4)
    return lambda pair: pair.start(number, stranger=stranger)


def progress(choices: Choices) -> Do:
    number, stranger = choices.number(), choices.seldom(4)
    percent = choices.one(0.0, 12.5, 100.0)
    return lambda pair: pair.progress(number, percent, stranger=stranger)


def disown(choices: Choices) -> Do:
    number, stranger = choices.number(12), choices.seldom(4)
    return lambda pair: pair.disown(number, stranger=stranger)


def holdings(choices: Choices) -> Do:
    worker = choices.number()
    return lambda pair: pair.holdings(worker)


OUTCOMES = (
    *("completed", "completed", "completed", "failed", "failed", "fatal"),
    *("timed_out", "released", "snoozed"),
)


AFTER = {"failed": (None, 10.0, 50.0), "snoozed": (10.0, 50.0), "completed": (1.0, 2.0)}
"""The seconds that an outcome asks for; of a completion, its result."""


def settle(choices: Choices) -> Do:
    reports = []
    for _ in range(choices.one(1, 1, 2, 3)):
        outcome = choices.one(*OUTCOMES)
        after = choices.one(*AFTER.get(outcome, (None,)))
        stranger = choices.seldom(5)
        reports.append((choices.number(12), outcome, after, stranger))
    return lambda pair: pair.settle(reports)


def reap(_: Choices) -> Do:
    return lambda pair: pair.reap()


def move_due(_: Choices) -> Do:
    return lambda pair: pair.move_due()


def cancel(choices: Choices) -> Do:
    number = choices.number()
    return lambda pair: pair.cancel(number)


def replay(choices: Choices) -> Do:
    number, level = choices.number(), choices.one(None, None, 3, 9)
    return lambda pair: pair.replay(number, level)


def rerun(choices: Choices) -> Do:
    numbers = [choices.number() for _ in range(choices.one(1, 3, 3, 8))]
    behind = choices.one(0, 0, 0, 1)
    return lambda pair: pair.rerun(numbers, behind=behind)


def delete(choices: Choices) -> Do:
    number = choices.number()
    return lambda pair: pair.delete(number)


def prune(_: Choices) -> Do:
    return lambda pair: pair.prune()


def pause(choices: Choices) -> Do:
    paused = choices.seldom(4)
    queue, type = choices.one((None, None), ("q", None), (None, "a"), (None, "b"))
    return lambda pair: pair.pause(paused, queue, type)


def limit(choices: Choices) -> Do:
    type = choices.one("a", "b", "c", None)
    rate, concurrency = choices.one((0.05, None), (0.0, 0), (0.0, 0), (None, 1), (None, 2))
    return lambda pair: pair.limit(type, rate, concurrency)


def time_runs(choices: Choices) -> Do:
    type, timeout = choices.one("a", "b"), choices.one(0.0, 50.0, 70.0)
    return lambda pair: pair.time_runs(type, timeout)


def break_circuits(choices: Choices) -> Do:
    type = choices.one("a", "b")
    breaker = choices.one((1, 70.0, 50.0), (2, 70.0, 50.0), None)
    return lambda pair: pair.break_circuits(type, breaker)


def change_settings(choices: Choices) -> Do:
    name = choices.one(
        *("low_to_medium", "medium_to_high", "high_to_critical", "completed", "failed"),
        *("requeue_spread", "requeue_spread"),
    )
    seconds = choices.one(40.0, 40.0, 70.0, 200.0, 600.0)
    changes: dict[str, float | None] = {name: seconds}
    if name == "requeue_spread":  # half of it passes until a retry: times are multiples of ten
        changes = {name: 2 * seconds}
    elif name not in {"completed", "failed"}:
        changes = {name: choices.one(seconds, seconds, seconds, None)}
    if choices.seldom(10):
        changes["cancelled"] = 0.0  # refused
    behind, elsewhere = choices.one(None, None, 0, 1), choices.seldom(2)
    return lambda pair: pair.change_settings(changes, behind, elsewhere=elsewhere)


def advance(choices: Choices) -> Do:
    seconds = choices.one(20, 20, 20, 60, 60, 100, 100, 200, 600, 2000)
    if choices.seldom(20):
        seconds = 100_000
    return lambda pair: pair.advance(seconds)


def register(choices: Choices) -> Do:
    lease, worker_id = choices.one(50.0, 210.0, *[10_010.0] * 4), new_id()
    within = choices.one(None, 30.0)
    return lambda pair: pair.register(lease, within, worker_id)


def heartbeat(choices: Choices) -> Do:
    worker = choices.number()
    return lambda pair: pair.heartbeat(worker)


def mark(choices: Choices) -> Do:
    worker = choices.number()
    status = choices.one(WorkerStatus.ACTIVE, WorkerStatus.DRAINING, WorkerStatus.UNHEALTHY)
    return lambda pair: pair.mark(worker, status)


def forget(choices: Choices) -> Do:
    worker = choices.number()
    return lambda pair: pair.forget(worker)


def restart(_: Choices) -> Do:
    return lambda pair: pair.restart()


def find(choices: Choices) -> Do:
    states = choices.one(None, *(frozenset({state}) for state in State), LIVE)
    filter = Filter(
        states=states,
        types=choices.one(None, None, frozenset("a")),
        queues=choices.one(None, None, frozenset("r")),
        levels=choices.one(None, None, frozenset({2, 5})),
        tags=choices.one({}, {}, {"t": "1"}),
    )
    return lambda pair: pair.find(filter)


STEPS: tuple[tuple[Callable[[Choices], Do], int], ...] = (
    (claim, 8),
    (claim_again, 1),
    (start, 2),
    (progress, 1),
    (settle, 8),
    (disown, 1),
    (holdings, 1),
    (reap, 2),
    (move_due, 2),
    (cancel, 2),
    (replay, 2),
    (rerun, 3),
    (delete, 1),
    (prune, 1),
    (pause, 1),
    (limit, 1),
    (break_circuits, 1),
    (time_runs, 1),
    (change_settings, 1),
    (advance, 4),
    (register, 2),
    (heartbeat, 2),
    (mark, 1),
    (forget, 1),
    (restart, 1),
    (find, 2),
)
"""All but `submit`, which needs to know what is there; with how often each comes."""

SUBMITS = 10
