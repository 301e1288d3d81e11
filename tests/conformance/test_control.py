"""Cancelling and replaying."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from fairlane.core.errors import BatchTooLarge, InvalidTaskId
from fairlane.core.ids import new_id
from fairlane.core.model import Cancelled, Replayed, Report, Start, TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.states import State
from tests.fixtures.counters import depths
from tests.fixtures.stores import World, settlement

FATAL = Failed(TaskError("no", retriable=False))


async def test_cancel_a_waiting_task(store: World) -> None:
    worker = await store.worker()
    retrying = await store.submit()
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=100))
    queued = await store.submit()
    scheduled = await store.submit(delay_seconds=10)
    ids = [queued, scheduled, retrying]
    states = [State.QUEUED, State.SCHEDULED, State.RETRYING]
    assert await store.run(store.ops.cancel(ids)) == [
        Cancelled(task_id, True, state)  # noqa: FBT003
        for task_id, state in zip(ids, states, strict=True)
    ]
    await store.advance(1_000)
    assert await store.claim(worker) == []
    for task_id in ids:
        task = await store.task(task_id)
        assert task.status is State.CANCELLED
        assert task.completed_at is not None
    assert await store.census() == {State.CANCELLED: 3}
    assert await store.depth() == 0


async def test_cancel_a_running_task(store: World) -> None:
    task_id = await store.submit()
    worker = await store.worker()
    task = await store.claim_one(worker)
    (answer,) = await store.run(store.ops.cancel([task_id]))
    assert answer == Cancelled(task_id, True, State.EXECUTING, worker)  # noqa: FBT003
    assert await store.settle(task, Completed(b"1")) is Verdict.STALE
    cancelled = await store.task(task_id)
    assert (cancelled.status, cancelled.result) == (State.CANCELLED, None)
    assert [run.outcome for run in cancelled.attempts] == ["cancelled"]


async def test_cancel_what_has_ended_or_never_was(store: World) -> None:
    done = await store.submit()
    await store.claim_and_settle(await store.worker())
    missing = new_id()
    assert await store.run(store.ops.cancel([done, missing])) == [
        Cancelled(done, False, State.COMPLETED),  # noqa: FBT003
        Cancelled(missing, False, None),  # noqa: FBT003
    ]
    cancelled = await store.submit()
    await store.run(store.ops.cancel([cancelled]))
    (again,) = await store.run(store.ops.cancel([cancelled]))
    assert again == Cancelled(cancelled, False, State.CANCELLED)  # noqa: FBT003


async def test_replay_what_has_failed(store: World) -> None:
    task_id = await store.submit(max_retries=0)
    worker = await store.worker()
    await store.claim_and_settle(worker, Failed(TaskError("x")))
    assert await store.state(task_id) is State.DEAD_LETTER
    (answer,) = await store.run(store.ops.replay([task_id]))
    assert answer == Replayed(task_id, True, State.DEAD_LETTER)  # noqa: FBT003
    task = await store.task(task_id)
    assert (task.status, task.retry_count, task.attempt) == (State.QUEUED, 0, 1)
    assert (task.completed_at, task.error, task.result) == (None, None, None)
    assert task.ready_at == task.updated_at
    again = await store.claim_one(worker)
    assert again.attempt == 2
    await store.settle(again)
    done = await store.task(task_id)
    assert done.status is State.COMPLETED
    assert [run.outcome for run in done.attempts] == ["failed", "completed"]


async def test_replay_keeps_the_count_when_told_so(store: World) -> None:
    task_id = await store.submit()
    await store.claim_and_settle(await store.worker(), FATAL)
    await store.run(store.ops.replay([task_id], reset_retry_count=False))
    assert (await store.task(task_id)).retry_count == 1


async def test_replay_at_another_priority(store: World) -> None:
    low = await store.submit(priority="low")
    await store.submit(priority="medium")
    await store.run(store.ops.cancel([low]))
    await store.run(store.ops.replay([low], level=10))
    assert (await store.task(low)).priority == 10
    assert await store.run(depths(store.ops)) == {("default", 10): 1, ("default", 5): 1}
    assert (await store.claim_one(await store.worker())).task_id == low
    assert await store.census() == {State.QUEUED: 1, State.EXECUTING: 1}


async def test_run_now_what_waits_for_its_time(store: World) -> None:
    worker = await store.worker()
    retrying = await store.submit()
    await store.claim_and_settle(worker, Failed(TaskError("x"), after=100))
    scheduled = await store.submit(delay_seconds=100)
    answers = await store.run(store.ops.replay([retrying, scheduled]))
    assert [answer.state for answer in answers] == [State.RETRYING, State.SCHEDULED]
    assert [task.task_id for task in await store.claim(worker)] == [retrying, scheduled]
    assert (await store.ask(worker)).next_due_in is None


async def test_there_is_nothing_to_replay_in_other_states(store: World) -> None:
    worker = await store.worker()
    done = await store.submit()
    await store.claim_and_settle(worker)
    running = await store.submit()
    await store.claim_one(worker)
    queued = await store.submit()
    missing = new_id()
    before = await store.census()
    assert await store.run(store.ops.replay([done, running, queued, missing])) == [
        Replayed(done, False, State.COMPLETED),  # noqa: FBT003
        Replayed(running, False, State.EXECUTING),  # noqa: FBT003
        Replayed(queued, False, State.QUEUED),  # noqa: FBT003
        Replayed(missing, False, None),  # noqa: FBT003
    ]
    assert await store.census() == before


async def test_a_replayed_task_does_not_expire_again(store: World) -> None:
    task_id = await store.submit(expires_at=datetime.now(UTC) + timedelta(seconds=10))
    worker = await store.worker()
    await store.advance(20)
    assert await store.claim(worker) == []
    await store.run(store.ops.replay([task_id]))
    assert (await store.task(task_id)).expires_at is None
    assert (await store.claim_one(worker)).task_id == task_id


async def test_the_attempt_never_starts_over(store: World) -> None:
    """It is the fence: a replay resets the retries, never the attempt."""
    task_id = await store.submit()
    worker = await store.worker()
    for attempt in range(1, 6):
        task = await store.claim_one(worker)
        assert task.attempt == attempt
        await store.settle(task, FATAL)
        assert await store.settle(task, Completed(b"1")) is Verdict.STALE
        await store.run(store.ops.replay([task_id]))


async def test_get_what_is_not_there(store: World) -> None:
    here = await store.submit()
    missing = new_id()
    found = await store.run(store.ops.get([missing, here, missing]))
    assert [task and task.task_id for task in found] == [None, here, None]
    assert await store.run(store.ops.get([])) == []


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nonsense",
        "'; DROP TABLE content",
        "{}",
        "01A1DE6C-D570-70DA-87C5-3F97787351F5",
        "z" * 36,
    ],
)
async def test_what_is_no_id_is_refused_and_changes_nothing(store: World, bad: str) -> None:
    await store.submit()
    worker = await store.worker()
    task = await store.claim_one(worker)
    fake = msgspec.structs.replace(task, task_id=bad)
    for op in (
        store.ops.get([task.task_id, bad]),
        store.ops.cancel([task.task_id, bad]),
        store.ops.replay([task.task_id, bad]),
        store.ops.settle([settlement(task), settlement(fake)]),
        store.ops.start(worker, [Start(task.task_id, 1), Start(bad, 1)]),
        store.ops.progress(worker, [Report(task.task_id, 1), Report(bad, 1)]),
    ):
        with pytest.raises(InvalidTaskId, match="36-character"):
            await store.run(op)
    held = await store.task(task.task_id)
    assert (held.status, held.started_at, held.progress) == (State.EXECUTING, None, None)


async def test_batches_are_bounded(store: World) -> None:
    ids = [new_id()] * 1_001
    for op in (
        store.ops.get(ids),
        store.ops.cancel(ids[:501]),
        store.ops.replay(ids[:501]),
        store.ops.start("w", [Start(task_id, 1) for task_id in ids[:501]]),
    ):
        with pytest.raises(BatchTooLarge):
            await store.run(op)


async def test_replay_what_should_have_expired(store: World) -> None:
    """Nobody had noticed yet that its time was over: from now on it has none."""
    soon = datetime.now(UTC) + timedelta(seconds=1_000)
    task_id = await store.submit(delay_seconds=500, expires_at=soon)
    await store.advance(2_000)
    await store.run(store.ops.replay([task_id]))
    assert (await store.task(task_id)).expires_at is None
    assert (await store.claim_one(await store.worker())).task_id == task_id


async def test_a_completed_task_has_no_error(store: World) -> None:
    """Whatever happened to it before: also a run that its worker never began."""
    task_id = await store.submit()
    await store.claim_one(await store.worker(lease=10))
    await store.advance(11)
    await store.reap()
    assert (await store.task(task_id)).error is not None
    await store.claim_and_settle(await store.worker(), Completed(b"1"))
    done = await store.task(task_id)
    assert (done.status, done.error) == (State.COMPLETED, None)
    assert [run.outcome for run in done.attempts] == ["returned", "completed"]


async def test_a_cancelled_task_has_no_error(store: World) -> None:
    """It did not fail in the end; how its runs failed is told by its attempts."""
    worker = await store.worker()
    task_id = await store.submit()
    await store.claim_and_settle(worker, Failed(TaskError("x", "E"), after=100))
    await store.run(store.ops.cancel([task_id]))
    task = await store.task(task_id)
    assert (task.status, task.error) == (State.CANCELLED, None)
    assert [run.error and run.error.code for run in task.attempts] == ["E"]
