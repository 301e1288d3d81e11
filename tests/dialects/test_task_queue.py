"""001's task queue as an object, on every store."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlane.core.encryption import Encryption
from fairlane.core.errors import EncryptionRequired, InvalidRetries, InvalidStoreURL, InvalidWorker
from fairlane.runtime.outcomes import Fail
from fairlane.tq import Task, TaskQueue
from fairlane.worker.worker import Worker
from tests.dialects.kit import Calls, settled


@pytest.fixture
async def queue(url: str) -> AsyncIterator[TaskQueue]:
    """A queue without a worker."""
    queue = TaskQueue(url=url, enable_worker=False)
    yield queue
    await queue.stop()


def found(queue: TaskQueue, task_id: str) -> Task:
    task = queue.get_task(task_id)
    assert task is not None
    return task


async def test_the_example_of_section_10_1(queue: TaskQueue) -> None:
    attempts = 0

    async def handler(_: object) -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise RuntimeError("Fail")

    queue.register_handler("test", handler)
    task_id = queue.enqueue("test", {}, max_attempts=3)

    await queue.process_batch()  # attempt 1: fails
    assert found(queue, task_id).status == "failed"

    await queue.process_batch()  # attempt 2: fails
    assert found(queue, task_id).attempts == 2

    await queue.process_batch()  # attempt 3: success
    assert found(queue, task_id).status == "completed"
    assert attempts == 3
    assert found(queue, task_id).attempts == 3
    assert found(queue, task_id).error is None


async def test_nothing_runs_whose_result_could_not_be_stored(queue: TaskQueue) -> None:
    calls = Calls()
    queue.register_handler("test", calls)
    task_id = queue.enqueue("test", {})
    app = queue._app
    app.run_sync(app.backend.ops.set_encryption(Encryption.REQUIRED))
    with pytest.raises(EncryptionRequired):
        await queue.process_batch()
    assert (calls.given, found(queue, task_id).status) == ([], "pending")


async def test_the_examples_of_section_8(tmp_path: Path) -> None:
    done = Calls()
    queue = TaskQueue(
        db=tmp_path / "database.sqlite",
        poll_interval=2000,
        batch_size=5,
        enable_worker=True,
        task_timeout=300,
    )

    async def send_email(payload: dict[str, str]) -> dict[str, str]:
        done(payload)
        return {"messageId": payload["to"]}

    queue.register_handler("send_email", send_email)
    task_id = queue.enqueue(
        "send_email",
        {"to": "user@example.com", "subject": "Welcome", "body": "Hello!"},
        priority=3,
        max_attempts=5,
    )
    await done.reach(1)
    task = await settled(lambda: found(queue, task_id), lambda task: task.status == "completed")
    assert task.result == {"messageId": "user@example.com"}
    assert (task.attempts, task.max_attempts) == (1, 5)
    await queue.stop()


async def test_a_new_task(queue: TaskQueue) -> None:
    task = found(queue, queue.enqueue("work", {"a": 1}))
    assert (task.type, task.payload, task.status) == ("work", {"a": 1}, "pending")
    assert (task.attempts, task.max_attempts) == (0, 3)
    assert (task.result, task.error, task.run_after) == (None, None, None)
    assert (task.last_attempt_at, task.next_retry_at, task.completed_at) == (None, None, None)
    assert task.created_at == task.updated_at
    assert msgspec.to_builtins(task)["maxAttempts"] == 3


async def test_a_failure_that_is_tried_again_and_one_that_is_not(queue: TaskQueue) -> None:
    def fails(_: object) -> None:
        raise ValueError("no such page")

    queue.register_handler("work", fails)
    task_id = queue.enqueue("work", None, max_attempts=2)
    await queue.process_batch()
    first = found(queue, task_id)
    assert (first.status, first.attempts, first.error) == ("failed", 1, "no such page")
    assert first.completed_at is None
    assert first.last_attempt_at is not None
    assert first.next_retry_at is not None
    assert 8 <= (first.next_retry_at - first.updated_at).total_seconds() <= 12
    await queue.process_batch()
    last = found(queue, task_id)
    assert (last.status, last.attempts, last.next_retry_at) == ("failed", 2, None)
    assert last.completed_at is not None
    assert await queue.process_batch() == 0


async def test_what_is_declared_final_is_final(queue: TaskQueue) -> None:
    def fails(_: object) -> None:
        raise Fail("gone")

    queue.register_handler("work", fails)
    task_id = queue.enqueue("work", {})
    await queue.process_batch()
    task = found(queue, task_id)
    assert (task.status, task.attempts, task.completed_at is None) == ("failed", 1, False)


async def test_the_result_is_any_json(queue: TaskQueue) -> None:
    queue.register_handler("work", lambda payload: payload)
    task_id = queue.enqueue("work", [1, "two", None])
    assert await queue.process_batch() == 1
    task = found(queue, task_id)
    assert task.result == task.payload == [1, "two", None]


async def test_a_schedule(queue: TaskQueue) -> None:
    done, app = Calls(), queue.application()
    queue.register_handler("work", done)
    app.schedules.put_sync("hourly", app.tasks["work"].prepare(n=1), every=3600)
    app.run_sync(app.backend.ops.shift_clock(3600))
    app.run_sync(app.backend.ops.fire_due())
    assert await queue.process_batch() == 1
    assert done.given == [{"n": 1}]


async def test_a_batch_has_a_size_and_an_order(url: str) -> None:
    queue = TaskQueue(url=url, batch_size=3, enable_worker=False)
    done = Calls()
    queue.register_handler("work", done)
    for number in range(5):
        queue.enqueue("work", number)
    assert await queue.process_batch() == 3
    assert done.given == [0, 1, 2]
    assert await queue.process_batch() == 2
    assert await queue.process_batch() == 0
    assert done.given == [0, 1, 2, 3, 4]
    await queue.stop()


async def test_what_nobody_handles_waits(queue: TaskQueue) -> None:
    task_id = queue.enqueue("unknown", {})
    assert await queue.process_batch() == 0
    queue.register_handler("work", lambda _: None)
    assert await queue.process_batch() == 0
    assert found(queue, task_id).status == "pending"


async def test_run_after(queue: TaskQueue) -> None:
    queue.register_handler("work", lambda _: None)
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    waiting = queue.enqueue("work", {}, run_after=later)
    queue.enqueue("work", {}, run_after=datetime(2025, 1, 15, 10, tzinfo=UTC))
    assert await queue.process_batch() == 1
    task = found(queue, waiting)
    assert (task.status, task.run_after) == ("pending", later)


async def test_a_task_that_takes_too_long(url: str) -> None:
    queue = TaskQueue(url=url, enable_worker=False, task_timeout=0.01)
    done = threading.Event()
    queue.register_handler("work", lambda _: done.wait(30))
    task_id = queue.enqueue("work", {})
    assert await queue.process_batch() == 1
    done.set()
    task = found(queue, task_id)
    assert (task.status, task.attempts) == ("failed", 1)
    assert task.error is not None
    assert "time limit" in task.error
    await queue.stop()


async def test_an_async_task_that_takes_too_long(url: str) -> None:
    queue = TaskQueue(url=url, enable_worker=False)
    queue.type("work").set_timeout(0.01)

    async def forever(_: object) -> None:
        await asyncio.Event().wait()

    queue.register_handler("work", forever)
    task_id = queue.enqueue("work", {})
    await queue.process_batch()
    assert "time limit" in (found(queue, task_id).error or "")
    await queue.stop()


async def test_a_batch_that_is_cancelled_takes_its_handler_along() -> None:
    queue = TaskQueue(db=":memory:", enable_worker=False)
    begun, cancelled = Calls(), Calls()

    async def forever(payload: Any) -> None:
        begun(payload)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled(payload)
            raise

    queue.register_handler("work", forever)
    queue.enqueue("work", 1)
    batch = asyncio.create_task(queue.process_batch())
    await begun.reach(1)
    batch.cancel()
    await cancelled.reach(1)
    await queue.stop()


async def test_a_worker_that_gives_up_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def gives_up(_: Worker, *, signals: bool) -> None:
        raise InvalidWorker("no such luck")

    monkeypatch.setattr(Worker, "run", gives_up)
    queue = TaskQueue(db=":memory:")
    with caplog.at_level(logging.ERROR, "fairlane.tq"):
        queue.register_handler("work", lambda _: None)
        await queue.stop()
    assert "The worker for work gave up: no such luck" in caplog.text


async def test_pause_and_rate_hold_for_batches(queue: TaskQueue) -> None:
    queue.register_handler("work", lambda _: None)
    for _ in range(3):
        queue.enqueue("work", {})
    queue.pause()
    assert await queue.process_batch() == 0
    queue.resume()
    queue.type("work").set_rate_limit(0.001)
    assert await queue.process_batch() == 1
    queue.type("work").set_rate_limit(0)
    assert await queue.process_batch() == 2


async def test_a_queue_with_a_worker_leaves_retries_to_their_time(url: str) -> None:
    queue = TaskQueue(url=url)
    calls = Calls()

    def fails(payload: Any) -> None:
        calls(payload)
        raise ValueError

    queue.register_handler("work", fails)
    task_id = queue.enqueue("work", 1)
    await settled(lambda: found(queue, task_id), lambda task: task.status == "failed")
    assert await queue.process_batch() == 0
    assert calls.given == [1]
    await queue.stop()


async def test_stats(queue: TaskQueue) -> None:
    def fails(_: object) -> None:
        raise ValueError

    queue.register_handler("good", lambda _: None)
    queue.register_handler("bad", fails)
    for type in ("good", "good", "bad"):
        queue.enqueue(type, {})
    await queue.process_batch()
    queue.enqueue("good", {})
    stats = queue.stats()
    assert (stats.pending, stats.processing, stats.completed, stats.failed) == (1, 0, 2, 1)
    assert stats.by_type["good"]["completed"] == 2
    assert stats.by_type["bad"]["failed"] == 1
    assert stats.processing_rate == 2
    assert set(msgspec.to_builtins(stats)) >= {"pending", "byType", "processingRate"}


async def test_a_queue_without_a_worker_does_not_run(queue: TaskQueue) -> None:
    assert not queue.is_running()
    queue.register_handler("work", lambda _: None)
    queue.enqueue("work", {})
    queue.unregister_handler("work")
    assert await queue.process_batch() == 0
    queue.register_handler("work", lambda _: None)
    assert await queue.process_batch() == 1


async def test_a_task_that_is_not_there(queue: TaskQueue) -> None:
    assert queue.get_task("0190a000-0000-7000-8000-000000000000") is None


@pytest.mark.parametrize("attempts", [0, -1, 1002, "3"])
async def test_attempts_are_checked(attempts: Any) -> None:
    queue = TaskQueue(db=":memory:")
    with pytest.raises(InvalidRetries, match="max_attempts"):
        queue.enqueue("work", {}, max_attempts=attempts)
    await queue.stop()


async def test_worker_counts_are_checked() -> None:
    queue = TaskQueue(db=":memory:")
    with pytest.raises(InvalidWorker):
        queue.type("work").set_worker_count(0)
    await queue.stop()


@pytest.mark.parametrize("where", [{}, {"db": "a.db", "url": "sqlite://"}, {"url": "mysql://"}])
def test_where_tasks_are_kept_is_checked(where: dict[str, str]) -> None:
    with pytest.raises(InvalidStoreURL):
        TaskQueue(**where)  # type: ignore[arg-type]


async def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    file = tmp_path / "50% of #1?.db"
    queue = TaskQueue(db=file)
    queue.enqueue("work", {})
    await queue.stop()
    assert file.exists()


async def test_a_stopped_queue_can_be_used_again(tmp_path: Path) -> None:
    queue = TaskQueue(db=tmp_path / "tasks.db", enable_worker=False)
    task_id = queue.enqueue("work", {})
    await queue.stop()
    assert found(queue, task_id).status == "pending"
    await queue.stop()
