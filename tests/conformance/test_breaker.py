"""The circuit breaker: a type that keeps failing is left alone for a while."""

from __future__ import annotations

import pytest

from fairlane.core.breaker import Breaker
from fairlane.core.errors import InvalidLimit
from fairlane.core.model import Claimed, TaskError
from fairlane.core.outcomes import Completed, Failed, Outcome, Released
from fairlane.core.submission import new_task
from tests.fixtures.stores import World, settlement

BAD = Failed(TaskError("x"), after=0)
BREAKER = Breaker(failures=3, within=60, cooldown=30)


async def fail(store: World, worker: str, times: int) -> None:
    for _ in range(times):
        await store.claim_and_settle(worker, BAD)


async def prepared(store: World) -> str:
    """A worker, a type with a breaker, and plenty of its tasks."""
    await store.run(store.ops.limit("flaky", breaker=BREAKER))
    await store.submit_all([new_task("flaky", max_retries=50) for _ in range(20)])
    return await store.worker(lease=10_000)


async def open_until(store: World) -> int | None:
    controls = await store.run(store.ops.controls())
    return controls.types["flaky"].open_until


async def test_a_type_that_keeps_failing_is_left_alone(store: World) -> None:
    worker = await prepared(store)
    await fail(store, worker, 2)
    assert await open_until(store) is None
    await fail(store, worker, 1)
    assert await open_until(store) is not None
    other = await store.submit("sound")
    grant = await store.ask(worker)
    assert [task.task_id for task in grant.tasks] == [other]
    grant = await store.ask(worker)
    assert grant.tasks == []
    assert grant.next_due_in == pytest.approx(30, abs=10)


@pytest.mark.local
async def test_those_who_wait_hear_that_it_opens_and_that_it_closes(store: World) -> None:
    """They wait until the time that the last claim told them, and that has changed."""
    worker = await prepared(store)
    await fail(store, worker, 2)
    (last,) = await store.claim(worker, 1)
    wakeup = await store.backend.driver.listen()
    try:
        while await wakeup.wait(0.1):
            pass  # what came before
        await store.settle(last, BAD)
        assert await open_until(store) is not None
        assert await wakeup.wait(5.0)
        await store.advance(31)
        (probe,) = await store.claim(worker)
        while await wakeup.wait(0.1):
            pass
        await store.settle(probe, Completed(b"1"))
        assert await open_until(store) is None
        assert await wakeup.wait(5.0)
    finally:
        await wakeup.aclose()


async def test_one_probe_closes_it(store: World) -> None:
    worker = await prepared(store)
    await fail(store, worker, 3)
    await store.advance(31)
    (probe,) = await store.claim(worker)
    assert await store.claim(worker) == []
    await store.settle(probe, Completed(b"1"))
    assert await open_until(store) is None
    assert len(await store.claim(worker)) == 10


async def test_one_probe_opens_it_again(store: World) -> None:
    worker = await prepared(store)
    await fail(store, worker, 3)
    await store.advance(31)
    (probe,) = await store.claim(worker)
    await store.settle(probe, BAD)
    assert await store.claim(worker) == []
    await store.advance(29)
    assert await store.claim(worker) == []
    await store.advance(2)
    (probe,) = await store.claim(worker)
    await store.settle(probe, Completed(b"1"))
    # What failed before does not count again.
    await fail(store, worker, 2)
    assert len(await store.claim(worker, 1)) == 1


async def test_a_probe_that_proves_nothing(store: World) -> None:
    worker = await prepared(store)
    await fail(store, worker, 3)
    await store.advance(31)
    (probe,) = await store.claim(worker)
    await store.settle(probe, Released(), seconds=None)
    assert await open_until(store) is not None
    (again,) = await store.claim(worker)
    assert again.task_id == probe.task_id


async def test_failures_long_ago_do_not_count(store: World) -> None:
    worker = await prepared(store)
    await fail(store, worker, 2)
    await store.advance(61)
    await fail(store, worker, 2)
    assert await open_until(store) is None
    await fail(store, worker, 1)
    assert await open_until(store) is not None


async def test_successes_in_between_do_not_help(store: World) -> None:
    worker = await prepared(store)
    outcomes: list[Outcome] = [BAD, Completed(b"1"), BAD, Completed(b"1"), BAD]
    for outcome in outcomes:
        assert await open_until(store) is None
        await store.claim_and_settle(worker, outcome)
    assert await open_until(store) is not None


async def test_what_began_before_it_opened(store: World) -> None:
    """Runs that end while it is open neither close it nor keep it open."""
    worker = await prepared(store)
    held = await store.claim(worker, 6)
    await store.run(store.ops.settle([settlement(task, BAD) for task in held[:3]]))
    opened = await open_until(store)
    assert opened is not None
    await store.settle(held[3], Completed(b"1"))
    await store.settle(held[4], BAD)
    assert await open_until(store) == opened
    await store.advance(31)
    assert await store.claim(worker) == []  # the last of them is the probe
    await store.settle(held[5], Completed(b"1"))
    assert await open_until(store) is None


async def test_dead_workers_and_timeouts_count(store: World) -> None:
    await store.run(store.ops.limit("flaky", breaker=Breaker(2, 600, 30)))
    await store.submit_all([new_task("flaky", max_retries=5, timeout_seconds=20) for _ in range(3)])
    dying, living = await store.worker(lease=10), await store.worker(lease=1_000)
    lost = await store.claim_one(dying)
    held: list[Claimed] = await store.claim(living, 2)
    for task in (lost, held[0]):
        await store.start(task)
    await store.advance(11)
    await store.reap()
    assert await open_until(store) is None
    await store.advance(10)
    await store.reap()
    assert await open_until(store) is not None


async def test_setting_it_anew_closes_it(store: World) -> None:
    worker = await prepared(store)
    await fail(store, worker, 3)
    controls = await store.run(store.ops.limit("flaky", breaker=Breaker(5, 60, 30)))
    rules = controls.types["flaky"]
    assert (rules.breaker, rules.open_until) == (Breaker(5, 60, 30), None)
    assert len(await store.claim(worker, 2)) == 2
    controls = await store.run(store.ops.limit("flaky", rate=100))
    assert controls.types["flaky"].breaker == Breaker(5, 60, 30)
    controls = await store.run(store.ops.limit("flaky", breaker=False))
    assert controls.types["flaky"].breaker is None


async def test_another_process_knows(store: World) -> None:
    worker = await prepared(store)
    _, other = store.processes(2)
    await other.run(other.ops.controls())
    await fail(store, worker, 3)
    controls = await other.run(other.ops.controls())
    assert controls.types["flaky"].open_until is not None


async def test_breakers_that_cannot_be_set(store: World) -> None:
    for bad in (Breaker(0, 1, 1), Breaker(1, 0, 1), Breaker(1, 1, float("nan")), True):
        with pytest.raises(InvalidLimit):
            await store.run(store.ops.limit("t", breaker=bad))  # type: ignore[arg-type]
    with pytest.raises(InvalidLimit):
        await store.run(store.ops.limit(None, breaker=BREAKER))
    assert (await store.run(store.ops.controls())).types == {}
