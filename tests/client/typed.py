"""How an application's types look to a type checker: lines marked `wrong` are errors, no others.

Checked by mypy and pyright in test_typing.py; not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NotRequired, TypedDict, assert_type

from fairlane import (
    Context,
    Failed,
    Fairlane,
    Handle,
    RetryPolicy,
    Schedule,
    Shape,
    TaskFunction,
    WorkflowHandle,
    gather,
)
from fairlane.tq import TaskTypeContext, tq

app = Fairlane()


@app.task
async def bare(to: str, copies: int = 1) -> dict[str, int]:
    return {to: copies}


@app.task(priority="high", max_retries=5, timeout=30, rate_limit=10, concurrency=3)
async def with_options(to: str) -> bool:
    return bool(to)


@app.task
def ordinary(n: int) -> str:
    return str(n)


@app.task(retry=RetryPolicy(base=5.0))
async def with_context(ctx: Context, n: int) -> float:
    return n / ctx.attempt


async def right() -> None:
    handle = await bare.submit("a", copies=2)
    assert_type(handle, Handle[dict[str, int]])
    assert_type(await handle.result(timeout=10), dict[str, int])
    assert_type(await (await with_options.submit(to="b")).result(), bool)
    assert_type(ordinary.submit_sync(1), Handle[str])
    assert_type(await (await with_context.submit(n=1)).result(), float)
    await app.submit_many([bare.prepare("a"), ordinary.prepare(1)])
    low: TaskFunction[[int], str] = ordinary.options(priority="low", delay_seconds=60)
    await low.submit(2)


@app.cron("30 2 * * MON-FRI", tz="Europe/Berlin", overlap="queue", within=timedelta(hours=6))
@app.every(minutes=5, offset=timedelta(seconds=30), id="often", arguments={"n": 2})
@app.task(priority="low")
async def scheduled(ctx: Context, n: int = 1) -> list[int]:
    assert_type(ctx.scheduled_for, datetime | None)
    return [n]


async def right_schedules() -> None:
    assert_type(await (await scheduled.submit(n=1)).result(), list[int])
    made = await app.schedules.put("acme", scheduled.prepare(3), cron="@daily", missed="all")
    assert_type(made, Schedule)
    assert_type(made.runs[0].tick, datetime)
    assert_type(app.schedules.get_sync("acme"), Schedule | None)
    await (await app.schedules.run("acme")).result()


async def wrong_schedules() -> None:
    await scheduled.submit(n="x")  # wrong
    app.cron(5)  # wrong
    app.every(minutes="5")  # wrong
    app.cron("@daily", overlap="perhaps")  # wrong
    app.every(hours=1, colour="red")  # wrong
    await app.schedules.put("acme", scheduled, every=60)  # wrong
    await app.schedules.put("acme", scheduled.prepare(), every=60, missed="never")  # wrong


class Crawl(TypedDict):
    url: str
    depth: NotRequired[int]


@dataclass
class Page:
    url: str


async def crawl(payload: Crawl) -> int:
    return payload.get("depth", 0)


def read(page: Page) -> str:
    return page.url


def right_queue() -> None:
    context = tq[Crawl]("crawl")
    assert_type(context, TaskTypeContext[Crawl])
    context.set_worker(crawl).set_worker_count(3).add({"url": "a"}).add({"url": "b", "depth": 1})
    context.set_worker(lambda payload: payload["url"].upper())
    tq[Page]("read").set_worker(read).add(Page("a"))
    tq("anything").set_worker(crawl).add({"url": "a"}).add([1, 2])


def wrong_queue() -> None:
    tq[Crawl]("crawl").add({"wrong": "field"})  # wrong
    tq[Crawl]("crawl").add({"url": 1})  # wrong
    tq[Crawl]("crawl").set_worker(read)  # wrong
    tq[Page]("read").add({"url": "a"})  # wrong
    tq[Crawl]("crawl").set_worker(lambda payload: payload["link"])  # wrong


async def wrong() -> None:
    await bare.submit(to=1)  # wrong
    await bare.submit()  # wrong
    await bare.submit("a", colour="red")  # wrong
    with_options.prepare(5)  # wrong
    ordinary.submit_sync("x")  # wrong
    await with_context.submit("x")  # wrong
    ordinary.options(colour="red")  # wrong
    ordinary.options(priority="urgent")  # wrong
    app.task(priority="urgent")  # wrong


@dataclass
class Order:
    number: int
    lines: list[str]


@app.task
async def load(number: int) -> Order:
    return Order(number, [])


@app.task
async def charge(order: Order, card: str = "visa") -> bool:
    return bool(order.lines)


@app.task
def tolerant(order: Order | Failed, card: str = "visa") -> bool:
    return isinstance(order, Failed)


@app.task
def count(orders: Sequence[Order | Failed], *, most: int) -> int:
    return min(len(orders), most)


@app.task
async def bill(both: tuple[Order, bool]) -> str:
    return str(both)


@app.task
async def ship(ctx: Context, order: Order, lines: list[str]) -> None: ...


async def right_shapes() -> None:
    chain = load.prepare(1).then(charge, card="x")
    assert_type(chain, Shape[bool])
    assert_type(load.prepare(1).then(tolerant, "x"), Shape[bool])
    flow = await app.submit(chain)
    assert_type(flow, WorkflowHandle[bool])
    assert_type(await flow.result(), bool)
    orders = load.map([1, 2])
    assert_type(orders, Shape[list[Order]])
    assert_type(orders.then(count, most=3), Shape[int])
    assert_type(gather(load.prepare(1), load.prepare(2)), Shape[list[Order]])
    assert_type(gather(load.prepare(1), chain), Shape[tuple[Order, bool]])
    assert_type(gather(load.prepare(1), chain).then(bill), Shape[str])
    assert_type(gather(orders, chain, chain), Shape[tuple[list[Order], bool, bool]])
    assert_type(app.submit_sync(charge.map([Order(1, [])], "x")).result_sync(), list[bool])


async def right_graph() -> None:
    with app.graph("order") as g:
        order = g.add(load, 1)
        assert_type(order, Order)
        paid = g.add(charge.options(node="pay"), order)
        g.returns(g.add(ship.options(after=[paid]), order, order.lines))
    assert_type(await g.submit(), WorkflowHandle[Any])
    assert_type(app.workflow("…"), WorkflowHandle[Any])


async def right_in_a_handler(ctx: Context) -> None:
    assert_type(await ctx.submit(load.prepare(1)), Handle[Order])
    assert_type(await ctx.submit(load.map([1])), WorkflowHandle[list[Order]])


def wrong_shapes() -> None:
    load.prepare(1).then(charge, card=5)  # wrong
    load.prepare(1).then(count, most=5)  # wrong
    load.prepare(1).then(charge, colour="red")  # wrong
    load.map(["x"])  # wrong
    load.map([1]).then(charge)  # wrong
    gather(load.prepare(1), load.prepare(2)).then(bill)  # wrong
    gather(load.prepare(1), 5)  # wrong
    with app.graph("order") as g:
        order = g.add(load, 1)
        g.add(charge, g.add(charge, order))  # wrong
        g.add(ship, order, order.number)  # wrong
        g.add(load)  # wrong
