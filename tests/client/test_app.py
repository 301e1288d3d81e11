"""The application: defining, submitting, asking."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from fairlane import (
    Fairlane,
    IdempotencyConflict,
    ResultTimeout,
    RetryPolicy,
    State,
    StoreUnavailable,
    TaskFailed,
    Unique,
)
from fairlane.core.errors import (
    InvalidArguments,
    InvalidFilter,
    InvalidHandler,
    InvalidPriority,
    InvalidTaskId,
    InvalidTimeout,
    SchemaMissing,
)
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.why import NOBODY
from tests.fixtures.stores import World


def counted(app: Fairlane) -> Counter[str]:
    """How often the store is asked for what, from now on."""
    calls: Counter[str] = Counter()
    run = app.backend.run

    async def counting(op: Any) -> Any:
        calls[op.name] += 1
        return await run(op)

    app.backend.run = counting
    return calls


async def end(app: Fairlane, how: str = "complete") -> None:
    """What a worker would do with everything there is."""
    world = World(app.backend, app.url, {})
    worker_id = await world.worker(capacity=500)
    for task in await world.claim(worker_id, 500):
        error = TaskError("no luck", retriable=False)
        await world.settle(task, Completed(b"[1]") if how == "complete" else Failed(error))


async def test_concurrent_submissions_travel_together(app: Fairlane) -> None:
    @app.task
    async def work(n: int) -> None: ...

    await work.submit(n=0)
    calls = counted(app)
    handles = await asyncio.gather(*(work.submit(n=n) for n in range(2_500)))
    assert len({handle.task_id for handle in handles}) == 2_500
    assert calls["submit"] == 4, "the first of them alone, and what gathered meanwhile"
    page = await app.list(limit=1)
    assert page.tasks[0].payload == {"n": 2499}


async def test_one_bad_submission_among_good_ones_fails_alone(app: Fairlane) -> None:
    @app.task
    async def work(n: int) -> None: ...

    await work.options(idempotency_key="taken").submit(n=-1)
    calls = counted(app)
    keys = {77: "taken"}
    answers = await asyncio.gather(
        *(work.options(idempotency_key=keys.get(n, f"key-{n}")).submit(n=n) for n in range(200)),
        return_exceptions=True,
    )
    bad = [n for n, answer in enumerate(answers) if isinstance(answer, BaseException)]
    assert bad == [77]
    assert isinstance(answers[77], IdempotencyConflict)
    assert calls["submit"] < 20  # by halves, not one by one
    assert (await app.stats()).by_status[State.QUEUED] == 200


async def test_trouble_of_the_store_reaches_everyone_who_submits(app: Fairlane) -> None:
    @app.task
    async def work() -> None: ...

    await work.submit()
    run = app.backend.run

    async def away(op: Any) -> Any:
        raise StoreUnavailable("away")

    app.backend.run = away
    answers = await asyncio.gather(*(work.submit() for _ in range(3)), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["away"] * 3
    app.backend.run = run
    await work.submit()


def test_ordinary_code_submits_too(tmp_path: Path) -> None:
    app = Fairlane(f"sqlite:///{tmp_path / 'tasks.db'}")

    @app.task
    def work(n: int) -> None: ...

    handle = work.submit_sync(n=1)
    (task,) = app.run_sync(app.backend.ops.get([handle.task_id]))
    assert task is not None
    assert task.payload == b'{"n":1}'
    app.close()
    assert work.submit_sync(n=2).task_id != handle.task_id  # it opens again
    app.close()


def test_two_loops_in_two_threads_share_an_application(tmp_path: Path) -> None:
    app = Fairlane(f"sqlite:///{tmp_path / 'tasks.db'}")

    @app.task
    async def work(n: int) -> None: ...

    handles: list[Any] = []

    async def submit() -> None:
        handles.extend(await asyncio.gather(*(work.submit(n=n) for n in range(50))))

    threads = [threading.Thread(target=lambda: asyncio.run(submit())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({handle.task_id for handle in handles}) == 100
    app.close()


async def test_options_reach_the_task(app: Fairlane) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    @app.task(priority="high", queue="mail", timeout=30, tags={"team": "a"})
    async def work(n: int) -> None: ...

    other = work.options(
        priority="low",
        max_retries=9,
        timeout=None,
        run_at=tomorrow,
        expires_at=tomorrow + timedelta(days=1),
        required_capabilities={"gpu"},
        retry=RetryPolicy(base=7.0),
        trace_id="trace",
    )
    plain = await app.get((await work.submit(n=1)).task_id)
    special = await app.get((await other.submit(n=1)).task_id)
    assert plain is not None
    assert (plain.priority, plain.queue, plain.timeout_seconds, plain.status, plain.tags) == (
        8,
        "mail",
        30,
        State.QUEUED,
        {"team": "a"},
    )
    assert special is not None
    assert (special.priority, special.queue, special.timeout_seconds, special.status) == (
        2,
        "mail",
        None,
        State.SCHEDULED,
    )
    assert (special.max_retries, special.run_at, special.retry.base, special.trace_id) == (
        9,
        tomorrow,
        7.0,
        "trace",
    )


async def test_options_that_cannot_be_are_refused_where_they_are_given(app: Fairlane) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidHandler, match="no option colour"):
        work.options(colour="red")  # type: ignore[call-arg]
    with pytest.raises(InvalidPriority):
        app.task(name="other", priority="urgent")(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(InvalidTimeout):
        work.options(timeout=-1)
    with pytest.raises(InvalidHandler, match="isolation"):
        app.task(isolation="thread")  # type: ignore[call-overload]
    with pytest.raises(InvalidHandler, match="classes of exceptions"):
        app.task(retry_on="OSError")  # type: ignore[call-overload]
    with pytest.raises(InvalidHandler, match="Two tasks have the name work"):
        app.task(name="work")(lambda: None)
    with pytest.raises(InvalidHandler, match="cannot name a task type"):
        app.task(lambda: None)


async def test_uniqueness_and_idempotency_answer_with_the_earlier_task(app: Fairlane) -> None:
    @app.task(unique=Unique(arguments=("n",)))
    async def work(n: int, colour: str = "red") -> None: ...

    first, second = await work.submit(n=1), await work.submit(n=1, colour="blue")
    assert (second.task_id, first.known, second.known) == (first.task_id, False, True)
    assert not (await work.submit(n=2)).known


async def test_many_are_submitted_a_thousand_at_a_time(app: Fairlane) -> None:
    @app.task
    async def work(n: int) -> None: ...

    await app.stats()
    calls = counted(app)
    handles = await app.submit_many(work.prepare(n=n) for n in range(2_001))
    assert (len(handles), calls["submit"]) == (2_001, 3)
    task = await app.get(handles[2_000].task_id)
    assert task is not None
    assert task.payload == {"n": 2000}
    assert await app.submit_many([]) == []


async def test_wrong_arguments_are_refused_before_anything_is_sent(app: Fairlane) -> None:
    @app.task
    async def work(n: int) -> None: ...

    calls = counted(app)
    with pytest.raises(InvalidArguments):
        await work.submit(n="x")  # type: ignore[arg-type]
    assert not calls


async def test_a_task_is_still_a_function(app: Fairlane) -> None:
    @app.task
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    assert (double(4), double.__name__, double.__doc__) == (8, "double", "Twice as much.")
    assert repr(double) == "<task double>"


async def test_a_result_is_waited_for_by_one_poll(app: Fairlane) -> None:
    @app.task
    async def work(n: int) -> tuple[int, ...]:
        return (n,)

    handles = await app.submit_many([work.prepare(n=n) for n in range(20)])
    calls = counted(app)
    waiting = asyncio.gather(*(handle.result(30) for handle in handles))
    await asyncio.sleep(0)
    await end(app)
    assert await waiting == [(1,)] * 20
    polls = calls["get"]
    assert await handles[0].result(30) == (1,)
    assert calls["get"] == polls + 1
    assert await app.result(handles[0].task_id) == [1]


async def test_a_result_that_does_not_come_says_why(
    app: Fairlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def work() -> None: ...

    handle = await work.submit()
    with pytest.raises(ResultTimeout, match=rf"it goes on\. {NOBODY}$") as caught:
        await handle.result(timeout=0.01)
    assert caught.value.reasons[0] == NOBODY
    found = await app.why(handle.task_id)
    assert found is not None
    assert [each.message for each in found] == list(caught.value.reasons)
    with pytest.raises(ResultTimeout) as caught:
        await asyncio.to_thread(handle.result_sync, 0.01)
    assert caught.value.reasons[0] == NOBODY

    def away(task_id: str) -> NoReturn:
        raise StoreUnavailable

    monkeypatch.setattr(app, "why", away)
    monkeypatch.setattr(app, "why_sync", away)
    with pytest.raises(ResultTimeout, match=r"it goes on\.$") as caught:
        await handle.result(timeout=0.01)
    assert caught.value.reasons == ()
    with pytest.raises(ResultTimeout, match=r"it goes on\.$"):
        await asyncio.to_thread(handle.result_sync, 0.01)


async def test_a_result_may_take_too_long_fail_or_be_gone(app: Fairlane) -> None:
    @app.task
    async def work() -> None: ...

    handle = await work.submit()
    with pytest.raises(ResultTimeout, match=r"has not ended within 0\.01 s"):
        await handle.result(timeout=0.01)
    await end(app, "fail")
    with pytest.raises(TaskFailed, match="is failed: no luck"):
        await handle.result()
    await app.run(app.backend.ops.delete([handle.task_id]))
    with pytest.raises(TaskFailed, match="was deleted"):
        await handle.result()
    assert (await handle.status(), await handle.progress()) == (None, None)
    with pytest.raises(InvalidTaskId):
        await app.result("nonsense")


async def test_trouble_of_the_store_reaches_everyone_who_waits(app: Fairlane) -> None:
    @app.task
    async def work() -> None: ...

    handles = [await work.submit() for _ in range(2)]

    async def away(op: Any) -> Any:
        raise StoreUnavailable("away")

    app.backend.run = away
    answers = await asyncio.gather(*(each.result() for each in handles), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["away", "away"]


async def test_cancel_retry_list_and_stats(app: Fairlane) -> None:
    @app.task
    async def work(n: int) -> None: ...

    @app.task
    async def other() -> None: ...

    handle = await work.submit(n=1)
    await other.submit()
    answer = await handle.cancel()
    assert (answer.applied, answer.state) == (True, State.QUEUED)
    assert not (await app.cancel(handle.task_id)).applied
    page = await app.list(status="cancelled", type="work")
    assert [task.task_id for task in page.tasks] == [handle.task_id]
    with pytest.raises(InvalidFilter):
        await app.list(status="nonsense")
    replayed = await app.retry(handle.task_id, priority="critical")
    assert (replayed.applied, replayed.state) == (True, State.CANCELLED)
    task = await app.get(handle.task_id)
    assert task is not None
    assert (task.status, task.priority) == (State.QUEUED, 10)
    first = await app.list(limit=1)
    assert first.next_cursor is not None
    second = await app.list(limit=1, cursor=first.next_cursor)
    assert second.tasks[0].task_id == handle.task_id
    assert (await app.stats()).by_status[State.QUEUED] == 2


async def test_a_store_is_left_alone_where_it_must_not_be_migrated(tmp_path: Path) -> None:
    async with Fairlane(f"sqlite:///{tmp_path / 'tasks.db'}", migrate=False) as app:
        with pytest.raises(SchemaMissing):
            await app.stats()
