"""What must hold whatever happens, tried with random programs and with many workers at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.core.backend import Backend
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, NewWorker, Task, TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed, Outcome, Released, Snoozed
from fairlane.core.priority import Aging
from fairlane.core.settlement import Settlement
from fairlane.core.states import TERMINAL, State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, settlement, verdicts_of

few_examples = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    print_blob=True,
)

submissions = st.tuples(
    st.just("submit"),
    st.lists(
        st.tuples(st.integers(0, 10), st.sampled_from(["a", "b"]), st.sampled_from([0, 0, 400])),
        min_size=1,
        max_size=8,
    ),
)
claims = st.tuples(st.just("claim"), st.integers(1, 6))
pauses = st.tuples(st.just("advance"), st.sampled_from([1, 90, 550, 620, 1250]))
failures = st.tuples(st.just("fail"), st.sampled_from([0, 300]))


@few_examples
@given(st.lists(st.one_of(submissions, claims, pauses, failures), min_size=5, max_size=25))
async def test_a_claim_takes_what_comes_first(
    store: World, program: list[tuple[str, object]]
) -> None:
    """SPEC section 3, with the claim's own time: nothing that waits may come before what it took.

    Every program has a queue of its own, so that they can share a store.
    """
    queue = f"queue-{new_id()}"
    worker = await store.worker(lease=86_400)
    submitted: list[str] = []
    held: list[Claimed] = []
    for step, value in [*program, ("claim", 500)]:
        match step, value:
            case "submit", list(rows):
                submitted += await store.submit_all(
                    [
                        new_task(type, queue=queue, priority=level, delay_seconds=delay)
                        for level, type, delay in rows
                    ]
                )
            case "advance", int(seconds):
                await store.advance(seconds)
            case "fail", int(after) if held:
                await store.settle(held.pop(), Failed(TaskError("x"), after=after))
            case "claim", int(count):
                claimed = await store.claim(worker, count, queues=frozenset({queue}))
                await _check_order(store, submitted, claimed, count)
                held += claimed


async def _check_order(
    store: World, submitted: list[str], claimed: list[Claimed], count: int
) -> None:
    if not claimed:
        return
    tasks = {task.task_id: task for task in await store.run(store.ops.get(submitted)) if task}
    now = tasks[claimed[0].task_id].claimed_at
    assert now is not None

    def rank(task: Task) -> tuple[int, object, str]:
        age = (now - task.ready_at) // timedelta(microseconds=1)
        return (-Aging().effective(task.priority, age), task.ready_at, task.task_id)

    taken = [rank(tasks[task.task_id]) for task in claimed]
    assert taken == sorted(taken)
    left = [rank(task) for task in tasks.values() if task.status is State.QUEUED]
    assert not left or (len(claimed) == count and max(taken) < min(left))
    assert all(tasks[task.task_id].run_at <= now for task in claimed)


async def test_fifty_thousand_tasks_in_exact_order(store: World) -> None:
    total = 50_000
    expected: list[str] = []
    for _ in range(0, total, 1_000):
        expected += await store.submit_all([new_task("work") for _ in range(1_000)])
    worker = await store.worker(lease=86_400)
    got: list[str] = []
    while tasks := await store.claim(worker, 500):
        got += [task.task_id for task in tasks]
    assert len(got) == total
    assert got == expected


async def test_limits_are_never_exceeded_while_eight_workers_churn(store: World) -> None:
    """`slots` may have 5 in hand at once; `rated` 40 starts a second after a burst of 40."""
    await store.run(store.ops.limit("slots", concurrency=5))
    await store.run(store.ops.limit("rated", rate=40))
    ids = await store.submit_all([new_task("slots", priority=n % 11) for n in range(120)])
    rated = await store.submit_all([new_task("rated", priority=n % 11) for n in range(100)])
    in_hand = 0
    most_in_hand = 0

    async def work(backend: Backend) -> None:
        nonlocal in_hand, most_in_hand
        worker = await backend.run(backend.ops.register(NewWorker(new_id())))
        idle = 0
        while idle < 3:
            grant = await backend.run(backend.ops.claim(Ask(worker, new_id(), 3)))
            idle = 0 if grant.tasks else idle + 1
            slots = [task for task in grant.tasks if task.type == "slots"]
            in_hand += len(slots)
            most_in_hand = max(most_in_hand, in_hand)
            await asyncio.sleep(0)
            in_hand -= len(slots)
            if grant.tasks:
                batch = [settlement(task) for task in grant.tasks]
                assert set(verdicts_of(await backend.run(backend.ops.settle(batch)))) == {
                    Verdict.APPLIED
                }
            elif grant.next_due_in is not None:
                await asyncio.sleep(grant.next_due_in)

    await asyncio.gather(*(work(backend) for backend in store.processes(4) * 2))
    done = [task for task in await store.run(store.ops.get(ids + rated)) if task]
    assert {task.status for task in done} == {State.COMPLETED}
    assert 0 < most_in_hand <= 5
    spans = [(task.claimed_at, task.completed_at) for task in done if task.type == "slots"]
    assert _most_at_once(spans) <= 5
    starts = sorted(
        task.claimed_at.timestamp() for task in done if task.type == "rated" and task.claimed_at
    )
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            assert last - first + 1 <= 40 + 40 * (starts[last] - starts[first]) + 1e-3


def _most_at_once(spans: Iterable[tuple[object, object]]) -> int:
    """Spans are (begin, end) in the engine's time; one that ends as another begins has let go."""
    edges: list[tuple[object, int]] = []
    for begin, end in spans:
        edges += [(begin, 1), (end, -1)]
    most = current = 0
    for _, change in sorted(edges):
        current += change
        most = max(most, current)
    return most


