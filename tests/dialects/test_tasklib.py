"""004's programming interface: the calls and examples of the design document."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from fairlane.core.errors import InvalidFilter, InvalidHandler, InvalidPriority, InvalidRetries
from fairlane.dialects.tasklib import TaskLib
from fairlane.tasklib import (
    Config,
    Task,
    TaskExecutionError,
    TaskNotFound,
    TaskTimeoutError,
    TaskWorker,
    aclose,
    application,
    close,
    get_task,
    init,
    list_tasks,
    submit_task,
    task,
)
from tests.dialects.kit import settled


@task
def my_task(x: int) -> int:
    return x * 2


@task(max_retries=5, timeout_seconds=30)
def slow_task(path: str) -> dict[str, str]:
    return {"path": path}


@task(max_retries=0)
def broken_task() -> None:
    raise ValueError("broken")


@task
async def async_task(name: str, times: int = 1) -> str:
    await asyncio.sleep(0)
    return name * times


_hold = threading.Event()


@task
def held_task() -> None:
    _hold.wait(30)


@pytest.fixture
async def ready(url: str) -> AsyncIterator[None]:
    """Initialised on an empty store of every kind, with short delays."""
    init(Config(url, base_retry_delay_seconds=0.001))
    yield
    await aclose()


@asynccontextmanager
async def working(**options: Any) -> AsyncIterator[None]:
    """While a worker runs."""
    worker = TaskWorker(poll_interval=0.02, **options)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


def found(task_id: UUID) -> Task:
    task = get_task(task_id)
    assert task is not None
    return task


async def ended(task_id: UUID) -> Task:
    return await settled(lambda: found(task_id), lambda task: task.completed_at is not None)


async def test_the_example_of_submission(ready: None) -> None:
    task_id = await submit_task(
        my_task,
        delay_seconds=60,
        max_retries=5,
        timeout_seconds=30,
        priority=10,
        tags={"batch": "daily"},
        x=5,
    )
    assert isinstance(task_id, UUID)
    task = found(task_id)
    assert (task.id, task.name, task.args, task.kwargs) == (task_id, "my_task", {}, {"x": 5})
    assert (task.state, task.result, task.error) == ("pending", None, None)
    assert (task.retry_count, task.max_retries, task.next_retry_at) == (0, 5, None)
    assert (task.scheduled_at - task.created_at).total_seconds() == 60
    assert (task.started_at, task.completed_at) == (None, None)
    assert (task.worker_id, task.locked_until) == (None, None)
    assert (task.timeout_seconds, task.priority, task.tags) == (30, 10, {"batch": "daily"})


async def test_the_example_of_monitoring(ready: None) -> None:
    mine = [await submit_task(my_task, x=x) for x in range(3)]
    await submit_task(slow_task, path="a")
    tasks = list_tasks(state="pending", name="my_task", limit=100)
    assert [task.id for task in tasks] == mine[::-1]
    assert [task.id for task in list_tasks(name="my_task", limit=2)] == mine[:0:-1]
    assert len(list_tasks()) == 4
    assert list_tasks(state="failed") == list_tasks(name="other") == []


async def test_a_task_runs_and_its_result_is_a_value(ready: None) -> None:
    ids = [
        await submit_task(my_task, x=21),
        await submit_task(slow_task, path="a"),
        await submit_task(async_task, name="ab", times=2),
        await submit_task(async_task, name="ab"),
    ]
    async with working(concurrency=2):
        tasks = [await ended(task_id) for task_id in ids]
    assert [task.state for task in tasks] == ["completed"] * 4
    assert [task.result for task in tasks] == [
        {"value": 42},
        {"value": {"path": "a"}},
        {"value": "abab"},
        {"value": "ab"},
    ]
    assert {(task.worker_id, task.locked_until, task.error) for task in tasks} == {
        (None, None, None)
    }


async def test_defaults(ready: None) -> None:
    plain, own = (
        found(await submit_task(my_task, x=1)),
        found(await submit_task(slow_task, path="a")),
    )
    assert (plain.max_retries, plain.timeout_seconds, plain.priority) == (3, None, 5)
    assert (own.max_retries, own.timeout_seconds) == (5, 30)


async def test_a_failure_tells_its_traceback(ready: None) -> None:
    final = await submit_task(broken_task)
    again = await submit_task(broken_task, max_retries=2)
    async with working():
        first, second = await ended(final), await ended(again)
    assert (first.state, first.retry_count, first.next_retry_at) == ("failed", 1, None)
    assert first.error is not None
    assert "Traceback" in first.error
    assert "ValueError: broken" in first.error
    assert (second.state, second.retry_count) == ("failed", 3)


async def test_a_timeout_is_told_by_its_name(ready: None) -> None:
    _hold.clear()
    task_id = await submit_task(held_task, timeout_seconds=0.05, max_retries=0)
    async with working():
        task = await ended(task_id)
        _hold.set()
    assert task.state == "failed"
    assert task.error is not None
    assert task.error.startswith(f"{TaskTimeoutError.__name__}: ")


async def test_a_running_task_names_its_holder(url: str) -> None:
    init(Config(url, worker_id="mail-1", lock_timeout_seconds=100))
    _hold.clear()
    task_id = await submit_task(held_task)
    async with working():
        task = await settled(lambda: found(task_id), lambda task: task.state == "running")
        _hold.set()
    assert task.worker_id is not None
    assert task.worker_id.startswith("mail-1.")
    assert task.locked_until is not None
    assert (task.locked_until - task.created_at).total_seconds() >= 100
    await aclose()


async def test_it_begins_nothing_before_its_time(ready: None) -> None:
    later = await submit_task(my_task, delay_seconds=3600, x=1)
    now = await submit_task(my_task, x=2)
    async with working():
        await ended(now)
        assert found(later).state == "pending"


@pytest.mark.parametrize("kwargs", [{}, {"x": "five"}, {"y": 1}, {"x": 1, "z": 2}, {"x": object()}])
async def test_bad_arguments_are_refused(memory: None, kwargs: dict[str, Any]) -> None:
    with pytest.raises(TaskExecutionError, match="my_task"):
        await submit_task(my_task, **kwargs)
    assert list_tasks() == []


async def test_schedules_come_with_the_application(ready: None) -> None:
    app = application()
    twice = app.tasks["my_task"].prepare(x=21)
    await app.schedules.put("daily", twice, cron="@daily", tz="Europe/Berlin")
    app.every(hours=1, id="hourly", arguments={"name": "ab"})(app.tasks["async_task"])
    await app.run(app.backend.ops.shift_clock(25 * 3600))  # a day may have 25 hours
    await app.run(app.backend.ops.fire_due())
    daily = await app.schedules.get("daily")
    assert daily is not None
    assert daily.last_task_id is not None
    async with working():
        assert await app.result(daily.last_task_id, 30) == 42
        handle = await app.schedules.run("hourly")  # which the worker has declared by now
        assert await handle.result(30) == "ab"
    hourly = await app.schedules.get("hourly")
    assert hourly is not None
    assert hourly.owner == "tasklib"


@pytest.fixture
def memory() -> Iterator[None]:
    init(Config("sqlite://"))
    yield
    close()


async def test_what_is_no_task_is_not_found(memory: None) -> None:
    def plain() -> None: ...

    def my_task() -> None: ...

    for function in (plain, my_task):
        with pytest.raises(TaskNotFound, match="@task"):
            await submit_task(function)


async def test_other_terms_are_checked(memory: None) -> None:
    with pytest.raises(InvalidPriority):
        await submit_task(my_task, priority=11, x=1)
    with pytest.raises(InvalidFilter, match="pending, running, failed, completed"):
        list_tasks(state="waiting")
    assert get_task("0190a000-0000-7000-8000-000000000000") is None


def test_terms_that_make_no_sense_are_refused_at_once() -> None:
    with pytest.raises(InvalidRetries):
        Config("sqlite://", retry_backoff_multiplier=0.5)


async def test_without_init_it_says_what_to_do() -> None:
    close()
    for call in (lambda: get_task("x"), list_tasks, TaskWorker):
        with pytest.raises(RuntimeError, match=r"tasklib\.init\(Config\(database_url="):
            call()
    with pytest.raises(RuntimeError, match="init"):
        await submit_task(my_task, x=1)


def test_a_task_is_still_a_function() -> None:
    assert my_task(4) == 8
    assert slow_task("a") == {"path": "a"}


def test_the_defaults_of_004() -> None:
    config = Config("sqlite://")
    assert (config.max_retries, config.lock_timeout_seconds) == (3, 600)
    assert (config.default_task_timeout_seconds, config.worker_id) == (None, None)
    assert [config.retry.delay(failures, 0.9) for failures in range(3)] == [5, 10, 20]


async def test_tasks_may_be_defined_after_init(memory: None) -> None:
    @task
    def latecomer(x: int) -> int:
        return x

    assert found(await submit_task(latecomer, x=1)).name == "latecomer"


def test_two_tasks_do_not_share_a_name() -> None:
    lib = TaskLib()

    def define() -> None:
        @lib.task
        def same() -> None: ...

    @lib.task
    def other() -> None: ...

    define()
    define()  # the same one again: its module was loaded anew

    def same() -> None: ...

    with pytest.raises(InvalidHandler, match="same"):
        lib.task(same)


async def test_it_may_be_initialised_again() -> None:
    init(Config("sqlite://"))
    await submit_task(my_task, x=1)
    init(Config("sqlite://", max_retries=7))
    assert list_tasks() == []
    assert found(await submit_task(my_task, x=1)).max_retries == 7
    await aclose()
    close()
