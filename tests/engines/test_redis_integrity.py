"""Whatever happens, the keys of a Redis store agree with each other; in the end none is left."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from fairlane import engines
from fairlane.core.breaker import Breaker
from fairlane.core.errors import Conflict, UnknownDependency
from fairlane.core.ids import new_id
from fairlane.core.model import Claimed, NewTask, TaskError
from fairlane.core.outcomes import Completed, Failed, Outcome, Released, Snoozed
from fairlane.core.retention import Retention
from fairlane.core.states import TERMINAL, State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Mode, Unique
from fairlane.engines.redis.record import unpacked
from tests.conftest import Servers
from tests.fixtures.stores import World, opened, settlement

P = b"{fairlane}:"
OUTCOMES: list[Outcome] = [
    Completed(b"1"),
    Completed(b"2"),
    Failed(TaskError("x"), after=0),
    Failed(TaskError("x"), after=50),
    Failed(TaskError("x", retriable=False)),
    Released(),
    Snoozed(20),
]


class Keys:
    """The store as a Redis shell sees it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        tasks, live, finished = (self.hash(name) for name in (b"tasks", b"live", b"finished"))
        assert not set(live) & set(finished)
        assert set(live) | set(finished) <= set(tasks)
        self.records = {
            task_id: unpacked(finished.get(task_id) or live.get(task_id) or tasks[task_id])
            for task_id in tasks
        }
        self.finished = set(finished)

    def hash(self, name: bytes) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self._client.hgetall(P + name)
        return found

    def zset(self, name: bytes) -> set[bytes]:
        return set(self._client.zrange(P + name, 0, -1))

    def scores(self, name: bytes) -> dict[bytes, int]:
        found = self._client.zrange(P + name, 0, -1, withscores=True)
        return {member: int(score) for member, score in found}

    def members(self, name: bytes) -> set[bytes]:
        return set(self._client.smembers(P + name))

    def named(self, name: bytes) -> Iterator[bytes]:
        """What follows a name in the keys that begin with it."""
        for key in self._client.scan_iter(match=P + name + b"*"):
            yield key[len(P + name) :]

    def of(self, *states: State) -> set[bytes]:
        codes = {state.code for state in states}
        return {task_id for task_id, record in self.records.items() if record.state in codes}


def check(keys: Keys, limited: set[int]) -> None:
    """Every key says the same as the records."""
    records = keys.records
    assert keys.zset(b"index") == set(records)
    assert keys.finished == keys.of(*TERMINAL)
    for state in TERMINAL - {State.COMPLETED}:
        assert keys.zset(b"ended_badly:%d" % state.code) == keys.of(state)
    bonds = keys.hash(b"bonds")
    waiting = keys.of(State.SCHEDULED, State.RETRYING)
    due = {name: keys.scores(b"due:" + name) for name in keys.named(b"due:")}
    assert {(each, name, at) for name, ids in due.items() for each, at in ids.items()} == {
        (each, b"%d:%d" % (record.lane, record.level), record.due_at)
        for each, record in ((each, records[each]) for each in waiting)
        if record.due_at
    }
    assert keys.scores(b"due_streams") == {name: min(ids.values()) for name, ids in due.items()}
    assert set(bonds) == {each for each in waiting if not records[each].due_at}
    pairs = {
        (bond[at : at + 16], child)
        for child, bond in bonds.items()
        for at in range(1, len(bond), 16)
    }
    assert pairs == {
        (parent, child)
        for parent in keys.named(b"children:")
        for child in keys.members(b"children:" + parent)
    }
    owed = set(keys.hash(b"ended_parents"))
    assert {parent for parent, _ in pairs} - owed <= set(records) - keys.finished
    parents = keys.members(b"parents")
    assert parents == set(keys.named(b"dependents:")) <= set(records)
    assert {parent for parent, _ in pairs} - owed <= parents
    queued = {
        (each, name) for name in keys.named(b"queue:") for each in keys.zset(b"queue:" + name)
    }
    assert queued == {
        (each, b"%d:%d" % (records[each].lane, records[each].level))
        for each in keys.of(State.QUEUED)
    }
    assert keys.members(b"streams") == set(keys.named(b"queue:"))
    held = {
        (run, worker) for worker in keys.named(b"held:") for run in keys.members(b"held:" + worker)
    }
    assert held == {
        (each + records[each].attempt.to_bytes(4), records[each].worker_id.encode())
        for each in keys.of(State.EXECUTING)
    }
    expiring = keys.of(State.SCHEDULED, State.RETRYING, State.QUEUED)
    assert keys.zset(b"expiring") == {each for each in expiring if records[each].expires_at}
    taken = {(run, records[run[:16]].lane) for run, _ in held}
    for worker in keys.named(b"lingering:"):
        for run, place in keys.hash(b"lingering:" + worker).items():
            taken.add((run, int.from_bytes(place[:2])))
    slots = {
        (run, int(lane)) for lane in keys.named(b"slots:") for run in keys.members(b"slots:" + lane)
    }
    assert {each for each in slots if each[1] in limited} == {
        each for each in taken if each[1] in limited
    }
    holds = keys.hash(b"holds")
    assert set(holds) <= set(records)
    for key, task_id in keys.hash(b"uniques").items():
        assert holds[task_id][:16] == key
        mask = int.from_bytes(holds[task_id][16:])
        assert task_id not in keys.finished or mask >> records[task_id].state & 1
    for name in (b"errors", b"progress", b"runs"):
        assert set(keys.hash(name)) <= set(records)


