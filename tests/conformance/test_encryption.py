"""Encryption at rest: every engine, with keys, holds nothing that says anything."""

from __future__ import annotations

import msgspec
import pytest

from fairlane.core import submission, uniqueness
from fairlane.core.backend import Backend
from fairlane.core.errors import (
    IdempotencyConflict,
    InvalidPayload,
    KeyMissing,
    SealBroken,
    TaskIdConflict,
    UnknownType,
)
from fairlane.core.filters import EVERYTHING
from fairlane.core.model import NewTask, Verdict
from fairlane.core.outcomes import Completed
from fairlane.core.recurrence import every
from fairlane.core.schedules import NewSchedule, Schedule, new_schedule
from fairlane.core.sealing import Key, check_open, parsed
from fairlane.core.submission import new_task
from fairlane.engines.sealing.operations import sealing_operations
from tests.fixtures.raw import written
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

OLD, NEW = Key("k1", b"1" * 32), Key("k2", b"2" * 32)
SECRET = b"the cat sat on the mat"
WORDS = {"said": SECRET.decode()}
JSON = msgspec.json.encode(WORDS)


def keyed(store: World, *keys: Key) -> World:
    """The same store as a process sees it that has these keys."""
    return World(Backend(sealing_operations(store.ops, keys), store.backend.driver), store.url, {})


def daily(payload: bytes = JSON) -> NewSchedule:
    schedule = new_schedule("daily", every(86_400), new_task("work", WORDS))
    return msgspec.structs.replace(schedule, payload=payload)


async def put(world: World, schedule: NewSchedule) -> Schedule:
    (stored,) = await world.run(world.ops.put_schedules([schedule]))
    return stored


async def payload_of(world: World) -> bytes:
    """The payload of the schedule, as this process reads it."""
    (schedule,) = await world.run(world.ops.schedules(["daily"]))
    assert schedule is not None
    return schedule.payload


async def test_a_type_that_nobody_handles_is_refused_with_keys_too(store: World) -> None:
    world = keyed(store, OLD)
    with pytest.raises(UnknownType):
        await world.run(world.ops.put_schedules([daily()], allow_unknown_type=False))
    assert await world.run(world.ops.schedules(["daily"])) == [None]


async def test_what_is_stored_says_nothing_and_what_is_answered_is_plain(store: World) -> None:
    world = keyed(store, OLD)
    task_id = await world.submit(payload=WORDS, idempotency_key="once", unique=True)
    task = await world.claim_one(await world.worker())
    assert task.payload == JSON
    await world.settle(task, Completed(JSON))
    assert (await put(world, daily())).payload == JSON

    found = await world.task(task_id)
    assert (found.payload, found.result) == (JSON, JSON)
    (listed,) = (await world.run(world.ops.page(EVERYTHING, 10))).tasks
    assert (listed.payload, listed.result) == (JSON, JSON)
    assert await payload_of(world) == JSON
    (paged,) = (await world.run(world.ops.schedule_page())).schedules
    assert paged.payload == JSON

    raw = await written(store.backend, store.url)
    hold = uniqueness.hold("work", JSON, unique=True)
    assert hold is not None
    for telling in (SECRET, submission.fingerprint("work", JSON), hold.key):
        assert telling not in raw
    for value in ((await store.task(task_id)).payload, (await store.task(task_id)).result):
        assert value is not None
        assert parsed(value) is not None
        assert msgspec.json.decode(value).keys() == {"$sealed"}


async def test_without_keys_it_can_be_read(store: World) -> None:
    """Otherwise the test above would prove nothing."""
    await store.submit(payload=WORDS, idempotency_key="once", unique=True)
    await put(store, daily(b'{"other": "words"}'))
    raw = await written(store.backend, store.url)
    hold = uniqueness.hold("work", JSON, unique=True)
    assert hold is not None
    for telling in (SECRET, b"other", submission.fingerprint("work", JSON), hold.key):
        assert telling in raw


async def test_what_was_there_before_the_keys_still_works(store: World) -> None:
    task_id = await store.submit(payload=WORDS)
    await put(store, daily())
    world = keyed(store, OLD)
    assert await payload_of(world) == JSON
    await world.settle(await world.claim_one(await world.worker()), Completed(JSON))
    assert ((await world.task(task_id)).payload, (await world.task(task_id)).result) == (JSON, JSON)


async def test_a_schedule_goes_on_while_keys_are_rotated(store: World) -> None:
    """Its tasks have its payload as it was sealed. Declared again, it is sealed anew and no tick
    moves."""
    old, new = keyed(store, OLD), keyed(store, NEW, OLD)
    before = await put(old, daily())
    await store.advance(86_400)
    await store.run(store.ops.fire_due())  # without any key
    worker = await new.worker()
    assert (await new.claim_one(worker)).payload == JSON
    after = await put(new, daily())
    assert (after.payload, after.standing.since) == (JSON, before.standing.tick)
    assert await payload_of(keyed(store, NEW)) == JSON


