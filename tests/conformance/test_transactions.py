"""A handler's writes and the completion of its task, together or not at all."""

from __future__ import annotations

import pytest

from fairlane.core.errors import NotSupported
from fairlane.core.model import Verdict
from fairlane.core.outcomes import Completed
from fairlane.core.states import State
from tests.fixtures.stores import TRANSACTIONAL, World, settlement, verdicts_of

pytestmark = pytest.mark.local


class Regret(Exception):
    """What a handler raises that changed its mind."""


async def test_completion_commits_with_the_transaction(store: World) -> None:
    if not store.transactional:
        with pytest.raises(NotSupported):
            async with store.backend.driver.transaction():
                pass
        return
    worker = await store.worker()
    task_id = await store.submit()
    task = await store.claim_one(worker)
    async with store.backend.driver.transaction() as transaction:
        assert transaction.connection is not None
        verdicts = verdicts_of(
            await transaction.run(store.ops.settle([settlement(task, Completed(b"1"))]))
        )
        assert verdicts == [Verdict.APPLIED]
    done = await store.task(task_id)
    assert (done.status, done.result) == (State.COMPLETED, b"1")


async def test_nothing_remains_of_a_transaction_that_failed(store: World) -> None:
    if not store.transactional:
        with pytest.raises(NotSupported):
            store.backend.driver.join(object())
        return
    worker = await store.worker()
    task_id = await store.submit()
    task = await store.claim_one(worker)

    async def change_of_mind() -> None:
        async with store.backend.driver.transaction() as transaction:
            await transaction.run(store.ops.settle([settlement(task, Completed(b"1"))]))
            raise Regret

    with pytest.raises(Regret):
        await change_of_mind()
    assert await store.state(task_id) is State.EXECUTING
    assert await store.census() == {State.EXECUTING: 1}
    # And nothing is in anyone's way.
    assert await store.settle(task) is Verdict.APPLIED
    await store.submit()


@pytest.mark.parametrize("store", TRANSACTIONAL, indirect=True)
async def test_an_operation_that_fails_undoes_only_itself(store: World) -> None:
    worker = await store.worker()
    task_id = await store.submit()
    task = await store.claim_one(worker)
    async with store.backend.driver.transaction() as transaction:
        stale = settlement(task)
        verdicts = verdicts_of(await transaction.run(store.ops.settle([stale, stale])))
        assert verdicts == [Verdict.APPLIED, Verdict.APPLIED]
        with pytest.raises(ValueError, match="At most"):
            await transaction.run(store.ops.cancel([task_id] * 501))
    assert await store.state(task_id) is State.COMPLETED