async def test_nothing_is_lost_or_invented_while_everything_goes_on_at_once(store: World) -> None:
    """Eight workers with random outcomes, lost answers, deaths and stale reports, and an operator
    who cancels and replays at random. In the end every task has ended, once."""
    rng = random.Random(7)
    ids = await store.submit_all(
        [
            new_task("work", {"n": n}, priority=rng.randrange(11), max_retries=rng.randrange(4))
            for n in range(300)
        ]
    )
    accepted: dict[tuple[str, int], set[type[Outcome]]] = {}
    issued: dict[str, list[int]] = {}
    completed_by_report: set[str] = set()
    backends = store.processes(4)

    async def work(number: int) -> None:
        backend = backends[number % 4]
        newcomer = NewWorker(new_id(), lease=86_400)
        worker = await backend.run(backend.ops.register(newcomer))
        idle = 0
        while idle < 4:
            request = new_id()
            grant = await backend.run(backend.ops.claim(Ask(worker, request, rng.randrange(1, 9))))
            if rng.random() < 0.2 and grant.tasks:  # the answer got lost: ask again
                again = await backend.run(backend.ops.claim(Ask(worker, request, 8)))
                assert {task.task_id for task in again.tasks} <= {
                    task.task_id for task in grant.tasks
                }
            idle = 0 if grant.tasks else idle + 1
            for task in grant.tasks:
                issued.setdefault(task.task_id, []).append(task.attempt)
            if rng.random() < 0.05:  # it dies with all it has, and another comes
                await backend.run(backend.ops.forget(worker))
                await store.reap()
                newcomer = NewWorker(new_id(), lease=86_400)
                worker = await backend.run(backend.ops.register(newcomer))
            batch = [settlement(task, _random_outcome(rng)) for task in grant.tasks]
            for _ in range(rng.choice([1, 1, 2])):
                verdicts = verdicts_of(await backend.run(backend.ops.settle(batch)))
                _note(batch, verdicts, accepted, completed_by_report)
            await asyncio.sleep(0)

    async def operate() -> None:
        for _ in range(30):
            some = rng.sample(ids, 6)
            await store.run(store.ops.cancel(some[:3]))
            await store.run(store.ops.replay(some[3:]))
            await asyncio.sleep(0)

    await asyncio.gather(operate(), *map(work, range(8)))
    tasks: list[Task] = []
    for _ in range(200):  # whatever still waits, is held by nobody, or was replayed late
        await store.reap()
        await store.advance(400)
        worker = await store.worker(lease=86_400)
        grant = await store.claim(worker, 500)
        for task in grant:
            issued.setdefault(task.task_id, []).append(task.attempt)
        batch = [settlement(task) for task in grant]
        verdicts = verdicts_of(await store.run(store.ops.settle(batch)))
        _note(batch, verdicts, accepted, completed_by_report)
        tasks = [task for task in await store.run(store.ops.get(ids)) if task]
        if all(task.status in TERMINAL for task in tasks):
            break
    assert len(tasks) == len(ids) == sum((await store.census()).values())
    assert {task.status for task in tasks} <= TERMINAL
    assert all(len(outcomes) == 1 for outcomes in accepted.values())
    for ended in tasks:
        attempts = issued.get(ended.task_id, [])
        assert len(set(attempts)) == len(attempts)
        assert ended.attempt == max(attempts, default=0)
        assert [run.number for run in ended.attempts] == sorted(
            {run.number for run in ended.attempts}
        )
        assert (ended.status is State.COMPLETED) == (ended.task_id in completed_by_report)
        assert ended.payload == b'{"n":%d}' % ids.index(ended.task_id)
        assert sum(run.outcome == "completed" for run in ended.attempts) <= 1


def _random_outcome(rng: random.Random) -> Outcome:
    outcomes: list[Outcome] = [
        Completed(b"1"),
        Completed(b"2"),
        Failed(TaskError("x"), after=0),
        Failed(TaskError("x", retriable=False)),
        Released(),
        Snoozed(0),
    ]
    return rng.choice(outcomes)


def _note(
    batch: list[Settlement],
    verdicts: list[Verdict],
    accepted: dict[tuple[str, int], set[type[Outcome]]],
    completed: set[str],
) -> None:
    for item, verdict in zip(batch, verdicts, strict=True):
        assert verdict is not Verdict.MISSING
        if verdict is Verdict.APPLIED:
            run = (item.task_id, item.attempt)
            accepted.setdefault(run, set()).add(type(item.outcome))
            if isinstance(item.outcome, Completed):
                completed.add(item.task_id)
