"""A store that requires encryption takes no plain text, from nobody."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.core.encryption import Encryption
from fairlane.core.errors import EncryptionRequired
from fairlane.core.model import TaskError, Verdict
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.sealing import Key
from fairlane.core.states import State
from fairlane.core.submission import new_task
from tests.conformance.test_encryption import daily, keyed
from tests.fixtures.stores import TRANSACTIONAL, World, settlement

KEY = Key("k1", b"1" * 32)


async def say(store: World, wanted: Encryption, **options: bool) -> Encryption:
    behind = store.behind
    return await behind.run(behind.ops.set_encryption(wanted, **options))


async def said(store: World) -> Encryption:
    return await store.behind.run(store.behind.ops.encryption())


async def test_nothing_is_required_until_somebody_says_so(store: World) -> None:
    assert await said(store) is Encryption.UNDECIDED
    task_id = await store.submit(payload={"n": 1})
    await store.settle(await store.claim_one(await store.worker()), Completed(b"1"))
    assert await store.state(task_id) is State.COMPLETED


async def test_what_an_operator_said_stays(store: World) -> None:
    assert await say(store, Encryption.REQUIRED, unless_decided=True) is Encryption.REQUIRED
    assert await say(store, Encryption.OPTIONAL) is Encryption.OPTIONAL
    for _ in range(2):
        assert await say(store, Encryption.REQUIRED, unless_decided=True) is Encryption.OPTIONAL
    assert await said(store) is Encryption.OPTIONAL
    await store.submit()
    for _ in range(2):
        assert await say(store, Encryption.REQUIRED) is Encryption.REQUIRED
    assert await said(store) is Encryption.REQUIRED
    assert await say(store, Encryption.UNDECIDED) is Encryption.UNDECIDED
    assert await said(store) is Encryption.UNDECIDED


async def test_plain_payloads_are_refused_and_store_nothing(store: World) -> None:
    earlier = new_task("work", {"n": 1}, idempotency_key="once")
    parent, _ = await store.submit_all([new_task("work"), earlier])
    await say(store, Encryption.REQUIRED)
    for refused in (
        [new_task("work")],
        [new_task("work"), new_task("other", delay_seconds=5)],
        [new_task("work", depends_on=[parent])],
        [new_task("work", unique=True)],
        [new_task("work", idempotency_key="twice")],
        [new_task("work", task_id=parent)],
        [earlier],
        [msgspec.structs.replace(new_task("work"), payload=b'{"$sealed":"not so","n":1}')],
    ):
        with pytest.raises(EncryptionRequired, match="encryption_keys"):
            await store.submit_all(refused)
    assert await store.depth() == 2
    await say(store, Encryption.OPTIONAL)
    await store.submit(idempotency_key="twice")
    assert await store.depth() == 3


@pytest.mark.local
async def test_encrypted_payloads_and_results_are_accepted(store: World) -> None:
    await say(store, Encryption.REQUIRED)
    world = keyed(store, KEY)
    task_id = await world.submit(payload={"n": 1})
    await world.settle(await world.claim_one(await world.worker()), Completed(b"2"))
    task = await world.task(task_id)
    assert (task.payload, task.result) == (b'{"n":1}', b"2")
    await world.run(world.ops.put_schedules([daily()]))
    await world.run(world.ops.put_blob(f"{task_id}.{'0' * 64}", b"blob"))


async def test_plain_results_are_refused_and_the_run_goes_on(store: World) -> None:
    await store.submit_all([new_task("work"), new_task("work")])
    worker = await store.worker()
    first, second = await store.claim(worker)
    await say(store, Encryption.REQUIRED)
    failed = Failed(TaskError.of("no", retriable=False))
    plain = settlement(first, Completed(b"1"))
    for batch in ([plain], [plain, settlement(second, failed)]):
        with pytest.raises(EncryptionRequired, match="encryption_keys"):
            await store.run(store.ops.settle(batch))
    assert await store.census() == {State.EXECUTING: 2}
    # What says nothing is not refused.
    assert await store.settle(first) is Verdict.APPLIED
    assert await store.settle(second, failed) is Verdict.APPLIED
    assert await store.census() == {State.COMPLETED: 1, State.FAILED: 1}
    # Nor does a report that comes too late tell the store anything.
    with pytest.raises(EncryptionRequired):
        await store.settle(second, Completed(b"1"))


@pytest.mark.local
async def test_plain_schedules_and_blobs_are_refused(store: World) -> None:
    await say(store, Encryption.REQUIRED)
    with pytest.raises(EncryptionRequired):
        await store.run(store.ops.put_schedules([daily()]))
    with pytest.raises(EncryptionRequired):
        await store.run(store.ops.put_blob(f"{new_task('work').task_id}.{'0' * 64}", b"blob"))
    assert await store.run(store.ops.schedules(["daily"])) == [None]


@pytest.mark.local
@pytest.mark.parametrize("store", TRANSACTIONAL, indirect=True)
async def test_transactions_of_others_are_refused_too_and_stay_whole(store: World) -> None:
    await store.submit()
    task = await store.claim_one(await store.worker())
    await say(store, Encryption.REQUIRED)
    async with store.backend.driver.transaction() as transaction:
        with pytest.raises(EncryptionRequired):
            await transaction.run(store.ops.submit([new_task("work")]))
        with pytest.raises(EncryptionRequired):
            await transaction.run(store.ops.settle([settlement(task, Completed(b"1"))]))
        await transaction.run(store.ops.settle([settlement(task)]))
    assert await store.census() == {State.COMPLETED: 1}
