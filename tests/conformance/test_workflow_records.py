"""Records of workflows: stored with the tasks, listed, and closed once at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.bounded import BoundOperations
from fairlane.core.documents import Document, Order
from fairlane.core.encryption import Encryption
from fairlane.core.errors import (
    EncryptionRequired,
    InvalidCursor,
    InvalidFilter,
    InvalidWorkflow,
    NotSupported,
    OutOfBounds,
    TaskIdConflict,
    UnknownDependency,
)
from fairlane.core.flow import Flow, Op, reads
from fairlane.core.ids import new_id, new_run, numbered
from fairlane.core.model import NewTask
from fairlane.core.outcomes import Outcome
from fairlane.core.ownership import Bounds
from fairlane.core.sealing import Key
from fairlane.core.states import State
from fairlane.core.workflow_list import (
    ALL,
    WorkflowFilter,
    WorkflowPage,
    WorkflowSummary,
    new_workflow_filter,
)
from fairlane.core.workflow_records import ENDS, KIND
from fairlane.core.workflow_watch import WorkflowEnds, ends_of
from fairlane.core.workflows import WorkflowState
from tests.conformance.test_encryption import keyed
from tests.conformance.test_workflows import CHAIN, Edges, failure, members
from tests.fixtures.steps import Killed, stopped
from tests.fixtures.stores import TRANSACTIONAL, World

WEEK = 7 * 86_400


async def submit(store: World, edges: Edges = CHAIN, **options: Any) -> str:
    workflow_id = new_run(len(edges))
    await store.run(store.ops.submit_workflow(members(workflow_id, edges, **options)))
    return workflow_id


async def listed(store: World, filter: WorkflowFilter = ALL) -> list[WorkflowSummary]:
    """All workflows, page by page."""
    found: list[WorkflowSummary] = []
    cursor: str | None = None
    while True:
        page: WorkflowPage = await store.run(store.ops.workflow_page(filter, 100, cursor))
        found += page.workflows
        cursor = page.next_cursor
        if cursor is None:
            return found


async def one(store: World) -> WorkflowSummary:
    (found,) = await listed(store)
    return found


async def run_all(store: World, worker: str, number: int, outcome: Outcome | None = None) -> None:
    for _ in range(number):
        await store.claim_and_settle(worker, outcome)


async def watched(store: World) -> dict[str, WorkflowState]:
    """Look at the workflows as the maintenance does, until none is due. Which have ended?"""
    found: dict[str, WorkflowState] = {}
    while True:
        round = await store.run(store.ops.watch_workflows())
        found |= round.ended
        if not round.more:
            return found


async def ends(store: World) -> dict[WorkflowState, int]:
    """How many have ever ended, by their state."""

    @reads
    def read(self: Any) -> Flow[Any]:
        _, (stored,) = yield from self.read_documents(KIND, [ENDS])
        return ends_of(stored)

    counts: WorkflowEnds = await store.run(read(store.ops))
    return counts.states


async def stored(store: World) -> list[Document]:
    """The documents that there are of workflows."""

    @reads
    def read(self: Any) -> Flow[list[Document]]:
        _, found = yield from self.list_documents(KIND, Order.OLDEST, 1_000)
        return list(found)

    return await store.run(read(store.ops))


async def documents(store: World) -> int:
    """How many documents there are of workflows."""
    return len(await stored(store))


# -- submission ------------------------------------------------------------------------------------


async def test_a_workflow_is_recorded_with_its_tasks(store: World) -> None:
    tasks = members(new_run(3), CHAIN)
    answers = await store.run(store.ops.submit_workflow(tasks))
    assert [answer.task_id for answer in answers] == [task.task_id for task in tasks]
    assert [answer.state for answer in answers] == ["queued", "scheduled", "scheduled"]
    assert not any(answer.known for answer in answers)
    found = await one(store)
    assert found.workflow_id == tasks[0].spec.workflow_id
    assert (found.name, found.state, found.tasks, found.ended_at) == ("order", "running", 3, None)
    assert found.counts == {State.QUEUED: 1, State.SCHEDULED: 2}
    first = await store.task(tasks[0].task_id)
    assert abs((found.created_at - first.created_at).total_seconds()) < 60


async def test_the_same_again_changes_nothing(store: World) -> None:
    tasks = members(new_run(3), CHAIN)
    await store.run(store.ops.submit_workflow(tasks))
    before = await one(store)
    answers = await store.run(store.ops.submit_workflow(tasks))
    assert all(answer.known for answer in answers)
    assert await one(store) == before
    other = [replace(task, payload=b'{"other":1}') for task in tasks]
    with pytest.raises(TaskIdConflict):
        await store.run(store.ops.submit_workflow(other))
    assert await one(store) == before
    assert await store.census() == {State.QUEUED: 1, State.SCHEDULED: 2}


async def test_all_or_none(store: World) -> None:
    tasks = members(new_run(3), CHAIN, depends_on=[new_id()])
    with pytest.raises(UnknownDependency):
        await store.run(store.ops.submit_workflow(tasks))
    assert await listed(store) == []
    assert await store.census() == {}


def _others(tasks: Sequence[NewTask]) -> list[list[NewTask]]:
    """What is not one whole workflow."""
    strange = members(new_run(3), CHAIN)
    membership = tasks[0].spec.membership
    assert membership is not None
    renamed = replace(tasks[0].spec, membership=replace(membership, name="x"))
    return [
        [],
        list(tasks[1:]),
        [*tasks[1:], strange[0]],
        [replace(tasks[0], spec=renamed), *tasks[1:]],
        [tasks[0], tasks[0], tasks[2]],
    ]


async def test_what_is_no_whole_workflow(store: World) -> None:
    for others in _others(members(new_run(3), CHAIN)):
        with pytest.raises(InvalidWorkflow, match="all of its tasks at once"):
            await store.run(store.ops.submit_workflow(others))
    assert await store.census() == {}


async def test_two_processes_submit_the_same_at_once(store: World) -> None:
    for _ in range(10):
        tasks = members(new_run(3), CHAIN)
        one, other = store.processes(2)
        answers = await asyncio.gather(
            *(each.run(each.ops.submit_workflow(tasks)) for each in (one, other))
        )
        assert sum(answer.known for each in answers for answer in each) == 3
    found = await listed(store)
    assert [each.tasks for each in found] == [3] * 10
    assert await store.census() == {State.QUEUED: 10, State.SCHEDULED: 20}


@pytest.mark.local
async def test_who_submits_dies(store: World) -> None:
    """Between any two calls: all of it is stored, or nothing, and the next one repeats it."""
    for calls in count():
        tasks = members(new_run(3), CHAIN)
        workflow_id = tasks[0].spec.workflow_id
        assert workflow_id is not None
        try:
            await store.run(stopped(store.ops.submit_workflow(tasks), calls))
            dead = False
        except Killed:
            dead = True
        there = await store.run(store.ops.workflow(workflow_id))
        recorded = any(each.workflow_id == workflow_id for each in await listed(store))
        assert recorded == (there is not None)
        await store.run(store.ops.submit_workflow(tasks))
        assert len(await listed(store)) == calls + 1
        assert await documents(store) == 2 * (calls + 1)
        if not dead:
            break
    assert calls >= 2


@pytest.mark.local
@pytest.mark.parametrize("store", TRANSACTIONAL, indirect=True)
async def test_inside_a_transaction_of_the_caller(store: World) -> None:
    class Regret(Exception):
        pass

    tasks = members(new_run(3), CHAIN)

    async def change_of_mind() -> None:
        async with store.backend.driver.transaction() as transaction:
            await transaction.run(store.ops.submit_workflow(tasks))
            raise Regret

    with pytest.raises(Regret):
        await change_of_mind()
    assert (await listed(store), await store.census()) == ([], {})
    async with store.backend.driver.transaction() as transaction:
        await transaction.run(store.ops.submit_workflow(tasks))
    assert (await one(store)).tasks == 3


@pytest.mark.local
@pytest.mark.parametrize("store", ["postgres-oldest", "postgres-newest"], indirect=True)
async def test_a_long_transaction_holds_up_nobody(store: World) -> None:
    async with store.backend.driver.transaction() as transaction:
        await transaction.run(store.ops.submit_workflow(members(new_run(3), CHAIN)))
        await submit(store)
        assert await watched(store) == {}
        assert len(await listed(store)) == 1
    assert len(await listed(store)) == 2


async def test_deleted_tasks_are_stored_again(store: World) -> None:
    tasks = members(new_run(1), [[]])
    await store.run(store.ops.submit_workflow(tasks))
    await store.run(store.ops.cancel([tasks[0].task_id]))
    await store.run(store.ops.delete([tasks[0].task_id]))
    await store.run(store.ops.submit_workflow(tasks))
    assert (await one(store)).state is WorkflowState.RUNNING


# -- the list --------------------------------------------------------------------------------------


async def test_the_newest_come_first_in_pages(store: World) -> None:
    ids = []
    for _ in range(5):
        ids.append(await submit(store))
        await store.advance(1)
    first = await store.run(store.ops.workflow_page(ALL, 2))
    assert [each.workflow_id for each in first.workflows] == [ids[4], ids[3]]
    second = await store.run(store.ops.workflow_page(ALL, 2, first.next_cursor))
    assert [each.workflow_id for each in second.workflows] == [ids[2], ids[1]]
    third = await store.run(store.ops.workflow_page(ALL, 2, second.next_cursor))
    assert [each.workflow_id for each in third.workflows] == [ids[0]]
    assert third.next_cursor is None
    for wrong in ("x", "1:x", f"-1:{ids[0]}", f"{'1' * 19}:{ids[0]}"):
        with pytest.raises(InvalidCursor):
            await store.run(store.ops.workflow_page(ALL, 2, wrong))
    for limit in (0, 101):
        with pytest.raises(InvalidFilter):
            await store.run(store.ops.workflow_page(ALL, limit))


async def test_by_state_and_name(store: World) -> None:
    worker = await store.worker()
    done = await submit(store)
    await run_all(store, worker, 3)
    bad = await submit(store, max_retries=0)
    await run_all(store, worker, 1, failure())
    tasks = members(new_run(1), [[]])
    membership = tasks[0].spec.membership
    assert membership is not None
    spec = replace(tasks[0].spec, membership=replace(membership, name="other"))
    await store.run(store.ops.submit_workflow([replace(tasks[0], spec=spec)]))

    async def found(**wanted: Any) -> list[str]:
        return [each.workflow_id for each in await listed(store, new_workflow_filter(**wanted))]

    for _ in range(2):  # before and after their ends were noticed
        assert await found(state="completed") == [done]
        assert await found(state=["failed", "completed"]) == [bad, done]
        assert await found(state="running") == [tasks[0].spec.workflow_id]
        assert await found(name="other") == [tasks[0].spec.workflow_id]
        assert await found(name="order", state="cancelled") == []
        assert await found(name="nothing") == []
        await store.advance(60)
        with suppress(NotSupported):
            await watched(store)


@pytest.mark.local
async def test_a_page_looks_at_so_many_tasks(store: World) -> None:
    for _ in range(3):
        await submit(store, [[]] * limits.WORKFLOW_NODES)
    await submit(store)
    page = await store.run(store.ops.workflow_page())
    assert [each.tasks for each in page.workflows] == [3, 999, 999]
    rest = await store.run(store.ops.workflow_page(ALL, 50, page.next_cursor))
    assert ([each.tasks for each in rest.workflows], rest.next_cursor) == ([999], None)


@pytest.mark.local
async def test_more_records_than_are_read_at_once(store: World) -> None:
    for _ in range(limits.WORKFLOW_PAGE + 5):
        await submit(store, [[]])
    assert len(await listed(store)) == limits.WORKFLOW_PAGE + 5
    await store.advance(60)
    assert await watched(store) == {}
    nothing = await store.run(store.ops.workflow_page(new_workflow_filter(name="x")))
    assert (nothing.workflows, nothing.next_cursor is None) == ([], False)


# -- ends ------------------------------------------------------------------------------------------


@pytest.mark.local
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_an_end_is_noticed_once(store: World, end: str) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, max_retries=0)
    assert await watched(store) == {}
    if end == "completed":
        await run_all(store, worker, 3)
    elif end == "failed":
        await run_all(store, worker, 1, failure())
    else:
        await store.run(store.ops.cancel_workflow(workflow_id))
    before = await one(store)
    assert (before.state, before.ended_at is None) == (end, False)
    await store.advance(60)
    assert await watched(store) == {workflow_id: WorkflowState(end)}
    assert await one(store) == before
    await store.advance(60)
    assert await watched(store) == {}
    assert await ends(store) == {WorkflowState(end): 1}
    assert await documents(store) == 2, "the record and the counts"


@pytest.mark.local
async def test_it_is_remembered_for_as_long_as_failed_tasks(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store)
    await run_all(store, worker, 3)
    before = await one(store)
    await store.advance(60)
    await watched(store)
    await store.advance(2 * 86_400)
    settings = await store.run(store.ops.settings())
    pruned = await store.run(store.ops.prune(settings.retention))
    assert pruned.tasks == 3
    assert await store.run(store.ops.workflow(workflow_id)) is None
    assert await one(store) == before
    await store.advance(WEEK)
    assert await listed(store) == []
    later = await submit(store, [[]])
    await store.run(store.ops.cancel_workflow(later))
    await store.advance(60)
    await watched(store)
    assert await documents(store) == 2


@pytest.mark.local
async def test_one_whose_tasks_were_deleted_is_forgotten(store: World) -> None:
    workflow_id = await submit(store, [[]])
    await store.run(store.ops.cancel_workflow(workflow_id))
    await store.run(store.ops.delete([numbered(workflow_id, 1)]))
    await store.advance(60)
    assert await watched(store) == {}
    assert await documents(store) == 0


@pytest.mark.local
async def test_a_task_that_is_replayed_runs_in_the_list(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[]], max_retries=0)
    await run_all(store, worker, 1, failure())
    await store.advance(60)
    await watched(store)
    await store.run(store.ops.replay([numbered(workflow_id, 1)]))
    assert (await one(store)).state is WorkflowState.RUNNING


@pytest.mark.local
async def test_a_workflow_that_is_resumed_ends_again(store: World) -> None:
    worker = await store.worker()
    workflow_id = await submit(store, [[], [1]], max_retries=0)
    await run_all(store, worker, 1, failure())
    await store.advance(60)
    assert await watched(store) == {workflow_id: WorkflowState.FAILED}
    await store.run(store.ops.resume_workflow(workflow_id))
    worker = await store.worker()
    for _ in range(2):
        await run_all(store, worker, 1)
    assert (await one(store)).state is WorkflowState.COMPLETED
    await store.advance(60)
    assert await watched(store) == {workflow_id: WorkflowState.COMPLETED}
    worker = await store.worker()
    await store.run(store.ops.resume_workflow(workflow_id, from_node="n1"))
    assert (await one(store)).state is WorkflowState.RUNNING


async def test_a_workflow_that_is_deleted_leaves_the_list(store: World) -> None:
    workflow_id = await submit(store)
    await store.run(store.ops.cancel_workflow(workflow_id))
    assert (await one(store)).state is WorkflowState.CANCELLED
    await store.run(store.ops.delete_workflow(workflow_id))
    assert await listed(store) == []


@pytest.mark.local
async def test_looks_become_rare(store: World) -> None:
    await submit(store)
    versions = []
    for _ in range(120):
        await store.advance(1)
        assert await watched(store) == {}
        (watch, _) = await stored(store)
        versions.append(watch.version)
    assert 5 < versions[-1] < 30
    assert versions[59] < versions[-1], "they do not end"


@pytest.mark.local
async def test_two_leaders_count_an_end_once(store: World) -> None:
    worker = await store.worker()
    ids = {await submit(store, [[]]) for _ in range(5)}
    await run_all(store, worker, 5)
    await store.advance(60)
    leaders = store.processes(2)
    rounds = await asyncio.gather(*(each.run(each.ops.watch_workflows()) for each in leaders))
    assert sorted(each for round in rounds for each in round.ended) == sorted(ids)
    assert await ends(store) == {WorkflowState.COMPLETED: 5}


@pytest.mark.local
async def test_a_leader_dies_before_it_has_noted_an_end(store: World) -> None:
    worker = await store.worker()
    for calls in count():
        workflow_id = await submit(store, [[]])
        await run_all(store, worker, 1)
        await store.advance(60)
        try:
            await store.run(stopped(store.ops.watch_workflows(), calls))
            dead = False
        except Killed:
            dead = True
        await watched(store)
        assert await ends(store) == {WorkflowState.COMPLETED: calls + 1}
        (newest, *_) = await listed(store)
        assert (newest.workflow_id, newest.state) == (workflow_id, "completed")
        if not dead:
            break
    assert calls >= 3


@pytest.mark.local
async def test_a_round_is_bounded(store: World) -> None:
    for _ in range(3):
        workflow_id = await submit(store, [[]] * 600)
        await store.run(store.ops.cancel_workflow(workflow_id))
    await store.advance(60)
    sizes = []
    while True:
        round = await store.run(store.ops.watch_workflows())
        sizes.append(len(round.ended))
        if not round.more:
            break
    assert sizes == [2, 1]


@pytest.mark.local
async def test_plain_tasks_leave_no_record(store: World) -> None:
    await store.submit()
    await store.submit_all(members(new_run(3), CHAIN))
    op: Op[Any] = store.ops.watch_workflows()
    assert (await store.run(op)).ended == {}
    assert await documents(store) == 0


@pytest.mark.local
async def test_the_maintenance_looks_at_them(store: World) -> None:
    """Two candidates: the first dies before it has looked, the second takes its place."""
    worker = await store.worker()
    workflow_id = await submit(store, [[]])
    await run_all(store, worker, 1)
    first = asyncio.create_task(store.keeper("first", pace=0.1).run())
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await store.advance(60)
    second = asyncio.create_task(store.keeper("second", pace=0.1).run())
    while not await ends(store):  # noqa: ASYNC110 (another task notes them in the store)
        await asyncio.sleep(0.05)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert await ends(store) == {WorkflowState.COMPLETED: 1}
    assert (await one(store)).workflow_id == workflow_id


# -- bounds and seals ------------------------------------------------------------------------------


@pytest.mark.local
async def test_a_sealed_store(store: World) -> None:
    sealed = keyed(store, Key("k1", b"1" * 32))
    tasks = members(new_run(3), CHAIN, payload={"secret": 7})
    for _ in range(2):
        await sealed.run(sealed.ops.submit_workflow(tasks))
    (first,) = await store.run(store.ops.get([tasks[0].task_id]))
    assert first is not None
    assert first.payload.startswith(b'{"$sealed"')
    assert (await one(sealed)).tasks == 3


@pytest.mark.local
async def test_a_store_that_takes_no_plain_text(store: World) -> None:
    await store.run(store.ops.set_encryption(Encryption.REQUIRED))
    with pytest.raises(EncryptionRequired):
        await submit(store, payload={"n": 1})
    assert await documents(store) == 0


@pytest.mark.local
async def test_within_bounds(store: World) -> None:
    mine = Bounds("acme", own=True, queues=frozenset({"default"}))
    own = BoundOperations(store.ops, mine)
    tasks = [mine.own_task(task) for task in members(new_run(3), CHAIN)]
    await store.run(own.submit_workflow(tasks))
    others = await submit(store)
    elsewhere = await submit(store, queue="other")
    page = await store.run(own.workflow_page())
    assert [each.workflow_id for each in page.workflows] == [tasks[0].spec.workflow_id]
    queue = BoundOperations(store.ops, Bounds("acme", queues=frozenset({"other"})))
    page = await store.run(queue.workflow_page())
    assert [each.workflow_id for each in page.workflows] == [elsewhere]
    assert len(await listed(store)) == 3
    assert others
    with pytest.raises(OutOfBounds):
        await store.run(own.submit_workflow(members(new_run(3), CHAIN)))


async def test_a_key_has_one_workflow(store: World) -> None:
    if store.behind is not store:
        with pytest.raises(NotSupported):
            await store.run(store.ops.workflow_id_for("k", new_id()))
        return
    first, second = new_id(), new_id()
    one, other = store.processes(2)
    found = await asyncio.gather(
        one.run(one.ops.workflow_id_for("k", first)),
        other.run(other.ops.workflow_id_for("k", second)),
    )
    assert found[0] == found[1]
    assert await store.run(store.ops.workflow_id_for("l", second)) == second
    await store.advance(86_401)
    assert await store.run(store.ops.workflow_id_for("k", second)) == second
