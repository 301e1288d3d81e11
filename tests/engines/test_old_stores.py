"""A store made by an earlier Fairlane opens with this one, whatever state its tasks are in.

What is in the stores, and how they were made: see `tests/fixtures/old_stores/make.py`.
"""

import json
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from redis import Redis

from fairlane.core.errors import SchemaTooOld
from fairlane.core.model import Verdict
from fairlane.core.recurrence import every
from fairlane.core.schedules import new_schedule
from fairlane.core.scheduling import Fired
from fairlane.core.states import State
from fairlane.core.store_settings import DEFAULT
from fairlane.core.submission import new_task
from fairlane.core.tokens import digest_of
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, World, opened

FOLDER = Path(__file__).parents[1] / "fixtures" / "old_stores"

RENAMED = {
    "priority": "level",
    "effective_priority": "effective_level",
    "status": "state",
    "timeout_seconds": "timeout",
    "required_capabilities": "capabilities",
    "assigned_worker_id": "worker_id",
}
"""Fields of a task that have another name today, by the name they had."""

ADDED: dict[str, dict[str, Any]] = {
    "lease": {"start_within": None},
    "completed_last_minute": {"completed_last_hour": 0},
    "p95_age_seconds": {"unserved": []},
    "attempts": {
        "trail": [],
        "owner": None,
        "scheduled_for": None,
        "inputs": {},
        "membership": None,
    },
    "exempt": {"subject": None, "own": False, "queues": None, "tags": {}},
    "open_until": {"timeout": 0.0},
}
"""Fields that were added since, with their values, by a field that was there before."""

AGES = {"expires_in", "oldest_age_seconds", "p50_age_seconds", "p95_age_seconds"}
"""What is counted from the moment of the answer."""


class Old:
    """A store as it was made, at the time when it was made."""

    def __init__(self, store: World, answers: dict[str, Any]) -> None:
        self.store = store
        self.answers = answers
        self.ids: dict[str, str] = {
            name: task["task_id"] for name, task in answers["tasks"].items()
        }

    async def migrate(self) -> None:
        run, ops = self.store.run, self.store.ops
        try:
            await run(ops.verify())
        except SchemaTooOld:
            await run(ops.migrate())
        await run(ops.verify())
        await self.store.advance(self.answers["time"] - time.time())

    async def states(self) -> dict[str, State]:
        tasks = await self.store.run(self.store.ops.get(list(self.ids.values())))
        return {name: task.status for name, task in zip(self.ids, tasks, strict=True) if task}


@pytest.fixture(params=[kind for kind in KINDS if kind != "sqlite-memory"])
async def old(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Old]:
    engine = {"sqlite-file": "sqlite", "redis": "redis", "valkey": "redis"}.get(
        request.param, "postgres"
    )
    answers = json.loads((FOLDER / f"{engine}.json").read_text())
    restore = {"sqlite": _sqlite, "postgres": _postgres, "redis": _redis}[engine]
    async with opened(request.param, servers, tmp_path, restore=restore) as store:
        made = Old(store, answers)
        await made.migrate()
        yield made


