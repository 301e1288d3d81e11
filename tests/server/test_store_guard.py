"""What requests hear of a store that does not answer, of one that is slow, of one that refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.errors import StoreBusy, StoreUnavailable
from fairlane.core.flow import Op
from fairlane.server.config import ServerConfig
from fairlane.server.services import Services
from fairlane.server.store_guard import StoreGuard

T = TypeVar("T")
SECONDS = 20.0


class Troubled(Backend):
    """A store that can be held up."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend.ops, backend.driver)
        self.run = self._run
        self.asked: Counter[str] = Counter()
        self.news = asyncio.Condition()
        self.holds: Callable[[str], bool] = lambda _: False
        self.refuses: Callable[[str], bool] = lambda _: False

    async def _run(self, op: Op[T]) -> T:
        async with self.news:
            self.asked[op.name] += 1
            self.news.notify_all()
            await self.news.wait_for(lambda: not self.holds(op.name))
        if self.refuses(op.name):
            raise StoreBusy
        return await self.driver.run(op)

    async def heard(self, name: str, times: int) -> None:
        """Until it was asked that so often."""
        async with asyncio.timeout(SECONDS), self.news:
            await self.news.wait_for(lambda: self.asked[name] >= times)

    async def relieve(self) -> None:
        async with self.news:
            self.holds = lambda _: False
            self.news.notify_all()


@pytest.fixture
async def store() -> AsyncIterator[Troubled]:
    async with engines.open("sqlite://") as backend:
        await backend.run(backend.ops.migrate())
        yield Troubled(backend)


@pytest.fixture
async def guard(store: Troubled) -> AsyncIterator[StoreGuard]:
    guard = StoreGuard(store)
    yield guard
    await guard.stop()


async def test_what_takes_long_is_waited_for(store: Troubled, guard: StoreGuard) -> None:
    store.holds = lambda name: name == "facts"
    asking = asyncio.create_task(guard.run(guard.ops.facts()))
    await store.heard("get", 3)  # it was asked something easy, again and again, and has answered
    await guard.run(guard.ops.controls())
    await store.relieve()
    assert (await asking).workers == []


async def test_silence_is_told_to_all_who_wait_and_to_who_comes(
    store: Troubled, guard: StoreGuard
) -> None:
    store.holds = lambda _: True
    async with asyncio.timeout(SECONDS):
        waiting = [guard.run(guard.ops.facts()), guard.run(guard.ops.submit([]))]
        told = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in told] == [StoreUnavailable] * 2
    with pytest.raises(StoreUnavailable):
        await guard.run(guard.ops.controls())
    assert store.asked["controls"] == 0

    await store.relieve()
    async with asyncio.timeout(SECONDS):
        while not store.asked["controls"]:
            try:
                await guard.run(guard.ops.controls())
            except StoreUnavailable:
                await asyncio.sleep(0.01)


async def test_a_call_behind_a_refused_one_does_not_wait_again(
    store: Troubled, guard: StoreGuard
) -> None:
    store.refuses = lambda name: name == "submit"
    for _ in range(2):
        with pytest.raises(StoreBusy):
            await guard.run(guard.ops.submit([]))
    assert store.asked["submit"] == 1
    await guard.run(guard.ops.settle([]))  # not everything is refused


async def test_a_store_that_is_away_at_first_is_maintained_later(store: Troubled) -> None:
    store.refuses = lambda name: store.asked[name] == 1
    services = Services(store, ServerConfig(), lambda: store.run(store.ops.controls()))
    services.start()
    await store.heard("controls", 2)
    async with asyncio.timeout(SECONDS):
        while not await store.driver.run(services.ops.samples(0, 1)):  # noqa: ASYNC110 (a store)
            await asyncio.sleep(0.01)
    await services.stop()