async def test_keys_are_rotated(store: World) -> None:
    first = await keyed(store, OLD).submit(payload=WORDS)
    both = keyed(store, NEW, OLD)
    second = await both.submit(payload=WORDS)
    worker = await both.worker()
    tasks = await both.claim(worker)
    assert [task.payload for task in tasks] == [JSON, JSON]
    for task in tasks:
        await both.settle(task, Completed(JSON))
    new, old = keyed(store, NEW), keyed(store, OLD)
    assert parsed((await new.task(first)).payload)  # which was sealed by the old one
    assert [(await new.task(each)).result for each in (first, second)] == [JSON, JSON]
    assert (await new.task(second)).payload == (await old.task(first)).payload == JSON


async def test_a_schedule_that_is_declared_again_is_sealed_with_the_new_key(store: World) -> None:
    for keys, version in (((OLD,), 1), ((OLD, NEW), 1), ((NEW, OLD), 2), ((NEW, OLD), 2)):
        stored = await put(keyed(store, *keys), daily())
        assert (stored.payload, stored.standing.version) == (JSON, version)
    assert await payload_of(keyed(store, NEW)) == JSON


async def test_whoever_has_no_key_sees_that_it_is_sealed(store: World) -> None:
    task_id = await keyed(store, OLD).submit(payload=WORDS)
    for world in (store, keyed(store, NEW)):
        (listed,) = (await world.run(world.ops.page(EVERYTHING, 10))).tasks
        assert listed == await world.task(task_id)
        with pytest.raises(KeyMissing, match="k1"):
            check_open(listed.payload)
    for world in (store, keyed(store, NEW)):
        task = await world.claim_one(await world.worker())
        with pytest.raises(KeyMissing, match="k1"):
            check_open(task.payload)
        await world.settle(task)
        await world.run(world.ops.delete([task_id]))
        task_id = await keyed(store, OLD).submit(payload=WORDS)


async def test_what_is_altered_or_from_another_task_is_refused(store: World) -> None:
    world = keyed(store, OLD)
    victim = await world.submit(payload=WORDS)
    sealed = (await store.task(victim)).payload
    await store.run(store.ops.cancel([victim]))
    middle = sealed.rindex(b".") + 20
    altered = sealed[:middle] + bytes([sealed[middle] ^ 1]) + sealed[middle + 1 :]

    def forged(payload: bytes) -> NewTask:
        return msgspec.structs.replace(new_task("work"), payload=payload)

    # As somebody would who can write to the database, but has no key.
    ids = await store.submit_all([forged(sealed), forged(altered)])
    for task in await world.claim(await world.worker()):
        with pytest.raises(SealBroken):
            check_open(task.payload)
        await store.settle(task, Completed(sealed))
    for task_id in ids:
        result = (await world.task(task_id)).result
        assert result is not None
        with pytest.raises(SealBroken):
            check_open(result)
    await put(store, daily(sealed))
    with pytest.raises(SealBroken):
        check_open(await payload_of(world))


async def test_sealed_payloads_are_not_submitted_again(store: World) -> None:
    world = keyed(store, OLD)
    sealed = (await store.task(await world.submit(payload=WORDS))).payload
    for each in (world, store):
        with pytest.raises(InvalidPayload, match="reserved"):
            await each.submit(payload=sealed)
    forged = msgspec.structs.replace(new_task("work"), payload=sealed)
    with pytest.raises(InvalidPayload, match="reserved"):
        await world.submit_all([forged])
    assert await store.depth() == 1


async def test_an_id_stands_for_one_payload(store: World) -> None:
    task_id = await keyed(store, OLD).submit(payload=WORDS)
    for keys in ((OLD,), (OLD, NEW), (NEW, OLD)):
        world = keyed(store, *keys)
        assert await world.submit(payload=WORDS, task_id=task_id) == task_id
        with pytest.raises(TaskIdConflict):
            await world.submit(payload={"said": "no"}, task_id=task_id)
    assert await store.depth() == 1


async def test_another_result_afterwards_is_refused(store: World) -> None:
    """A result differs each time it is sealed: who has the key compares what is in it."""
    writer = keyed(store, OLD)
    task_id = await writer.submit(payload=WORDS)
    task = await writer.claim_one(await writer.worker())
    assert await writer.settle(task, Completed(b'{"a":1,"b":[2]}')) is Verdict.APPLIED
    before = await store.task(task_id)
    for keys in ((OLD,), (OLD, NEW), (NEW, OLD)):
        world = keyed(store, *keys)
        assert await world.settle(task, Completed(b'{ "b": [2], "a": 1 }')) is Verdict.APPLIED
        for other in (b'{"a":1,"b":[3]}', b'{"a":true,"b":[2]}', b"null"):
            assert await world.settle(task, Completed(other)) is Verdict.STALE
    # Nobody can tell without the key.
    assert await keyed(store, NEW).settle(task, Completed(b"null")) is Verdict.APPLIED
    assert await store.task(task_id) == before


async def test_the_same_is_the_same_while_keys_come(store: World) -> None:
    first = await keyed(store, OLD).submit(payload=WORDS, idempotency_key="once")
    only = await keyed(store, OLD).submit(payload=WORDS, unique=True)
    for keys in ((OLD,), (OLD, NEW), (NEW, OLD)):
        world = keyed(store, *keys)
        assert await world.submit(payload=WORDS, idempotency_key="once") == first
        assert await world.submit(payload=WORDS, unique=True) == only
        with pytest.raises(IdempotencyConflict):
            await world.submit(payload={"said": "no"}, idempotency_key="once")
    assert await store.depth() == 2
