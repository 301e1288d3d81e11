"""`app.transaction()`: writes and tasks that take effect together, under Fairlane's lock."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fairlane import Context, Fairlane, State
from fairlane.core.errors import NotSupported, StoreBusy
from tests.fixtures.servers import RedisServer


def define(app: Fairlane) -> Fairlane:
    @app.task
    async def ship(order: int) -> int:
        return order

    @app.task
    async def pack(ctx: Context, order: int) -> None:
        async with ctx.transaction() as db:
            await app.submit(app.tasks["ship"].prepare(order=order), connection=db)

    return app


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Fairlane]:
    app = define(Fairlane(f"sqlite:///{tmp_path / 'shop.db'}", patience=0.3))
    with app, app.transaction_sync() as db:  # the first use prepares the store
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    with app:
        yield app


def orders(app: Fairlane) -> list[int]:
    with app.transaction_sync() as db:
        return [number for (number,) in db.execute("SELECT id FROM orders")]


def fail(app: Fairlane, order: int) -> None:
    """Submit a task, and raise before the transaction ends."""
    with app.transaction_sync() as db:
        db.execute("INSERT INTO orders VALUES (?)", (order,))
        app.submit_sync(app.tasks["ship"].prepare(order=order), connection=db)
        raise ZeroDivisionError


def test_both_take_effect_or_neither(app: Fairlane) -> None:
    ship = app.tasks["ship"]
    with app.transaction_sync() as db:
        db.execute("INSERT INTO orders VALUES (17)")
        handle = ship.options(connection=db).submit_sync(order=17)
        assert handle.status_sync() is None  # nobody sees it yet
    assert handle.status_sync() is State.QUEUED
    with pytest.raises(ZeroDivisionError):
        fail(app, 18)
    assert orders(app) == [17]
    assert len(app.list_sync().tasks) == 1


async def test_from_asyncio(app: Fairlane) -> None:
    ship = app.tasks["ship"]
    async with app.transaction() as db:
        db.execute("INSERT INTO orders VALUES (17)")
        handle = await ship.options(connection=db).submit(order=17)
    assert await handle.status() is State.QUEUED


async def test_an_error_rolls_back(app: Fairlane) -> None:
    async def order_twice() -> None:
        async with app.transaction() as db:
            await app.submit(app.tasks["ship"].prepare(order=17), connection=db)
            db.execute("INSERT INTO orders VALUES (17), (17)")

    with pytest.raises(sqlite3.IntegrityError):
        await order_twice()
    assert (await app.list()).tasks == []


def test_it_holds_the_lock(app: Fairlane) -> None:
    other = Fairlane(app.url, patience=0.1)
    with other, app.transaction_sync():
        with pytest.raises(StoreBusy), other.transaction_sync():
            pass
        with pytest.raises(StoreBusy):
            other.submit_sync(app.tasks["ship"].prepare(order=1))
    with other.transaction_sync() as db:  # the one that gave up left no lock
        db.execute("INSERT INTO orders VALUES (1)")
    other.close()


def test_a_second_one_waits_for_the_first(app: Fairlane) -> None:
    app = define(Fairlane(app.url, patience=10))
    with app:
        begun = threading.Event()

        def wait() -> None:
            begun.set()
            with app.transaction_sync() as db:
                db.execute("INSERT INTO orders VALUES (2)")

        with app.transaction_sync() as db:
            waiting = threading.Thread(target=wait)
            waiting.start()
            begun.wait(10)
            db.execute("INSERT INTO orders VALUES (1)")
        waiting.join(10)
        assert orders(app) == [1, 2]


def test_in_memory_it_is_the_same(app: Fairlane) -> None:
    ship = app.tasks["ship"]
    with app.in_memory() as store:
        with app.transaction_sync() as db:
            db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
            ship.options(connection=db).submit_sync(order=17)
        store.assert_submitted(ship, order=17)
        with pytest.raises(ZeroDivisionError):
            fail(app, 18)
        store.assert_not_submitted(ship, order=18)
    assert orders(app) == []


async def test_in_place_tasks_run_after_the_transaction(app: Fairlane) -> None:
    ship, pack = app.tasks["ship"], app.tasks["pack"]
    with app.inline() as store:
        async with app.transaction() as db:
            handle = await ship.options(connection=db).submit(order=17)
        assert await handle.result() == 17
        # A handler's own transaction, and what it submits there.
        await pack.submit(order=18)
        (task,) = store.assert_submitted(ship, order=18)
        assert task.result == 18


def test_in_place_from_ordinary_code(app: Fairlane) -> None:
    ship = app.tasks["ship"]
    with app.inline():
        with app.transaction_sync() as db:
            handle = ship.options(connection=db).submit_sync(order=17)
        assert handle.result_sync() == 17


async def test_on_postgres(postgres_url: str) -> None:
    async with define(Fairlane(postgres_url)) as app:
        ship = app.tasks["ship"]
        async with app.transaction() as db:
            await db.execute("CREATE TEMPORARY TABLE orders (id integer)")
            await db.execute("INSERT INTO orders VALUES ($1)", 17)
            handle = await ship.options(connection=db).submit(order=17)
            assert await handle.status() is None
        assert await handle.status() is State.QUEUED
        with pytest.raises(NotSupported, match="a connection of its own"), app.transaction_sync():
            pass


def test_on_redis(redis_server: RedisServer) -> None:
    with (
        Fairlane(redis_server.url) as app,
        pytest.raises(NotSupported),
        app.transaction_sync(),
    ):
        pass


def test_a_plain_connection_reads_what_was_written(app: Fairlane, tmp_path: Path) -> None:
    with app.transaction_sync() as db:
        db.execute("INSERT INTO orders VALUES (17)")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as reader:
        assert reader.execute("SELECT id FROM orders").fetchall() == [(17,)]
