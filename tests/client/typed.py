"""How an application's types look to a type checker: lines marked `wrong` are errors, no others.

Checked by mypy and pyright in test_typing.py; not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict, assert_type

from fairlane import Context, Fairlane, Handle, RetryPolicy, Schedule, TaskFunction
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