class Program:
    """Random steps on a store, by everyone who may do something to it."""

    def __init__(self, store: World, seed: int) -> None:
        self.store = store
        self.rng = random.Random(seed)
        self.ids: list[str] = []
        self.held: list[Claimed] = []

    def some(self, count: int) -> list[str]:
        return self.rng.sample(self.ids, min(count, len(self.ids)))

    def task(self, earlier: list[str]) -> NewTask:
        rng = self.rng
        options: dict[str, Any] = {"priority": rng.randrange(11), "max_retries": rng.randrange(3)}
        if rng.random() < 0.3:
            options["delay_seconds"] = rng.choice([5, 40])
        if rng.random() < 0.3:
            options["idempotency_key"] = f"key-{rng.randrange(30)}-{new_id()}"
        if rng.random() < 0.4:
            states = rng.choice([frozenset(State) - TERMINAL, frozenset(State)])
            options["unique"] = Unique(
                states=states, mode=rng.choice(list(Mode)), period=rng.choice([None, 30])
            )
        parents = earlier + self.ids[-40:]
        if parents and rng.random() < 0.5:
            options["depends_on"] = rng.sample(parents, min(len(parents), rng.randrange(1, 4)))
            options["on_parent_failure"] = rng.choice(["cancel", "continue"])
        return new_task(rng.choice("abc"), {"n": rng.randrange(12)}, **options)

    async def step(self) -> None:
        rng, store, ops = self.rng, self.store, self.store.ops
        match rng.randrange(9):
            case 0 | 1:
                batch: list[NewTask] = []
                for _ in range(rng.randrange(1, 12)):
                    batch.append(self.task([task.task_id for task in batch]))
                with suppress(Conflict, UnknownDependency):
                    self.ids += await store.submit_all(batch)
            case 2 | 3:
                worker = await store.worker(lease=60)
                self.held += await store.claim(worker, rng.randrange(1, 12))
            case 4 | 5:
                rng.shuffle(self.held)
                batch_of = [self.held.pop() for _ in range(min(6, len(self.held)))]
                settlements = [settlement(task, rng.choice(OUTCOMES)) for task in batch_of]
                await store.run(ops.settle(settlements))
            case 6:
                await store.run(ops.cancel(self.some(3)))
                await store.run(ops.replay(self.some(3), level=rng.choice([None, 9])))
                await store.run(ops.delete(self.some(3)))
            case 7:
                await store.advance(rng.choice([1, 10, 70]))
                await store.reap()
            case _:
                keep = rng.choice([20, 1_000])
                await store.run(ops.prune(Retention(keep, keep, keep, keep, 100, 100)))


@pytest.fixture(params=["redis", "valkey"])
async def store(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


@pytest.mark.parametrize("seed", range(6))
async def test_keys_agree_whatever_happens(store: World, seed: int) -> None:
    program = Program(store, seed)
    await store.run(store.ops.limit("a", concurrency=4))
    await store.run(store.ops.limit("b", breaker=Breaker(2, 1_000, 30)))
    with Redis.from_url(store.url) as client:
        for number in range(250):
            await program.step()
            if number % 5 == 0:
                facts = await store.run(store.ops.facts())
                limited = {
                    lane.id
                    for lane in facts.lanes.values()
                    if facts.controls.types.get(lane.type) and facts.controls.types[lane.type].slots
                }
                keys = Keys(client)
                check(keys, limited)
                counted = await store.census()
                assert counted == {state: len(keys.of(state)) for state in State if keys.of(state)}
        await end(store, program)
        left = {key[len(P) :].partition(b":")[0]: key for key in client.scan_iter()}
        assert {name for name in left if client.type(left[name]) != b"stream"} <= {
            b"meta",
            b"controls",
            b"lanes",
            b"tally",
            b"tally_time",
            b"circuits",
            b"buckets",
        }
        assert sum(client.xlen(key) for key in client.scan_iter(_type="stream")) == 0


async def end(store: World, program: Program) -> None:
    """Everyone leaves, everything is cancelled and forgotten."""
    for worker in await store.run(store.ops.workers()):
        await store.run(store.ops.forget(worker.worker_id))
    await store.reap()
    for start in range(0, len(program.ids), 500):
        await store.run(store.ops.cancel(program.ids[start : start + 500]))
    await store.advance(2 * 86_400)
    while (await store.run(store.ops.prune(Retention(0, 0, 0, 0, 0, 0)))).more:
        pass
    assert await store.census() == {}


def test_a_store_that_somebody_else_makes_meanwhile_is_no_stranger() -> None:
    (keys, made) = ((b"0", [P + b"meta"]), b"1")
    looking = engines.open("redis://127.0.0.1:1/0").ops.version().flow()
    next(looking)
    looking.send(None)
    looking.send(keys)
    with pytest.raises(StopIteration) as answer:
        looking.send(made)
    assert answer.value.value == 1
