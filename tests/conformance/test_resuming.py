"""A workflow that failed runs again from there; one that has ended is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.errors import InvalidTaskId, UnknownNode, WorkflowRunning
from fairlane.core.history import history_of
from fairlane.core.ids import new_id, new_run, numbered
from fairlane.core.model import Replayed, Task
from fairlane.core.outcomes import Completed, Outcome
from fairlane.core.reruns import Rerun
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.conformance.test_workflows import (
    CHAIN,
    Edges,
    failure,
    found,
    members,
    run,
    states,
    submitted,
)
from tests.fixtures.stores import World

DIAMOND: Edges = [[], [1], [1], [2, 3]]


async def resume(store: World, workflow_id: str, from_node: str | None = None) -> list[str]:
    """Resume a workflow; return the names of the tasks that run again."""
    answers = await store.run(store.ops.resume_workflow(workflow_id, from_node=from_node))
    names = {node.task_id: node.name for node in (await found(store, workflow_id)).nodes}
    return [names[answer.task_id] for answer in answers if answer.applied]


async def finish(store: World, worker: str, failing: Sequence[str] = ()) -> list[str]:
    """Run tasks until none is ready, and fail those of these names; return the names in order."""
    ran = []
    while tasks := await store.claim(worker, 1):
        (task,) = tasks
        membership = (await store.task(task.task_id)).membership
        assert membership is not None
        ran.append(membership.node)
        outcome: Outcome = failure() if ran[-1] in failing else Completed(b"%d" % len(ran))
        await store.settle(task, outcome)
    return ran


async def of(store: World, workflow_id: str, number: int) -> Task:
    return await store.task(numbered(workflow_id, number))


async def test_a_chain_goes_on_from_the_task_that_failed(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN, max_retries=0)
    assert await finish(store, worker, ["n2"]) == ["n1", "n2"]
    first = await of(store, workflow_id, 1)
    assert await resume(store, workflow_id) == ["n2", "n3"]
    assert await states(store, workflow_id) == (
        "running",
        {"n1": State.COMPLETED, "n2": State.QUEUED, "n3": State.SCHEDULED},
    )
    second, third = [await of(store, workflow_id, number) for number in (2, 3)]
    assert (second.attempt, second.retry_count, second.error) == (1, 0, None)
    assert (third.attempt, third.error, third.depends_on) == (0, None, (second.task_id,))
    assert await finish(store, worker) == ["n2", "n3"]
    assert (await found(store, workflow_id)).state == "completed"
    assert await of(store, workflow_id, 1) == first
    second = await of(store, workflow_id, 2)
    assert (second.attempt, [each.outcome for each in second.attempts]) == (
        2,
        ["failed", "completed"],
    )


async def test_counters_and_events_agree(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN, max_retries=0)
    await finish(store, worker, ["n1"])
    assert await store.census() == {State.DEAD_LETTER: 1, State.CANCELLED: 2}
    tail = await store.run(store.ops.tail())
    await resume(store, workflow_id)
    assert await store.census() == {State.QUEUED: 1, State.SCHEDULED: 2}
    events = (await store.run(store.ops.events(tail, 100))).events
    numbers = [numbered(workflow_id, number) for number in (1, 2, 3)]
    told = sorted((event.verb, event.task_id) for event in events)
    assert told == [("rebind", numbers[1]), ("rebind", numbers[2]), ("rerun", numbers[0])]
    assert await finish(store, worker) == ["n1", "n2", "n3"]
    assert await store.census() == {State.COMPLETED: 3}


@pytest.mark.local
async def test_the_history_of_a_task_that_waited_again(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [1]], max_retries=0)
    await store.advance(1)
    await finish(store, worker, ["n1"])
    await store.advance(1)
    await resume(store, workflow_id)
    second = await of(store, workflow_id, 2)
    states = [step.state for step in history_of(second)]
    assert states == ["scheduled", "cancelled", "scheduled"]
    assert second.version == len(states)
    await store.advance(1)
    await finish(store, worker)
    second = await of(store, workflow_id, 2)
    steps = history_of(second)
    assert [step.state for step in steps] == [
        *states,
        *("queued", "executing", "completed"),
    ]
    assert second.version == len(steps)


async def test_workers_are_woken(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN, max_retries=0)
    await finish(store, worker, ["n1"])
    wakeup = await store.backend.driver.listen()
    await resume(store, workflow_id)
    assert await wakeup.wait(10)
    await wakeup.aclose()


async def test_a_gather(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [], [], [1, 2, 3]], max_retries=0)
    assert len(await finish(store, worker, ["n1", "n3"])) == 3
    assert await resume(store, workflow_id) == ["n1", "n3", "n4"]
    await finish(store, worker, ["n3"])
    assert await states(store, workflow_id) == (
        "failed",
        {"n1": "completed", "n2": "completed", "n3": "dead_letter", "n4": "cancelled"},
    )
    assert await resume(store, workflow_id) == ["n3", "n4"]
    assert await finish(store, worker) == ["n3", "n4"]
    last = await of(store, workflow_id, 4)
    assert (last.state, last.attempt) == (State.COMPLETED, 1)


async def test_doomed_several_levels_deep(store: World) -> None:
    worker = await store.worker()
    edges: Edges = [[], [], [1, 2], [3], [3], [4, 5], [6, 2]]
    workflow_id = await submitted(store, edges, max_retries=0)
    await finish(store, worker, ["n2"])
    assert await resume(store, workflow_id) == ["n2", "n3", "n4", "n5", "n6", "n7"]
    assert await finish(store, worker, ["n5"]) == ["n2", "n3", "n4", "n5"]
    assert await resume(store, workflow_id) == ["n5", "n6", "n7"]
    assert await finish(store, worker) == ["n5", "n6", "n7"]
    assert (await found(store, workflow_id)).state == "completed"


async def test_a_workflow_that_was_cancelled(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, DIAMOND)
    await run(store, worker)
    await store.run(store.ops.cancel_workflow(workflow_id))
    assert await resume(store, workflow_id) == ["n2", "n3", "n4"]
    assert await finish(store, worker) == ["n2", "n3", "n4"]
    assert (await found(store, workflow_id)).state == "completed"


async def test_one_that_still_runs(store: World) -> None:
    """What failed runs again; what was doomed waits for it, and for those that still run."""
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [], [1, 2]], max_retries=0)
    one, two = await store.claim_one(worker), await store.claim_one(worker)
    await store.settle(one, failure())
    assert await resume(store, workflow_id) == ["n1", "n3"]
    await store.settle(two)
    assert (await of(store, workflow_id, 3)).state is State.SCHEDULED
    assert await finish(store, worker) == ["n1", "n3"]


async def test_nothing_to_resume(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN)
    assert await resume(store, workflow_id) == []
    await finish(store, worker)
    assert await store.run(store.ops.resume_workflow(workflow_id)) == []
    assert await store.run(store.ops.resume_workflow(new_id())) == []
    with pytest.raises(InvalidTaskId):
        await store.run(store.ops.resume_workflow("nothing"))


async def test_a_failure_that_others_went_on_from(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [1], [2]], tolerant=[2], max_retries=0)
    await finish(store, worker, ["n1", "n3"])
    assert await resume(store, workflow_id) == ["n3"]
    await finish(store, worker)
    assert (await found(store, workflow_id)).state == "completed"
    assert await resume(store, workflow_id) == []
    workflow_id = await submitted(store, [[], [1]], tolerant=[2], max_retries=0)
    await finish(store, worker, ["n1", "n2"])
    assert await resume(store, workflow_id) == ["n1", "n2"]


async def test_two_at_once(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, DIAMOND, max_retries=0)
    await finish(store, worker, ["n1"])
    answers = await asyncio.gather(
        *(store.run(store.ops.resume_workflow(workflow_id)) for _ in range(4))
    )
    applied = [answer.task_id for each in answers for answer in each if answer.applied]
    assert sorted(applied) == [numbered(workflow_id, number) for number in range(1, 5)]
    assert await finish(store, worker) in (["n1", "n2", "n3", "n4"], ["n1", "n3", "n2", "n4"])
    assert [(await of(store, workflow_id, n)).attempt for n in range(1, 5)] == [2, 1, 1, 1]


async def test_racing_a_settle(store: World) -> None:
    """The last parent ends while its child is bound to it again."""
    worker = await store.worker()
    for _ in range(10):
        workflow_id = await submitted(store, [[], [], [1, 2]], max_retries=0)
        one, two = await store.claim_one(worker), await store.claim_one(worker)
        await store.settle(one, failure())
        await asyncio.gather(store.settle(two), resume(store, workflow_id))
        assert await finish(store, worker) == ["n1", "n3"]
        assert (await found(store, workflow_id)).state == "completed"


@pytest.mark.local
async def test_interrupted_between_batches(store: World) -> None:
    """Only the parents were queued again. They end, and the rest follows."""
    worker = await store.worker()
    workflow_id = await submitted(store, DIAMOND, max_retries=0)
    await finish(store, worker, ["n1"])
    first = await of(store, workflow_id, 1)
    await rerun(store, Rerun.of(first))
    assert (await of(store, workflow_id, 2)).state is State.CANCELLED
    assert await finish(store, worker) == ["n1"]
    assert await resume(store, workflow_id) == ["n2", "n3", "n4"]
    assert sorted(await finish(store, worker)) == ["n2", "n3", "n4"]


async def rerun(store: World, *reruns: Rerun) -> list[Replayed]:
    answers = await store.run(store.ops.rerun(reruns))
    assert answers is not None
    return answers


@pytest.mark.local
async def test_a_task_stays_as_it_is_while_a_parent_is_not_met(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN, max_retries=0)
    await finish(store, worker, ["n1"])
    second = await of(store, workflow_id, 2)
    (answer,) = await rerun(store, Rerun.of(second))
    assert answer == Replayed(second.task_id, applied=False, state=State.CANCELLED)
    assert await of(store, workflow_id, 2) == second
    other = await store.submit()
    answers = await rerun(store, Rerun(new_id(), 1), Rerun(other, 1))
    assert [(each.applied, each.state) for each in answers] == [(False, None), (False, "queued")]


@pytest.mark.local
async def test_a_task_that_moved_since_stays_as_it_is(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[]], max_retries=0)
    await finish(store, worker, ["n1"])
    planned = Rerun.of(await of(store, workflow_id, 1))
    assert (await rerun(store, planned))[0].applied
    assert not (await rerun(store, planned))[0].applied
    await finish(store, worker)
    assert (await rerun(store, planned)) == [
        Replayed(planned.task_id, applied=False, state=State.COMPLETED)
    ]


async def test_a_plain_replay_of_the_parent_comes_first(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN, max_retries=0)
    await finish(store, worker, ["n1"])
    await store.run(store.ops.replay([numbered(workflow_id, 1)]))
    assert await resume(store, workflow_id) == ["n2", "n3"]
    assert await finish(store, worker) == ["n1", "n2", "n3"]


async def test_a_parent_fails_again(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN, max_retries=0)
    for _ in range(3):
        await finish(store, worker, ["n1"])
        assert (await states(store, workflow_id))[1] == {
            "n1": "dead_letter",
            "n2": "cancelled",
            "n3": "cancelled",
        }
        assert await resume(store, workflow_id) == ["n1", "n2", "n3"]
    assert await finish(store, worker) == ["n1", "n2", "n3"]


async def test_deleted_members_in_between(store: World) -> None:
    """Nobody knows what became of a parent that is gone, so its child stays as it is."""
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [1], [], [3]], max_retries=0)
    await finish(store, worker, ["n1", "n3"])
    await store.run(store.ops.delete([numbered(workflow_id, 1)]))
    answers = await store.run(store.ops.resume_workflow(workflow_id))
    assert [(each.applied, each.state) for each in answers] == [
        (False, State.CANCELLED),
        (True, State.DEAD_LETTER),
        (True, State.CANCELLED),
    ]
    assert await finish(store, worker) == ["n3", "n4"]


async def test_a_parent_that_is_no_member(store: World) -> None:
    worker = await store.worker()
    other = await store.submit("other", max_retries=0)
    workflow_id = await submitted(store, [[], [1]], depends_on=[other])
    await store.claim_and_settle(worker, failure())
    assert await resume(store, workflow_id) == []
    await store.run(store.ops.replay([other]))
    assert await resume(store, workflow_id) == ["n1", "n2"]
    await store.claim_and_settle(worker)
    assert await finish(store, worker) == ["n1", "n2"]


async def test_a_completed_task_and_all_below_it_run_again(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, DIAMOND)
    await finish(store, worker)
    before = await of(store, workflow_id, 3)
    assert await resume(store, workflow_id, "n2") == ["n2", "n4"]
    assert await states(store, workflow_id) == (
        "running",
        {"n1": "completed", "n2": "queued", "n3": "completed", "n4": "scheduled"},
    )
    assert (await of(store, workflow_id, 2)).result is None
    assert await finish(store, worker) == ["n2", "n4"]
    second, fourth = [await of(store, workflow_id, number) for number in (2, 4)]
    assert (second.attempt, second.result) == (2, b"1")
    for task in (second, fourth):
        assert [(run.number, run.outcome) for run in task.attempts] == [
            (1, "completed"),
            (2, "completed"),
        ]
    assert await of(store, workflow_id, 3) == before
    assert await store.census() == {State.COMPLETED: 4}


@pytest.mark.local
async def test_the_history_of_completed_tasks_that_run_again(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [1]])
    await finish(store, worker)
    await store.advance(1)
    await resume(store, workflow_id, "n1")
    await store.advance(1)
    await finish(store, worker)
    steps = [history_of(await of(store, workflow_id, number)) for number in (1, 2)]
    again = ["executing", "completed"]
    assert [[step.state for step in each] for each in steps] == [
        ["queued", *again, "queued", *again],
        ["scheduled", "queued", *again, "scheduled", "queued", *again],
    ]


async def test_a_completed_task_that_fails_then(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN, max_retries=0)
    await finish(store, worker)
    assert await resume(store, workflow_id, "n1") == ["n1", "n2", "n3"]
    await finish(store, worker, ["n1"])
    assert (await states(store, workflow_id))[1] == {
        "n1": "dead_letter",
        "n2": "cancelled",
        "n3": "cancelled",
    }


async def test_a_node_that_there_is_not(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN)
    await finish(store, worker)
    with pytest.raises(UnknownNode, match="no task called 'n7'"):
        await resume(store, workflow_id, "n7")
    assert (await found(store, workflow_id)).state == "completed"


async def test_an_expiry_that_has_passed_is_removed(store: World) -> None:
    worker = await store.worker()
    created = (await store.task(await store.submit("x", delay_seconds=3_600))).created_at
    workflow_id = new_run(2)
    options: Any = {"expires_at": created + timedelta(minutes=1)}
    await store.submit_all(members(workflow_id, [[], [1]], **options))
    await store.advance(120)
    await store.ask(worker)
    assert await resume(store, workflow_id) == ["n1", "n2"]
    assert await finish(store, worker) == ["n1", "n2"]


async def test_dependents_of_the_earlier_end_that_are_left_over(store: World) -> None:
    """They are released in the state of that end, and a new bond is not taken for one of them."""
    worker = await store.worker()
    workflow_id = await submitted(store, [[], [1]], max_retries=0)
    first = numbered(workflow_id, 1)
    for _ in range(2):
        await store.submit_all([new_task("other", depends_on=[first]) for _ in range(limits.BATCH)])
    await finish(store, worker, ["n1"])
    while (await of(store, workflow_id, 2)).state is not State.CANCELLED:
        await store.ask(worker)
    assert await resume(store, workflow_id) == ["n1", "n2"]
    assert (await of(store, workflow_id, 2)).state is State.SCHEDULED
    assert await finish(store, worker) == ["n1", "n2"]
    assert await store.census() == {State.COMPLETED: 2, State.CANCELLED: 2 * limits.BATCH}


async def test_a_large_one_is_resumed_whole(store: World) -> None:
    count = 600
    edges: Edges = [[], *([[1]] * (count - 2)), list(range(2, count))]
    worker = await store.worker(capacity=500)
    workflow_id = await submitted(store, edges, max_retries=0)
    await run(store, worker, failure())
    while (await found(store, workflow_id)).state == "running":
        await store.ask(worker)
    assert len(await resume(store, workflow_id)) == count
    await run(store, worker)
    ended = 0
    while ended < count - 2:
        for task in await store.claim(worker, 200):
            await store.settle(task)
            ended += 1
    await run(store, worker)
    assert (await found(store, workflow_id)).state == "completed"


async def test_what_has_ended_is_deleted(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submitted(store, CHAIN, max_retries=0)
    with pytest.raises(WorkflowRunning):
        await store.run(store.ops.delete_workflow(workflow_id))
    assert len((await found(store, workflow_id)).nodes) == 3
    await finish(store, worker, ["n2"])
    answers = await store.run(store.ops.delete_workflow(workflow_id))
    assert [(each.applied, each.state) for each in answers] == [
        (True, State.CANCELLED),
        (True, State.DEAD_LETTER),
        (True, State.COMPLETED),
    ]
    assert await store.run(store.ops.workflow(workflow_id)) is None
    assert await store.run(store.ops.delete_workflow(workflow_id)) == []
    with pytest.raises(InvalidTaskId):
        await store.run(store.ops.delete_workflow("nothing"))