def _sqlite(url: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
        database.executescript((FOLDER / "sqlite.sql").read_text())


def _postgres(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((FOLDER / "postgres.sql").read_text().encode())
        # The journal is ordered by transactions: go on after those of the server it comes from.
        last = "SELECT max(xid)::text::bigint FROM fairlane.journal"
        while connection.execute(
            f"SELECT pg_current_xact_id()::text::bigint <= ({last})"
        ).fetchone() == (True,):
            pass


def _redis(url: str) -> None:
    with Redis.from_url(url) as client:
        for line in (FOLDER / "redis.jsonl").read_text().splitlines():
            client.execute_command(*(word.encode("latin-1") for word in json.loads(line)))


def _plain(answer: object) -> Any:
    return json.loads(msgspec.json.encode(answer, order="deterministic"))


def _expected(answer: Any) -> Any:
    """What was answered then, as it is to be answered now."""
    match answer:
        case dict():
            added = [fields for name, fields in ADDED.items() if name in answer]
            return {
                **{name: value for fields in added for name, value in fields.items()},
                **{
                    (RENAMED.get(name, name) if "task_id" in answer else name): (
                        pytest.approx(value, abs=60)
                        if name in AGES and value is not None
                        else _expected(value)
                    )
                    for name, value in answer.items()
                },
            }
        case list():
            return [_expected(each) for each in answer]
        case _:
            return answer


async def test_everything_reads_as_before(old: Old) -> None:
    run, ops = old.store.run, old.store.ops
    tasks = await run(ops.get(list(old.ids.values())))
    now = {
        "tasks": dict(zip(old.ids, tasks, strict=True)),
        "workers": await run(ops.workers()),
        "controls": await run(ops.controls()),
        "stats": await run(ops.stats()),
        "tokens": await run(ops.tokens()),
        "audit": await run(ops.audit(10)),
        "samples": await run(ops.samples(0, 10)),
        "events": await run(ops.events(None, 1_000)),
        "tail": await run(ops.tail()),
    }
    # Samples are lists. They did not count executing tasks yet, nor say when the store began.
    then = old.answers | {"samples": [[*sample, 0, 0] for sample in old.answers["samples"]]}
    for name, answer in now.items():
        assert _plain(answer) == _expected(then[name]), name


async def test_live_tasks_go_on(old: Old) -> None:
    store, ids = old.store, old.ids
    run, ops = store.run, store.ops

    # What the live worker holds is still its own; the rest can be claimed and settled.
    (held,) = [
        worker.current_tasks for worker in await run(ops.workers()) if worker.worker_id == "live"
    ]
    assert held == (ids["executing"],)
    skilled = frozenset({"gpu"})
    worker = await store.worker(capacity=20, lease=80_000.0, capabilities=skilled)
    claimed = {task.task_id: task for task in await store.claim(worker, 20, capabilities=skilled)}
    assert claimed.keys() == {ids[name] for name in ("queued", "unique", "keyed", "expiring")}
    await run(ops.pause(paused=False, queue="paused"))
    assert [task.task_id for task in await store.claim(worker)] == [ids["paused"]]
    for task in claimed.values():
        assert await store.settle(task) is Verdict.APPLIED

    # The dead worker's task is reaped, and may run again.
    assert await store.reap() == [Verdict.APPLIED]
    (lost,) = await run(ops.get([ids["lost"]]))
    assert lost is not None
    assert lost.status is State.QUEUED
    assert [attempt.outcome for attempt in lost.attempts] == ["returned"]
    again = await store.claim_one(worker)
    assert (again.task_id, again.attempt) == (ids["lost"], 2)
    assert await store.settle(again) is Verdict.APPLIED
    assert (await store.claim_one(worker)).task_id == ids["tolerant"]

    # What waits for its time comes due.
    await store.advance(4_000)
    due = {task.task_id for task in await store.claim(worker, 20)}
    assert due == {ids[name] for name in ("retrying", "snoozed", "scheduled")}

    # Operators cancel, replay and delete as before.
    cancelled = await run(ops.cancel([ids["executing"], ids["completed"]]))
    assert [each.applied for each in cancelled] == [True, False]
    assert (await old.states())["child"] is State.CANCELLED
    replayed = await run(ops.replay([ids["dead_letter"], ids["failed"], ids["cancelled"]]))
    assert [each.applied for each in replayed] == [True, True, True]
    assert {task.task_id for task in await store.claim(worker)} == {
        ids[name] for name in ("dead_letter", "failed", "cancelled")
    }
    deleted = await run(ops.delete([ids["completed"], ids["expired"]]))
    assert [each.applied for each in deleted] == [True, True]


async def test_keys_still_count(old: Old) -> None:
    store, ids = old.store, old.ids
    known = {"name": "keyed"}
    assert await store.submit("broken", known, idempotency_key="order-3") == ids["keyed"]
    assert await store.submit("only", {"name": "unique"}, unique=True) == ids["unique"]
    assert await store.submit("work", {"name": "cancelled"}, unique=True) != ids["cancelled"]


async def test_events_go_on_after_the_last_cursor(old: Old) -> None:
    run, ops = old.store.run, old.store.ops
    task_id = await old.store.submit()
    news = await run(ops.events(old.answers["tail"], 10))
    assert not news.reset
    assert [(event.verb, event.task_id) for event in news.events] == [("submit", task_id)]


async def test_the_books_balance(old: Old) -> None:
    census = await old.store.census()
    for state in (await old.states()).values():
        census[state] -= 1
    assert not any(census.values())


async def test_tokens_schedules_samples_and_roles_go_on(old: Old) -> None:
    store = old.store
    run, ops = store.run, store.ops
    for number, kind in ((1, "token"), (2, "token"), (3, "session")):
        token = await run(ops.token(digest_of(f"secret-{number}")))
        assert token is not None
        assert token.kind == kind
    assert await run(ops.token(digest_of("secret-4"))) is None
    assert await run(ops.drop_token("01890a5d-ac96-774b-bcce-0000000a0001"))
    (left,) = await run(ops.tokens())
    assert left.name == "program"
    await store.advance(8_000)
    assert await run(ops.tokens()) == []

    # The code that made them could not fire them. They are not in the way, and can be replaced.
    assert await run(ops.schedules(["nightly", "off"])) == [None, None]
    fired = await run(ops.fire_due())
    assert fired.handled == []
    assert set(fired.unknown) == {"nightly", "off"}
    assert await run(ops.fire_due()) == Fired([])
    new = new_schedule("nightly", every(60), new_task("work"))
    assert len(await run(ops.put_schedules([new]))) == 1
    await store.advance(61)
    assert [each for each, _ in (await run(ops.fire_due())).handled] == ["nightly"]
    assert await run(ops.drop_schedule("off"))

    assert await run(ops.sample())
    assert len(await run(ops.samples(0, 10))) == 4


async def test_settings_are_the_defaults_until_somebody_changes_them(old: Old) -> None:
    run, ops = old.store.run, old.store.ops
    assert await run(ops.settings()) == DEFAULT
    changed = await run(ops.change_settings({"completed": 5.0}, version=0))
    assert await run(ops.settings()) == changed


async def test_a_role_is_kept_until_its_term_is_over(old: Old) -> None:
    run, ops = old.store.run, old.store.ops
    assert not await run(ops.elect("maintenance", "another", 30.0))
    assert await run(ops.elect("maintenance", "somebody", 30.0))
    await old.store.advance(31)
    assert await run(ops.elect("maintenance", "another", 30.0))
