"""Settling: one accepted outcome per attempt, told to the letter."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge
from fairlane.core.ids import new_id
from fairlane.core.model import TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed, Lost, Outcome, Released, Snoozed, TimedOut
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.runtime.failures import failure_of
from tests.fixtures.counters import tallies
from tests.fixtures.stores import World, settlement, verdicts_of

BOOM = TaskError("boom", "E1", traceback="Traceback …")


async def test_a_completed_task(store: World) -> None:
    task_id = await store.submit(payload={"n": 1})
    worker = await store.worker()
    claimed = await store.claim_one(worker)
    held = await store.task(task_id)
    assert held.status is State.EXECUTING
    assert (held.attempt, held.assigned_worker_id, held.version) == (1, worker, 2)
    assert held.claimed_at is not None
    assert await store.settle(claimed, Completed(b'{"ok":true}'), 0.25) is Verdict.APPLIED
    task = await store.task(task_id)
    assert task.status is State.COMPLETED
    assert (task.result, task.error, task.payload) == (b'{"ok":true}', None, b'{"n":1}')
    assert (task.attempt, task.retry_count, task.version) == (1, 0, 3)
    assert task.assigned_worker_id == worker
    assert task.started_at is not None
    assert task.completed_at is not None
    assert task.completed_at - task.started_at == timedelta(seconds=0.25)
    (run,) = task.attempts
    assert (run.number, run.worker_id, run.outcome, run.error) == (1, worker, "completed", None)
    assert (run.started_at, run.ended_at) == (task.started_at, task.completed_at)


async def test_a_large_result(store: World) -> None:
    await store.submit()
    result = msgspec.json.encode("x" * (1024 * 1024 - 2))
    task = await store.claim_and_settle(await store.worker(), Completed(result))
    assert (await store.task(task.task_id)).result == result


async def test_what_a_worker_gets(store: World) -> None:
    task_id = await store.submit(
        "t", {"a": 1}, queue="q", priority="high", tags={"k": "v"}, trace_id="tr", max_retries=4
    )
    task = await store.claim_one(await store.worker())
    assert (task.task_id, task.type, task.queue, task.level) == (task_id, "t", "q", 8)
    assert (task.payload, task.attempt, task.retry_count) == (b'{"a":1}', 1, 0)
    assert (task.max_retries, task.returns, task.timeout) == (4, 0, 300)
    assert (task.spec.tags, task.trace_id) == ({"k": "v"}, "tr")


async def test_failures_until_the_dead_letter_queue(store: World) -> None:
    task_id = await store.submit(max_retries=2, retry_policy=RetryPolicy(jitter=0.0))
    worker = await store.worker()
    for run, delay in ((1, 1), (2, 2)):
        await store.claim_and_settle(worker, Failed(BOOM))
        task = await store.task(task_id)
        assert (task.status, task.retry_count, task.attempt) == (State.RETRYING, run, run)
        assert task.error == BOOM
        assert task.next_retry_at is not None
        assert task.next_retry_at - task.updated_at == timedelta(seconds=delay)
        assert task.assigned_worker_id is None
        assert task.started_at is None
        assert await store.claim(worker) == []
        await store.advance(delay)
    await store.claim_and_settle(worker, Failed(BOOM))
    task = await store.task(task_id)
    assert (task.status, task.retry_count, task.attempt) == (State.DEAD_LETTER, 3, 3)
    assert task.error == msgspec.structs.replace(BOOM, reason="max_retries_exceeded")
    assert task.completed_at is not None
    assert task.next_retry_at is None
    assert [(run.number, run.outcome) for run in task.attempts] == [
        (1, "failed"),
        (2, "failed"),
        (3, "failed"),
    ]
    assert task.attempts[0].error == BOOM
    await store.advance(10_000)
    assert await store.claim(worker) == []


async def test_what_is_not_retriable_fails_at_once(store: World) -> None:
    task_id = await store.submit()
    error = TaskError("bad input", retriable=False)
    await store.claim_and_settle(await store.worker(), Failed(error))
    task = await store.task(task_id)
    assert (task.status, task.retry_count) == (State.FAILED, 1)
    assert task.error == msgspec.structs.replace(error, reason="not_retriable")


async def test_what_the_caller_of_a_task_learns_of_its_failure(store: World) -> None:
    trace = 'Traceback (most recent call last):\n  File "shop.py", line 7\nshop.Unpaid: no money\n'
    for retriable, state, reason in (
        (True, "dead_letter", "max_retries_exceeded"),
        (False, "failed", "not_retriable"),
    ):
        task_id = await store.submit(max_retries=0)
        error = TaskError("no money", "NO_MONEY", traceback=trace, retriable=retriable)
        await store.settle(await store.claim_one(await store.worker()), Failed(error))
        failed = failure_of(await store.task(task_id))
        assert (failed.task_id, failed.state, failed.attempt) == (task_id, state, 1)
        assert (failed.error_code, failed.exception_type) == ("NO_MONEY", "shop.Unpaid")
        assert (failed.reason, failed.traceback) == (reason, trace)


async def test_success_after_failure(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    await store.claim_and_settle(worker, Failed(BOOM, after=0))
    await store.claim_and_settle(worker)
    task = await store.task(task_id)
    assert (task.status, task.retry_count, task.error) == (State.COMPLETED, 1, None)
    assert [run.outcome for run in task.attempts] == ["failed", "completed"]


async def test_a_timeout_gives_more_time_next_time(store: World) -> None:
    task_id = await store.submit(timeout_seconds=100)
    worker = await store.worker()
    await store.claim_and_settle(worker, TimedOut())
    await store.advance(5)
    assert (await store.claim_one(worker)).timeout == 150
    assert (await store.task(task_id)).attempts[0].outcome == "timed_out"


async def test_a_released_task_is_ready_at_once(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    task = await store.claim_one(worker)
    assert await store.settle(task, Released(), seconds=None) is Verdict.APPLIED
    again = await store.claim_one(worker)
    assert (again.task_id, again.attempt, again.retry_count) == (task_id, 2, 0)
    (run,) = (await store.task(task_id)).attempts
    assert (run.outcome, run.started_at) == ("released", None)


async def test_a_snoozed_task_costs_nothing(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    await store.claim_and_settle(worker, Snoozed(30))
    task = await store.task(task_id)
    assert (task.status, task.retry_count) == (State.SCHEDULED, 0)
    assert task.run_at - task.updated_at == timedelta(seconds=30)
    await store.advance(29)
    assert await store.claim(worker) == []
    await store.advance(1)
    assert (await store.claim_one(worker)).attempt == 2


OUTCOMES: list[Outcome] = [
    Completed(b"1"),
    Failed(BOOM),
    Failed(TaskError("no", retriable=False)),
    TimedOut(),
    Lost(started=True),
    Released(),
    Snoozed(5),
]
# No worker says of itself that it is lost.
REPORTS = [
    pytest.param(each, marks=pytest.mark.local) if isinstance(each, Lost) else each
    for each in OUTCOMES
]


@pytest.mark.parametrize("outcome", REPORTS, ids=lambda outcome: type(outcome).__name__)
async def test_the_same_report_twice_is_applied_once(store: World, outcome: Outcome) -> None:
    task_id = await store.submit()
    task = await store.claim_one(await store.worker())
    assert await store.settle(task, outcome) is Verdict.APPLIED
    ops = store.behind.ops
    before, books = await store.task(task_id), await store.behind.run(tallies(ops))
    assert await store.settle(task, outcome) is Verdict.APPLIED
    assert await store.task(task_id) == before
    assert await store.behind.run(tallies(ops)) == books


@pytest.mark.parametrize("first", REPORTS, ids=lambda outcome: type(outcome).__name__)
async def test_a_different_report_afterwards_is_refused(store: World, first: Outcome) -> None:
    task_id = await store.submit()
    task = await store.claim_one(await store.worker())
    await store.settle(task, first)
    before = await store.task(task_id)
    other = Snoozed(1) if isinstance(first, Completed) else Completed(b"2")
    assert await store.settle(task, other) is Verdict.STALE
    assert await store.task(task_id) == before


async def test_another_result_afterwards_is_refused(store: World) -> None:
    task_id = await store.submit()
    task = await store.claim_one(await store.worker())
    await store.settle(task, Completed(b'{"a":1,"b":[2]}'))
    before = await store.task(task_id)
    assert await store.settle(task, Completed(b'{ "b": [2], "a": 1 }')) is Verdict.APPLIED
    for other in (b'{"a":1,"b":[3]}', b"null", b"2"):
        assert await store.settle(task, Completed(other)) is Verdict.STALE
    assert await store.task(task_id) == before


async def test_a_repeat_is_known_after_the_task_went_on(store: World) -> None:
    worker = await store.worker()
    await store.submit()
    first = await store.claim_one(worker)
    await store.settle(first, Failed(BOOM, after=0))
    second = await store.claim_one(worker)
    assert await store.settle(first, Failed(BOOM, after=0)) is Verdict.APPLIED
    assert await store.settle(first, Completed(b"1")) is Verdict.STALE
    assert await store.settle(second) is Verdict.APPLIED


async def test_the_fence(store: World) -> None:
    """Another attempt, another worker or another task: nothing of it is accepted."""
    task_id = await store.submit()
    worker, stranger = await store.worker(), await store.worker()
    task = await store.claim_one(worker)
    for fake in (
        msgspec.structs.replace(task, attempt=0),
        msgspec.structs.replace(task, attempt=2),
        msgspec.structs.replace(task, worker_id=stranger),
        msgspec.structs.replace(task, worker_id="nobody"),
    ):
        assert await store.settle(fake) is Verdict.STALE
    assert await store.settle(msgspec.structs.replace(task, task_id=new_id())) is Verdict.MISSING
    assert await store.state(task_id) is State.EXECUTING
    assert await store.settle(task) is Verdict.APPLIED


async def test_a_task_that_waits_cannot_be_settled(store: World) -> None:
    await store.submit()
    worker = await store.worker()
    task = await store.claim_one(worker)
    await store.settle(task, Released())
    assert await store.settle(task) is Verdict.STALE


@pytest.mark.local
async def test_a_mixed_batch_has_a_verdict_for_each(store: World) -> None:
    ids = await store.submit_all([new_task("work", {"n": n}) for n in range(8)])
    worker = await store.worker()
    tasks = await store.claim(worker, 8)
    outcomes: list[Outcome] = [*OUTCOMES, Completed(b"1")]
    batch = [settlement(*pair) for pair in zip(tasks, outcomes, strict=True)]
    batch.insert(3, settlement(msgspec.structs.replace(tasks[0], task_id=new_id())))
    batch.insert(5, settlement(msgspec.structs.replace(tasks[7], attempt=9)))
    verdicts = verdicts_of(await store.run(store.ops.settle(batch)))
    expected = [Verdict.APPLIED] * 10
    expected[3], expected[5] = Verdict.MISSING, Verdict.STALE
    assert verdicts == expected
    states = [await store.state(task_id) for task_id in ids]
    assert states == [
        State.COMPLETED,
        State.RETRYING,
        State.FAILED,
        State.RETRYING,
        State.QUEUED,
        State.QUEUED,
        State.SCHEDULED,
        State.COMPLETED,
    ]


async def test_five_hundred_at_once(store: World) -> None:
    await store.submit_all([new_task("work") for _ in range(600)])
    worker = await store.worker()
    tasks = await store.claim(worker, 1_000)
    assert len(tasks) == 500
    batch = [settlement(task) for task in tasks]
    assert verdicts_of(await store.run(store.ops.settle(batch))) == [Verdict.APPLIED] * 500
    assert await store.census() == {State.QUEUED: 100, State.COMPLETED: 500}
    with pytest.raises(BatchTooLarge):
        await store.run(store.ops.settle([batch[0]] * 501))


async def test_an_empty_batch_is_nothing(store: World) -> None:
    assert verdicts_of(await store.run(store.ops.settle([]))) == []


async def test_many_reports_of_one_attempt_at_once(store: World) -> None:
    """Whoever reports first decides; every other outcome is refused."""
    for _ in range(5):
        await store.submit(max_retries=100)
        worker = await store.worker()
        task = await store.claim_one(worker)
        outcomes: list[Outcome] = [Completed(b"1"), Failed(BOOM), Released(), Snoozed(1)]
        backends = store.processes(4)
        batches = [
            backend.run(backend.ops.settle([settlement(task, outcome)]))
            for backend, outcome in zip(backends, outcomes, strict=True)
        ]
        verdicts = [settled.verdict for (settled,) in await asyncio.gather(*batches)]
        assert sorted(verdicts) == [Verdict.APPLIED] + [Verdict.STALE] * 3
        await store.run(store.ops.cancel([task.task_id]))


async def test_of_two_reports_in_one_batch_the_first_counts(store: World) -> None:
    worker = await store.worker()
    ids = await store.submit_all([new_task("t") for _ in range(2)])
    one, two = await store.claim(worker)
    settled = await store.run(
        store.ops.settle(
            [
                settlement(one, Completed(b"1")),
                settlement(two, Failed(TaskError("x"), after=100)),
                settlement(two, Completed(b"2")),
                settlement(two, Failed(TaskError("x"), after=100)),
            ]
        )
    )
    expected = [Verdict.APPLIED, Verdict.APPLIED, Verdict.STALE, Verdict.APPLIED]
    assert verdicts_of(settled) == expected
    assert [await store.state(each) for each in ids] == [State.COMPLETED, State.RETRYING]


@pytest.mark.local
async def test_the_first_and_the_last_runs_are_kept(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    runs = limits.FIRST_RUNS + limits.LAST_RUNS + 3
    for _ in range(runs - 1):
        assert await store.settle(await store.claim_one(worker), Released(), None)
    # Not all at once, so that the first step with too many is seen to drop one, too.
    kept = limits.FIRST_RUNS + limits.LAST_RUNS
    assert len((await store.task(task_id)).attempts) == kept
    assert await store.settle(await store.claim_one(worker), Failed(BOOM, after=0))
    task = await store.task(task_id)
    first = range(1, limits.FIRST_RUNS + 1)
    last = range(runs - limits.LAST_RUNS + 1, runs + 1)
    assert [each.number for each in task.attempts] == [*first, *last]
    assert task.attempts[-1].error is not None
    assert [each.attempt for each in task.trail] == list(last)
    await store.claim_one(worker)
    await store.run(store.ops.cancel([task_id]))
    task = await store.task(task_id)
    assert len(task.attempts) == kept
    assert (task.attempts[-1].number, task.attempts[-1].outcome) == (runs + 1, "cancelled")


@pytest.mark.local
async def test_the_newest_runs_keep_their_times(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    runs = limits.TRAIL_ENTRIES + 3
    for _ in range(runs):
        assert await store.settle(await store.claim_one(worker), Released(), None)
    task = await store.task(task_id)
    assert [each.attempt for each in task.trail] == list(range(4, runs + 1))
    await store.run(store.ops.cancel([task_id]))
    await store.run(store.ops.replay([task_id]))
    task = await store.task(task_id)
    assert len(task.trail) == limits.TRAIL_ENTRIES
    assert (task.trail[-1].state, task.trail[-1].version) == (State.CANCELLED, 2 * runs + 2)
