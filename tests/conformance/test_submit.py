"""Submission: stored as sent, all or none, one task per idempotency key."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from fairlane.core.errors import (
    BatchTooLarge,
    IdempotencyConflict,
    InvalidTaskId,
    TaskIdConflict,
    TooManyLanes,
)
from fairlane.core.ids import new_id
from fairlane.core.inputs import Input
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.fixtures.stores import World


async def test_a_task_is_stored_as_it_was_sent(store: World) -> None:
    expiry = datetime.now(UTC) + timedelta(days=1)
    task_id = await store.submit(
        "mail.send",
        {"to": "Zoë", "nested": {"list": [1, 2.5, None, True, "\x00", "🚀"]}},
        queue="outgoing",
        priority="high",
        required_capabilities=["smtp", "gpu"],
        max_retries=7,
        timeout_seconds=12.5,
        expires_at=expiry,
        tags={"team": "blue"},
        trace_id="abc123",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        retry_policy=RetryPolicy(5, 3, 60, 0),
        idempotency_key="once ☂",
    )
    task = await store.task(task_id)
    assert task.type == "mail.send"
    assert task.queue == "outgoing"
    assert task.payload == (
        '{"to":"Zoë","nested":{"list":[1,2.5,null,true,"\\u0000","🚀"]}}'.encode()
    )
    assert task.priority == task.effective_priority == 8
    assert task.status is State.QUEUED
    assert task.required_capabilities == ("gpu", "smtp")
    assert (task.max_retries, task.timeout_seconds) == (7, 12.5)
    assert task.expires_at == expiry
    assert task.tags == {"team": "blue"}
    assert task.trace_id == "abc123"
    assert task.traceparent == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert task.retry == RetryPolicy(5, 3, 60, 0)
    assert task.idempotency_key == "once ☂"
    assert (task.attempt, task.retry_count, task.returns, task.version) == (0, 0, 0, 1)
    assert task.created_at == task.run_at == task.ready_at == task.updated_at
    assert (task.started_at, task.completed_at, task.claimed_at, task.next_retry_at) == (None,) * 4
    assert (task.assigned_worker_id, task.result, task.error, task.progress) == (None,) * 4
    assert task.attempts == ()


async def test_defaults(store: World) -> None:
    task = await store.task(await store.submit("plain"))
    assert (task.queue, task.priority, task.payload) == ("default", 5, b"{}")
    assert (task.max_retries, task.timeout_seconds) == (3, 600)
    assert task.trace_id == task.task_id.replace("-", "")
    assert (task.tags, task.traceparent, task.idempotency_key) == ({}, None, None)
    unlimited = await store.task(await store.submit("plain", timeout_seconds=None))
    assert unlimited.timeout_seconds is None


async def test_bytes_are_stored_to_the_letter(store: World) -> None:
    raw = b'{ "b" : 1.0,  "a":\t0.1000, "a": 12345678901234567890123, "\\u00e9": "\\/" }'
    assert (await store.task(await store.submit("raw", raw))).payload == raw


async def test_a_payload_of_the_largest_size(store: World) -> None:
    payload = {"data": "x" * (256 * 1024 - 11)}
    task = await store.task(await store.submit("large", payload))
    assert len(task.payload) == 256 * 1024


async def test_a_thousand_tasks_are_one_batch(store: World) -> None:
    ids = await store.submit_all([new_task("bulk", {"n": n}) for n in range(1_000)])
    assert len(set(ids)) == 1_000
    tasks = await store.run(store.ops.get(ids))
    assert [task.payload for task in tasks if task] == [b'{"n":%d}' % n for n in range(1_000)]
    assert await store.depth() == 1_000


async def test_more_than_a_thousand_are_refused(store: World) -> None:
    with pytest.raises(BatchTooLarge):
        await store.submit_all([new_task("bulk") for _ in range(1_001)])
    assert await store.census() == {}


async def test_an_empty_batch_is_nothing(store: World) -> None:
    assert await store.submit_all([]) == []


async def test_a_delayed_task_is_scheduled(store: World) -> None:
    task = await store.task(await store.submit(delay_seconds=60))
    assert task.status is State.SCHEDULED
    assert task.run_at - task.created_at == timedelta(seconds=60)
    assert task.ready_at == task.run_at


async def test_run_at_in_the_past_is_due_now(store: World) -> None:
    past = datetime(1970, 1, 2, tzinfo=UTC)
    task = await store.task(await store.submit(run_at=past))
    assert task.status is State.QUEUED
    assert task.run_at == past
    assert task.ready_at == task.created_at


async def test_run_at_in_the_far_future(store: World) -> None:
    future = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    task = await store.task(await store.submit(run_at=future))
    assert (task.status, task.run_at) == (State.SCHEDULED, future)


async def test_the_same_submission_again_is_the_same_task(store: World) -> None:
    """A client that did not hear the answer asks again, also when the task has long ended."""
    task = new_task("work", {"n": 1})
    (first,) = await store.run(store.ops.submit([task]))
    (again,) = await store.run(store.ops.submit([task]))
    assert (again.task_id, again.state, again.known) == (task.task_id, State.QUEUED, True)
    await store.claim_and_settle(await store.worker())
    (later,) = await store.run(store.ops.submit([task, new_task("other")][:1]))
    assert (later.task_id, later.state, later.known) == (task.task_id, State.COMPLETED, True)
    assert first.created_at == later.created_at
    assert await store.census() == {State.COMPLETED: 1}


@pytest.mark.parametrize(
    ("type", "payload"), [("work", {"n": 2}), ("work", {}), ("other", {"n": 1, "m": 2})]
)
async def test_an_id_of_another_task_is_refused(
    store: World, type: str, payload: dict[str, int]
) -> None:
    task_id = await store.submit("work", {"n": 1, "m": 2})
    other = new_task(type, payload, task_id=task_id)
    for batch in ([other], [new_task("work"), other]):
        with pytest.raises(TaskIdConflict):
            await store.submit_all(batch)
    await store.claim_and_settle(await store.worker())
    with pytest.raises(TaskIdConflict):
        await store.submit_all([other])
    assert await store.census() == {State.COMPLETED: 1}


async def test_an_id_of_a_task_with_other_inputs_is_refused(store: World) -> None:
    first, second = await store.submit(), await store.submit()
    parents = [first, second]
    task = new_task("work", depends_on=parents, inputs={"got": Input((0,))})
    await store.submit_all([task])
    assert await store.submit_all([task]) == [task.task_id]
    for inputs in ({"got": Input((1,))}, {"other": Input((0,))}, None):
        other = new_task("work", task_id=task.task_id, depends_on=parents, inputs=inputs)
        with pytest.raises(TaskIdConflict):
            await store.submit_all([other])


async def test_an_id_with_the_same_payload_is_the_same_task(store: World) -> None:
    task_id = await store.submit("work", {"n": 1, "m": 2})
    same = new_task("work", b'{"m": 2,  "n": 1}', task_id=task_id, priority="high")
    accepted = await store.run(store.ops.submit([same, new_task("work")]))
    assert [answer.known for answer in accepted] == [True, False]
    assert accepted[0].task_id == task_id
    assert await store.census() == {State.QUEUED: 2}


async def test_an_id_twice_in_a_batch_is_refused(store: World) -> None:
    task_id = new_id()
    with pytest.raises(InvalidTaskId):
        await store.submit_all([new_task("work", task_id=task_id) for _ in range(2)])
    assert await store.census() == {}


async def test_a_known_key_returns_the_earlier_task(store: World) -> None:
    (first,) = await store.run(
        store.ops.submit([new_task("w", {"a": 1, "b": 2}, idempotency_key="k")])
    )
    (again,) = await store.run(
        store.ops.submit([new_task("w", {"b": 2, "a": 1}, idempotency_key="k")])
    )
    assert (again.task_id, again.known, first.known) == (first.task_id, True, False)
    assert again.created_at == first.created_at
    assert await store.census() == {State.QUEUED: 1}


async def test_a_known_key_also_after_the_task_ended(store: World) -> None:
    task_id = await store.submit(idempotency_key="k")
    await store.claim_and_settle(await store.worker())
    (again,) = await store.run(store.ops.submit([new_task("work", idempotency_key="k")]))
    assert (again.task_id, again.state, again.known) == (task_id, State.COMPLETED, True)


@pytest.mark.parametrize(("type", "payload"), [("other", {"n": 1}), ("work", {"n": 2})])
async def test_a_key_with_another_request_is_refused(
    store: World, type: str, payload: dict[str, int]
) -> None:
    await store.submit("work", {"n": 1}, idempotency_key="k")
    bystander = new_task("work", {"n": 3})
    with pytest.raises(IdempotencyConflict):
        await store.submit_all([bystander, new_task(type, payload, idempotency_key="k")])
    assert await store.census() == {State.QUEUED: 1}
    assert await store.run(store.ops.get([bystander.task_id])) == [None]


async def test_a_key_twice_in_a_batch(store: World) -> None:
    tasks = [new_task("work", {"n": 1}, idempotency_key="k") for _ in range(2)]
    first, second = await store.run(store.ops.submit(tasks))
    assert (first.task_id, first.known) == (tasks[0].task_id, False)
    assert (second.task_id, second.known) == (tasks[0].task_id, True)
    with pytest.raises(IdempotencyConflict):
        await store.submit_all(
            [new_task("work", {"n": n}, idempotency_key="other") for n in range(2)]
        )
    assert await store.census() == {State.QUEUED: 1}


async def test_a_key_is_free_again_after_a_day(store: World) -> None:
    first = await store.submit(idempotency_key="k")
    await store.advance(86_399)
    assert await store.submit(idempotency_key="k") == first
    await store.advance(2)
    assert await store.submit(idempotency_key="k") != first


async def test_fifty_submitters_of_one_key_make_one_task(store: World) -> None:
    backends = store.processes(4)
    tasks = [new_task("work", {"n": 1}, idempotency_key="k") for _ in range(50)]
    answers = await asyncio.gather(
        *(
            backend.run(backend.ops.submit([task]))
            for task, backend in zip(tasks, backends * 50, strict=False)
        )
    )
    assert len({answer.task_id for (answer,) in answers}) == 1
    assert sum(not answer.known for (answer,) in answers) == 1
    assert await store.census() == {State.QUEUED: 1}


async def test_lanes_are_bounded(store: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.core.limits.LANES", 3)
    await store.submit_all([new_task(f"type-{n}") for n in range(3)])
    with pytest.raises(TooManyLanes):
        await store.submit_all([new_task("type-0"), new_task("type-3")])
    await store.submit("type-2")
    assert await store.census() == {State.QUEUED: 4}


async def test_from_ordinary_code(store: World) -> None:
    """The same operations without an event loop."""

    def work() -> State:
        (accepted,) = store.backend.run_sync(store.ops.submit([new_task("work")]))
        (task,) = store.backend.run_sync(store.ops.get([accepted.task_id]))
        assert task is not None
        return task.status

    assert await asyncio.to_thread(work) is State.QUEUED
