"""The circuit breaker: a type that keeps failing is left alone for a while."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from fairlane.core.breaker import Breaker
from fairlane.core.errors import InvalidLimit
from fairlane.core.flow import Flow, Op
from fairlane.core.ids import new_id
from fairlane.core.model import Ask, Claimed, TaskError
from fairlane.core.outcomes import Completed, Failed, Outcome, Released
from fairlane.core.settlement import reaped
from fairlane.core.states import State
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


class Died(Exception):
    """The process is gone."""


def dying(op: Op[Any], calls: int) -> Op[Any]:
    """Return the operation in a process that dies after this number of calls to the store."""

    def flow() -> Flow[Any]:
        steps, reply = op.flow(), None
        try:
            for _ in range(calls):
                try:
                    request = steps.send(reply)
                except StopIteration as stop:
                    return stop.value
                reply = yield request
        finally:
            steps.close()
        raise Died

    return Op(op.name, op.mode, flow)


@pytest.mark.local
async def test_a_run_is_settled_and_counted_in_one_step(store: World) -> None:
    await _die_at_every_call(store, reaping=False)


@pytest.mark.local
async def test_a_run_is_reaped_and_counted_in_one_step(store: World) -> None:
    await _die_at_every_call(store, reaping=True)


async def _die_at_every_call(store: World, *, reaping: bool) -> None:
    """A process that dies has settled the run and opened the circuit, or neither."""
    ops, worker = store.ops, await store.worker(lease=10_000)
    done = False
    for calls in range(1, 50):
        type = f"flaky-{calls}"
        await store.run(ops.limit(type, breaker=Breaker(1, 1_000, 1_000)))
        task_id = await store.submit(type, max_retries=5, timeout_seconds=10)
        (task,) = await store.claim(worker, 1)
        report = settlement(task, BAD)
        if reaping:
            await store.start(task)
            await store.advance(11)
            overdue = await store.run(ops.expired(100))
            (report,) = [reaped(item) for item in overdue if item.task_id == task_id]
        try:
            await store.run(dying(ops.settle([report], reaping=reaping), calls))
        except Died:
            pass
        else:
            done = True
        settled = await store.state(task_id) is not State.EXECUTING
        controls = await store.run(ops.controls())
        assert (controls.types[type].open_until is not None) is settled, calls
        assert await store.claim(worker) == []
        if done:
            assert settled
            break
    assert done


@pytest.mark.local
async def test_a_process_that_has_just_started_counts(store: World) -> None:
    worker = await prepared(store)
    held = await store.claim(worker, 3)
    (restarted,) = store.processes(1)
    await restarted.run(restarted.ops.settle([settlement(task, BAD) for task in held]))
    assert await open_until(store) is not None


async def test_the_next_claim_of_any_process_gets_nothing(store: World) -> None:
    worker = await prepared(store)
    _, other = store.behind.processes(2)
    (held,) = (await other.run(other.ops.claim(Ask(worker, new_id(), 1)))).tasks
    await store.settle(held, Completed(b"1"))
    held_now = await store.claim(worker, 3)
    await store.run(store.ops.settle([settlement(task, BAD) for task in held_now]))
    grant = await other.run(other.ops.claim(Ask(worker, new_id(), 1)))
    assert grant.tasks == []


async def test_a_settlement_may_end_runs_of_several_types(store: World) -> None:
    """Each circuit counts the runs of its own type, of which there may be several lanes."""
    types = {"flaky": BREAKER, "shaky": Breaker(2, 60, 30), "calm": Breaker(4, 60, 30)}
    for type, breaker in types.items():
        await store.run(store.ops.limit(type, breaker=breaker))
    queues = ("one", "two")
    tasks = [
        new_task(type, queue=queue, max_retries=5)
        for type in (*types, "sound")
        for queue in queues
        for _ in range(2)
    ]
    await store.submit_all(tasks)
    worker = await store.worker(lease=10_000)
    held = await store.claim(worker, 16)
    assert len(held) == 16
    calm = [task for task in held if task.type == "calm"]
    reports = [settlement(task, BAD) for task in held if task not in calm]
    reports += [settlement(calm[0], BAD), settlement(calm[1], Completed(b"1"))]
    await store.run(store.ops.settle(reports))
    controls = await store.run(store.ops.controls())
    opened = {type for type, rules in controls.types.items() if rules.open_until is not None}
    assert opened == {"flaky", "shaky"}
    assert {task.type for task in await store.claim(worker, 100)} == {"sound", "calm"}
    await store.advance(31)
    # The runs of the calm type still go on: they take no slot of the others.
    assert sorted(task.type for task in await store.claim(worker, 100)) == ["flaky", "shaky"]


async def test_runs_that_go_on_take_the_slot_of_the_probe(store: World) -> None:
    """Those that end with the settlement that opens the circuit do not."""
    worker = await prepared(store)
    held = await store.claim(worker, 5)
    await store.run(store.ops.settle([settlement(task, BAD) for task in held[:4]]))
    await store.advance(31)
    assert await store.claim(worker) == []
    await store.settle(held[4], Released(), seconds=None)
    assert len(await store.claim(worker)) == 1


async def test_failures_that_are_settled_at_once_all_count(store: World) -> None:
    count = 12
    await store.run(store.ops.limit("flaky", breaker=Breaker(count, 600, 30)))
    await store.submit_all([new_task("flaky", max_retries=5) for _ in range(count)])
    held = await store.claim(await store.worker(lease=10_000), count)
    processes = store.behind.processes(4)
    settling = [
        process.run(process.ops.settle([settlement(task, BAD)]))
        for task, process in zip(held, itertools.cycle(processes), strict=False)
    ]
    await asyncio.gather(*settling)
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
