"""Tasks whose parameters are results of other tasks."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.core.errors import IdempotencyConflict
from fairlane.core.ids import new_id
from fairlane.core.inputs import Input, TaskInput
from fairlane.core.merging import ParentResult, merged, wanted
from fairlane.core.outcomes import Completed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Unique
from tests.fixtures.stores import World, get_all

INPUTS = {"order": Input((1,), path=("id",)), "all": Input((0, 1, 0), many=True)}


async def test_a_child_says_which_results_it_takes(store: World) -> None:
    worker = await store.worker()
    parents = [await store.submit() for _ in range(2)]
    child = await store.submit("child", {"to": "Ada"}, depends_on=parents, inputs=INPUTS)
    first, second = parents
    task = await store.task(child)
    assert (task.state, task.payload) == (State.SCHEDULED, b'{"to":"Ada"}')
    assert task.inputs == {
        "order": TaskInput((second,), path=("id",)),
        "all": TaskInput((first, second, first), many=True),
    }
    (head,) = await store.run(store.ops.heads([child]))
    assert head is not None
    assert head.inputs == task.inputs
    results = {first: b"[1.0, 2]", second: b'{"id" : 1e3}'}
    for each in await store.claim(worker, 2):
        await store.settle(each, Completed(results[each.task_id]))
    claimed = await store.claim_one(worker)
    assert {name: each.many for name, each in claimed.spec.inputs.items()} == {
        "order": False,
        "all": True,
    }
    payload = claimed.payload
    if not store.url.startswith("http"):  # a server has added them
        assert claimed.spec.inputs == INPUTS
        assert wanted(claimed.spec) == [second, first]
        found = await get_all(store.backend, wanted(claimed.spec))
        read = {task.task_id: ParentResult.of(task) for task in found if task is not None}
        payload = merged(payload, claimed.spec, read)
    assert payload == b'{"to":"Ada","order":1e3,"all":[[1.0, 2],{"id" : 1e3},[1.0, 2]]}'


async def test_a_batch_of_parents_and_children(store: World) -> None:
    worker = await store.worker()
    parent = new_task("parent", task_id=new_id())
    child = new_task("child", depends_on=[parent.task_id], inputs={"order": Input((0,))})
    alike = [new_task("child", {"n": n}) for n in range(3)]
    await store.submit_all([parent, *alike, child])
    for _ in range(4):
        await store.claim_and_settle(worker)
    claimed = await store.claim_one(worker)
    assert (claimed.task_id, list(claimed.spec.inputs)) == (child.task_id, ["order"])


async def test_other_inputs_are_another_request(store: World) -> None:
    parents = [await store.submit() for _ in range(2)]

    async def submit(place: int) -> str:
        inputs = {"order": Input((place,))}
        return await store.submit("c", depends_on=parents, inputs=inputs, idempotency_key="k")

    assert await submit(0) == await submit(0)
    with pytest.raises(IdempotencyConflict):
        await submit(1)


async def test_unique_by_the_task_whose_result_it_takes(store: World) -> None:
    parents = [await store.submit() for _ in range(2)]

    async def submit(place: int) -> str:
        unique = Unique(arguments=("order",))
        inputs = {"order": Input((place,))}
        return await store.submit("c", depends_on=parents, inputs=inputs, unique=unique)

    assert await submit(0) == await submit(0) != await submit(1)


async def test_a_replayed_child_takes_them_again(store: World) -> None:
    worker = await store.worker()
    parent = await store.submit()
    child = await store.submit("child", depends_on=[parent], inputs={"order": Input((0,))})
    await store.settle(await store.claim_one(worker), Completed(b"7"))
    await store.run(store.ops.cancel([child]))
    await store.run(store.ops.replay([child]))
    claimed = await store.claim_one(worker)
    assert claimed.task_id == child
    assert "order" in claimed.spec.inputs
    if store.url.startswith("http"):
        assert msgspec.json.decode(claimed.payload) == {"order": 7}
