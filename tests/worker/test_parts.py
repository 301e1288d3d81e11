"""The worker's parts by themselves: buffer, prefetch, fetcher, committer, threads."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec
import pytest

from fairlane.core.errors import BatchTooLarge, StoreUnavailable
from fairlane.core.model import Ask, Claimed, Grant, Report
from fairlane.core.outcomes import Completed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.worker.buffer import Buffer
from fairlane.worker.committer import Committer
from fairlane.worker.fetcher import Fetcher, Prefetch
from fairlane.worker.hanging import Hanging
from fairlane.worker.runners import Threads
from tests.fixtures.stores import World
from tests.worker.kit import PATIENCE


def claimed(n: int) -> Claimed:
    return Claimed(f"task-{n}", 1, "worker", "work", "default", 5, b"{}", 0, 3, 0, None, 0, 0)


async def test_a_buffer_serves_those_who_wait_in_turn() -> None:
    buffer = Buffer()
    takers = [asyncio.create_task(buffer.take()) for _ in range(3)]
    await asyncio.sleep(0)
    assert buffer.idle == 3
    buffer.put([claimed(1), claimed(2)])
    takers[0].cancel()  # whose turn it was: the next one has it
    results = await asyncio.gather(takers[1], takers[2])
    assert {task.task_id for task in results} == {"task-1", "task-2"}
    assert (len(buffer), buffer.idle) == (0, 0)


async def test_a_closed_buffer_hands_out_no_more() -> None:
    buffer = Buffer()
    taker = asyncio.create_task(buffer.take())
    await asyncio.sleep(0)
    buffer.close()
    buffer.put([claimed(1), claimed(2)])
    for _ in range(3):
        await asyncio.sleep(0)
    assert not taker.done()
    assert buffer.withdraw([("task-2", 2), ("task-1", 1)]) == [claimed(1)]
    assert buffer.empty() == [claimed(2)]
    taker.cancel()


def test_prefetch_is_about_what_was_finished_in_the_last_50_ms() -> None:
    now = 100.0
    prefetch = Prefetch(lambda: now)
    assert prefetch.ahead(0) == 0
    prefetch.finished(30)
    now += 0.02
    prefetch.finished(20)
    assert (prefetch.ahead(0), prefetch.ahead(15), prefetch.ahead(80)) == (50, 35, 0)
    now += 0.035
    assert prefetch.ahead(0) == 20
    now += 10
    assert prefetch.ahead(0) == 0
    prefetch.finished(100_000)
    assert prefetch.ahead(0) == 500


async def a_busy_fetcher(memory: World, buffer: Buffer) -> asyncio.Task[None]:
    """Of a worker that has just finished a lot; there are 600 tasks more."""
    await memory.submit_all([new_task("work") for _ in range(300)])
    await memory.submit_all([new_task("work") for _ in range(300)])
    prefetch = Prefetch(lambda: 0.0)
    prefetch.finished(10_000)
    like = Ask(await memory.worker(), "", 0)
    return asyncio.create_task(Fetcher(memory.backend, like, buffer, prefetch, 60.0).run())


async def test_the_next_tasks_are_claimed_before_these_run(memory: World) -> None:
    """And a claim takes half of what may be held, so that there is room for two."""
    asked: list[tuple[int, int]] = []
    claim = memory.ops.claim

    def noted(ask: Ask) -> Any:
        asked.append((ask.slots, ask.ahead))
        return claim(ask)

    memory.ops.claim = noted  # type: ignore[method-assign]
    buffer = Buffer()
    fetching = await a_busy_fetcher(memory, buffer)
    async with asyncio.timeout(PATIENCE):
        await buffer.take()
        assert asked == [(1, 249), (0, 250)]
        while len(buffer) < 499:  # noqa: ASYNC110 (it tells nobody)
            await asyncio.sleep(0)
    fetching.cancel()
    await asyncio.wait([fetching])


async def test_who_has_a_slot_again_asks_for_what_is_not_given_ahead(memory: World) -> None:
    """Without waiting for the next look, which is a minute away here."""
    await memory.run(memory.ops.limit("narrow", rate=1_000.0))
    await memory.submit_all([new_task("narrow") for _ in range(5)])
    prefetch = Prefetch(lambda: 0.0)
    prefetch.finished(10)
    like, buffer = Ask(await memory.worker(), "", 0), Buffer()
    fetching = asyncio.create_task(Fetcher(memory.backend, like, buffer, prefetch, 60.0).run())
    async with asyncio.timeout(PATIENCE):
        for _ in range(5):
            await buffer.take()
            await asyncio.sleep(0.05)  # a claim without a slot comes to nothing meanwhile
    fetching.cancel()
    await asyncio.wait([fetching])


async def test_what_a_given_up_claim_has_taken_is_run_and_nothing_twice(memory: World) -> None:
    worker_id = await memory.worker()
    ids = [await memory.submit() for _ in range(4)]
    await memory.ask(worker_id, 1, request_id="given-up", heard="")
    run, answers = memory.backend.run, list[Grant]()

    async def forgetful(op: Any) -> Any:
        """Once it gives again what it had given before, like a store that lost its last changes."""
        answer = await run(op)
        if isinstance(answer, Grant):
            answers.append(answer)
            if len(answers) == 3:
                return msgspec.structs.replace(answers[0], request_id="given-up")
        return answer

    memory.backend.run = forgetful
    buffer = Buffer()
    fetcher = Fetcher(memory.backend, Ask(worker_id, "", 0), buffer, Prefetch(), 60.0)
    fetching = asyncio.create_task(fetcher.run())
    async with asyncio.timeout(PATIENCE):
        taken = [(await buffer.take()).task_id for _ in ids]
    fetching.cancel()
    await asyncio.wait([fetching])
    assert taken == ids
    assert answers[0].request_id == "given-up"


async def test_a_claim_that_is_under_way_at_the_end_brings_what_it_was_given(memory: World) -> None:
    buffer = Buffer()
    fetching = await a_busy_fetcher(memory, buffer)
    async with asyncio.timeout(PATIENCE):
        first = await buffer.take()
        buffer.close()
        fetching.cancel()
        await asyncio.wait([fetching])
    held = [first, *buffer.empty()]
    assert len(held) == (await memory.census())[State.EXECUTING] == 500


async def test_what_gathers_during_a_flush_goes_with_the_next(memory: World) -> None:
    worker_id = await memory.worker(capacity=500)
    for _ in range(40):
        await memory.submit()
    tasks = await memory.claim(worker_id, 40)
    sizes: list[int] = []
    settle = memory.ops.settle

    def counted(batch: Any) -> Any:
        sizes.append(len(batch))
        return settle(batch)

    memory.ops.settle = counted  # type: ignore[method-assign, assignment]
    committer = Committer(memory.backend, worker_id)
    running = asyncio.create_task(committer.run())
    committer.settle(tasks[0], Completed(b"1"), 0.1)
    while not sizes:  # noqa: ASYNC110 (until the first is under way)
        await asyncio.sleep(0)
    for task in tasks[1:]:
        committer.settle(task, Completed(b"1"), 0.1)
    await committer.flushed()
    running.cancel()
    assert sizes == [1, 39]
    assert await memory.census() == {State.COMPLETED: 40}


async def test_what_cannot_be_delivered_is_tried_again_and_what_is_refused_fails(
    memory: World, caplog: pytest.LogCaptureFixture
) -> None:
    worker_id = await memory.worker()
    for _ in range(5):
        await memory.submit()
    tasks = await memory.claim(worker_id, 5)
    unwanted, poison, away = tasks[1].task_id, tasks[3].task_id, True
    settle = memory.ops.settle

    def moody(batch: Any) -> Any:
        nonlocal away
        if away:
            away = False
            raise StoreUnavailable("away")
        for each in batch:
            refused = each.task_id == unwanted and each.outcome == Completed(b"1")
            if refused or each.task_id == poison:
                raise BatchTooLarge("That is too much.")
        return settle(batch)

    memory.ops.settle = moody  # type: ignore[method-assign, assignment]
    committer = Committer(memory.backend, worker_id)
    running = asyncio.create_task(committer.run())
    for task in tasks:
        committer.settle(task, Completed(b"1"), 0.1)
    async with asyncio.timeout(PATIENCE):
        await committer.flushed()
    running.cancel()
    failed = await memory.task(unwanted)
    assert (failed.status, failed.error and failed.error.code) == (State.FAILED, "RESULT_REFUSED")
    assert failed.error is not None
    assert failed.error.message == "The result cannot be stored: That is too much."
    census = {State.COMPLETED: 3, State.FAILED: 1, State.EXECUTING: 1}
    assert await memory.census() == census, "not even that it failed could be told of the last one"
    assert "away" in caplog.text
    assert poison in caplog.text


async def test_late_results_are_counted(memory: World) -> None:
    worker_id = await memory.worker()
    task_id = await memory.submit()
    (task,) = await memory.claim(worker_id)
    await memory.run(memory.ops.cancel([task_id]))
    committer = Committer(memory.backend, worker_id)
    running = asyncio.create_task(committer.run())
    committer.settle(task, Completed(b"1"), 0.1)
    await committer.flushed()
    running.cancel()
    assert committer.stale == 1


async def test_the_last_report_of_a_run_comes_before_its_end(memory: World) -> None:
    worker_id = await memory.worker()
    task_id = await memory.submit()
    (task,) = await memory.claim(worker_id)
    committer = Committer(memory.backend, worker_id)
    running = asyncio.create_task(committer.run())
    for percent in range(100):
        committer.report(Report(task_id, 1, percent, None))
    committer.settle(task, Completed(b"1"), 0.1)
    await committer.flushed()
    running.cancel()
    stored = await memory.task(task_id)
    assert stored.progress is not None
    assert (stored.status, stored.progress.percent) == (State.COMPLETED, 99)


async def test_threads_are_kept_and_abandoned_ones_counted() -> None:
    hangs = Hanging()
    threads = Threads(hangs)
    first = await threads.run("work", threading.get_ident)
    assert await threads.run("work", threading.get_ident) == first
    begun, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        go_on.wait(PATIENCE)

    hanging = asyncio.create_task(threads.run("work", hang))
    await asyncio.to_thread(begun.wait, PATIENCE)
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    assert hangs.threads == 1
    assert await threads.run("work", threading.get_ident) != first
    go_on.set()
    async with asyncio.timeout(PATIENCE):
        while hangs.threads:  # noqa: ASYNC110 (a thread is about to say so)
            await asyncio.sleep(0.001)
    threads.stop()
