"""An application on a store in memory: what was submitted, its clock, and running what is due."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from fairlane import Context, Fairlane, MemoryStore, Snooze, State
from fairlane.client.testing import MemoryApp
from fairlane.core.errors import InvalidArguments, InvalidTask


@dataclass
class Order:
    number: int
    placed: datetime


app = Fairlane("postgresql://nobody@localhost:1/nowhere", migrate=False)


@app.task(max_retries=2, queue="mail")
async def greet(ctx: Context, name: str, loud: bool = False) -> int:
    if ctx.attempt == 1:
        raise ConnectionError("not at the first time")
    return ctx.attempt


@app.task
def ship(order: Order, **more: Any) -> None: ...


@app.task(required_capabilities={"gpu"})
def tally(count: int) -> int:
    return count


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with app.in_memory() as store:
        yield store


def refused(store: MemoryStore, *args: Any, **parameters: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        store.assert_submitted(*args, **parameters)
    return str(caught.value)


# -- the application's store -----------------------------------------------------------------------


def test_the_own_store_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    mine = Fairlane(f"sqlite:///{path}")

    @mine.task
    def work() -> None: ...

    with mine.in_memory() as store:
        work.submit_sync()
        store.assert_submitted(work)
    assert not path.exists()
    with mine:
        handle = work.submit_sync()
        with mine.in_memory() as store:
            store.assert_not_submitted(work)
            assert handle.status_sync() is None
        assert handle.status_sync() is State.QUEUED
    mine.close()


async def test_code_that_closes_its_application_stays_in_memory(store: MemoryStore) -> None:
    with app:
        greet.submit_sync("Ada")
    async with app:
        await greet.submit("Bob")
    app.close()
    store.assert_submitted(greet, count=2)


def test_a_callers_connection_has_no_part_in_it(store: MemoryStore) -> None:
    app.submit_sync(greet.prepare("Ada"), connection=object())
    store.assert_submitted(greet, "Ada")


# -- what was submitted ----------------------------------------------------------------------------


def test_by_task_by_type_and_by_some_of_the_parameters(store: MemoryStore) -> None:
    first = greet.submit_sync("Ada", loud=True)
    second = greet.submit_sync(name="Bob")
    both = store.assert_submitted(greet, count=2)
    assert [task.task_id for task in both] == [first.task_id, second.task_id]
    (task,) = store.assert_submitted(greet, name="Ada")
    assert task.parameters == {"name": "Ada", "loud": True}
    assert store.assert_submitted("greet", "Bob", count=1) == [both[1]]
    # What was left out is the handler's default.
    assert store.assert_submitted(greet, loud=False) == [both[1]]
    assert store.submitted(greet, name=ANY) == both
    assert store.submitted(ship) == []
    store.assert_not_submitted(ship)
    store.assert_not_submitted(greet, name="Eve")


def test_values_of_any_type(store: MemoryStore) -> None:
    placed = datetime(2026, 11, 18, 12, tzinfo=UTC)
    ship.submit_sync(Order(7, placed), urgent=True)
    store.assert_submitted(ship, order=Order(7, placed))
    store.assert_submitted(ship, order={"number": 7, "placed": placed}, urgent=True)
    store.assert_not_submitted(ship, order=Order(8, placed))
    store.assert_not_submitted(ship, queue="a parameter here, and not the option")


def test_options(store: MemoryStore) -> None:
    parent = greet.submit_sync("Eve")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    options: dict[str, Any] = {
        "queue": "slow",
        "priority": "high",
        "delay_seconds": timedelta(minutes=1),
        "tags": {"shop": "north"},
        "timeout": 5,
        "max_retries": 1,
        "expires_at": tomorrow,
        "idempotency_key": "once",
        "required_capabilities": ["gpu"],
        "depends_on": [parent.task_id],
        "on_parent_failure": "continue",
    }
    greet.options(**{**options, "tags": {"shop": "north", "by": "Ada"}}).submit_sync("Ada")
    for name, value in options.items():
        store.assert_submitted(greet.options(**{name: value}), "Ada", count=1)
    store.assert_submitted(greet.options(**options), "Ada")
    store.assert_submitted(greet, "Ada")
    for name, value in {**options, "delay_seconds": 61, "tags": {"shop": "south"}}.items():
        store.assert_not_submitted(greet.options(**{name: value}), "Eve")
    store.assert_not_submitted(greet.options(delay_seconds=61))
    store.assert_not_submitted(greet.options(tags={"shop": "south"}))


def test_a_large_payload(store: MemoryStore) -> None:
    app.blobs = "store"
    try:
        with app.in_memory() as other:
            greet.submit_sync("A" * 300_000)
            other.assert_submitted(greet, name="A" * 300_000)
            message = refused(other, greet, name="B")
    finally:
        app.blobs = None
    assert len(message) < 1_000


def test_what_a_failure_says(store: MemoryStore) -> None:
    assert refused(store, greet, "Ada") == (
        "greet(name='Ada') was not submitted. Nothing was submitted."
    )
    tally.submit_sync(3)
    greet.options(queue="slow").submit_sync("Bob")
    assert refused(store, greet.options(queue="mail"), "Ada") == (
        "greet(name='Ada') with queue='mail' was not submitted. These tasks were submitted:\n"
        "  greet(name='Bob', loud=False): name is 'Bob', queue is 'slow'\n"
        "  tally(count=3)"
    )
    assert refused(store, greet, count=2).startswith("greet() was submitted once, not 2 times. ")
    with pytest.raises(AssertionError, match=r"greet\(name='Bob'\) was submitted once\. These"):
        store.assert_not_submitted(greet, name="Bob")
    for number in range(30):
        tally.submit_sync(number)
    assert refused(store, greet, "Ada").endswith("\n  and 12 more")


def test_expectations_that_could_never_be_met(store: MemoryStore) -> None:
    with pytest.raises(InvalidTask, match=r"no task 'great'\. There are greet, ship, tally\."):
        store.assert_not_submitted("great")
    with pytest.raises(InvalidArguments, match="unexpected keyword argument 'nmae'"):
        store.assert_not_submitted(greet, nmae="Ada")
    with pytest.raises(InvalidArguments, match=r"write greet\.options\(queue=…\)"):
        store.assert_submitted(greet, queue="mail")
    with pytest.raises(InvalidArguments, match="does not keep the option unique"):
        store.assert_submitted(greet.options(unique=True))
    with pytest.raises(InvalidArguments, match=r"tally has a parameter count: .* submitted\(\)"):
        store.assert_submitted(tally, count=3)
    tally.submit_sync(3)
    assert len(store.submitted(tally, count=3)) == 1


async def test_what_ran_in_place_was_submitted_too() -> None:
    with app.inline() as store:
        await greet.submit("Ada")
        (task,) = store.assert_submitted(greet, "Ada")
    assert task.state is State.COMPLETED


# -- time ------------------------------------------------------------------------------------------


def test_the_clock_makes_tasks_due_and_ends_expired_ones(store: MemoryStore) -> None:
    delayed = greet.options(delay_seconds=60).submit_sync("Ada")
    short = greet.options(
        delay_seconds=7200, expires_at=datetime.now(UTC) + timedelta(hours=1)
    ).submit_sync("Bob")
    store.advance(59)
    assert (delayed.status_sync(), store.work_sync()) == (State.SCHEDULED, 0)
    store.advance(timedelta(seconds=1))
    assert delayed.status_sync() is State.QUEUED
    store.advance(timedelta(hours=1))
    assert short.status_sync() is State.FAILED  # it has expired
    assert store.work_sync() == 1
    assert delayed.status_sync() is State.RETRYING


async def test_work_runs_each_task_when_it_is_due(store: MemoryStore) -> None:
    """Moving on by an hour at once would leave the retry waiting."""
    handle = await greet.options(delay_seconds=60).submit("Ada")
    late = await greet.options(delay_seconds=7200).submit("Bob")
    assert await store.work(timedelta(hours=1)) == 2
    assert await handle.result() == 2
    (task,) = store.submitted(greet, "Ada")
    assert task.completed_at is not None
    assert timedelta(minutes=1) < task.completed_at - task.created_at < timedelta(minutes=5)
    assert await late.status() is State.SCHEDULED
    assert await store.work(3599) == 0
    assert await store.work(1) == 1


def test_capabilities_do_not_matter(store: MemoryStore) -> None:
    handle = tally.submit_sync(3)
    assert store.work_sync() == 1
    assert handle.result_sync() == 3


def test_endless_snoozing_ends_with_the_time() -> None:
    with MemoryApp() as memory:

        @memory.task
        def never() -> None:
            raise Snooze(60)

        never.submit_sync()
        memory.assert_submitted(never)
        assert memory.work_sync(within=timedelta(minutes=5, seconds=1)) == 6


# -- the plugin ------------------------------------------------------------------------------------

SHOP = """
from fairlane import Fairlane
app = Fairlane("sqlite:///tasks.db")

@app.task
async def remind(name: str) -> str:
    return name

def register(name: str) -> None:
    remind.options(delay_seconds=3600).submit_sync(name)
"""
TEST = """
import pytest, shop
from fairlane import MemoryStore

@pytest.fixture
def store():
    with shop.app.in_memory() as store:
        yield store

def test_a_reminder(store: MemoryStore) -> None:
    shop.register("Ada")
    store.assert_submitted(shop.remind.options(delay_seconds=3600), name="Ada")
    assert store.work_sync(within=3600) == 1

def test_it_fails(store: MemoryStore) -> None:
    shop.register("Ada")
    store.assert_submitted(shop.remind, name="Bob")
"""


def test_the_users_own_application(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "fairlane.testing", "-p", "no:valkey"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "remind(name='Bob') was not submitted" in run.stdout
    assert "memory_store.py" not in run.stdout  # the traceback ends in the test
    assert not (tmp_path / "tasks.db").exists()
