"""What requests hear of a store that does not answer, of one that is slow, of one that refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest

from fairlane import Fairlane
from fairlane.core.errors import StoreBusy, StoreUnavailable
from fairlane.core.flow import Op
from fairlane.server.config import ServerConfig
from fairlane.server.services import Services
from fairlane.server.store_guard import StoreGuard

T = TypeVar("T")
SECONDS = 20.0


class Troubled(Fairlane):
    """An application whose store can be held up."""

    def __init__(self) -> None:
        super().__init__("sqlite://")
        self.asked: Counter[str] = Counter()
        self.news = asyncio.Condition()
        self.holds: Callable[[str], bool] = lambda _: False
        self.refuses: Callable[[str], bool] = lambda _: False

    async def run(self, op: Op[T]) -> T:
        async with self.news:
            self.asked[op.name] += 1
            self.news.notify_all()
            await self.news.wait_for(lambda: not self.holds(op.name))
        if self.refuses(op.name):
            raise StoreBusy
        return await super().run(op)

    async def heard(self, name: str, times: int) -> None:
        """Until it was asked that so often."""
        async with asyncio.timeout(SECONDS), self.news:
            await self.news.wait_for(lambda: self.asked[name] >= times)

    async def relieve(self) -> None:
        async with self.news:
            self.holds = lambda _: False
            self.news.notify_all()


@pytest.fixture
async def app() -> AsyncIterator[Troubled]:
    async with Troubled() as app:
        yield app


@pytest.fixture
async def guard(app: Troubled) -> AsyncIterator[StoreGuard]:
    guard = StoreGuard(app)
    yield guard
    await guard.stop()


async def test_what_takes_long_is_waited_for(app: Troubled, guard: StoreGuard) -> None:
    app.holds = lambda name: name == "facts"
    asking = asyncio.create_task(guard.run(guard.ops.facts()))
    await app.heard("get", 3)  # it was asked something easy, again and again, and has answered
    await guard.run(guard.ops.controls())
    await app.relieve()
    assert (await asking).workers == []


async def test_silence_is_told_to_all_who_wait_and_to_who_comes(
    app: Troubled, guard: StoreGuard
) -> None:
    app.holds = lambda _: True
    async with asyncio.timeout(SECONDS):
        waiting = [guard.run(guard.ops.facts()), guard.run(guard.ops.submit([]))]
        told = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in told] == [StoreUnavailable] * 2
    with pytest.raises(StoreUnavailable):
        await guard.run(guard.ops.controls())
    assert app.asked["controls"] == 0

    await app.relieve()
    async with asyncio.timeout(SECONDS):
        while not app.asked["controls"]:
            try:
                await guard.run(guard.ops.controls())
            except StoreUnavailable:
                await asyncio.sleep(0.01)


async def test_a_call_behind_a_refused_one_does_not_wait_again(
    app: Troubled, guard: StoreGuard
) -> None:
    app.refuses = lambda name: name == "submit"
    for _ in range(2):
        with pytest.raises(StoreBusy):
            await guard.run(guard.ops.submit([]))
    assert app.asked["submit"] == 1
    await guard.run(guard.ops.settle([]))  # not everything is refused


async def test_a_store_that_is_away_at_first_is_maintained_later(app: Troubled) -> None:
    app.refuses = lambda name: app.asked[name] == 1
    services = Services(app, ServerConfig())
    services.start()
    await app.heard("controls", 2)
    async with asyncio.timeout(SECONDS):
        while not await app.backend.run(services.ops.samples(0, 1)):  # noqa: ASYNC110 (a store)
            await asyncio.sleep(0.01)
    await services.stop()
