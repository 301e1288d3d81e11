"""Limits of clients at the door of several servers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from fairlane.core import client_limits
from fairlane.core.client_limits import Counts, Rate, Share, Want
from fairlane.core.errors import StoreUnavailable
from fairlane.server.client_limits import ClientLimits
from fairlane.server.config import Admission, ServerConfig
from fairlane.server.errors import TooManyRequests
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, opened
from tests.server.kit import Api, serving

SECOND = 1_000_000


class Store:
    """Counts for several servers, by a clock to be moved."""

    def __init__(self, *rates: Rate) -> None:
        self.rates = rates
        self.now = 3_600_000.0
        self.counts: dict[str, Counts] = {}
        self.asked: list[Want] = []
        self.away = False

    def clock(self) -> float:
        return self.now

    async def reserve(self, wants: Sequence[Want]) -> list[Share]:
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable
        self.asked += wants
        return [
            client_limits.take(
                self.counts.setdefault(want.client, {}), self.rates, want, int(self.now * SECOND)
            )
            for want in wants
        ]

    def server(self) -> ClientLimits:
        return ClientLimits(self.rates, self.reserve, self.clock)


async def admitted(server: ClientLimits, times: int, amount: int = 1) -> int:
    """How many of so many requests get in."""
    count = 0
    for _ in range(times):
        try:
            await server.take("a", amount)
        except TooManyRequests:
            continue
        count += 1
    return count


async def test_servers_share_the_limit() -> None:
    store = Store(Rate(100, 60))
    servers = [store.server() for _ in range(4)]
    assert sum(await asyncio.gather(*(admitted(each, 60) for each in servers))) <= 100
    store.now += 66
    one = await admitted(servers[0], 200)
    assert one + await admitted(servers[1], 200) == 100


async def test_a_busy_client_is_counted_in_shares() -> None:
    store = Store(Rate(10_000, 60))
    assert await admitted(store.server(), 10_000) == 10_000
    assert len(store.asked) < 100


async def test_a_calm_client_wastes_nothing() -> None:
    """One request in every part of a window, at any server: only those are counted."""
    store = Store(Rate(13, 60))
    servers = [store.server() for _ in range(3)]
    for n in range(13):
        assert await admitted(servers[n % 3], 1) == 1
        store.now += 4.9
    assert await admitted(servers[0], 1) == 0


async def test_what_is_left_of_a_share_is_given_back() -> None:
    store = Store(Rate(1_000, 60))
    server = store.server()
    assert await admitted(server, 20) == 20
    store.now += 6
    assert await admitted(server, 1) == 1
    assert sum(store.counts["a"][60].values()) <= 21 + 20 // 2


async def test_a_share_is_not_used_after_its_time() -> None:
    store = Store(Rate(100, 60))
    server = store.server()
    await admitted(server, 10)
    store.now += 5
    before = len(store.asked)
    await server.take("a", 1)
    assert len(store.asked) == before + 1


async def test_requests_at_the_same_time() -> None:
    store = Store(Rate(64, 60))
    server = store.server()
    assert sum(await asyncio.gather(*(admitted(server, 4) for _ in range(40)))) == 64


async def test_who_was_refused_does_not_trouble_the_store() -> None:
    store = Store(Rate(5, 60))
    server = store.server()
    assert await admitted(server, 50) == 5
    assert len(store.asked) <= 6
    # A smaller request may be accepted.
    store.now += 66
    assert await admitted(server, 3, 2) == 2
    assert await admitted(server, 1) == 1


async def test_who_waits_as_told_gets_in() -> None:
    store = Store(Rate(5, 60), Rate(8, 3600))
    server = store.server()
    for most, seconds in ((5, 60), (3, 3600)):
        assert await admitted(server, 6) == most
        with pytest.raises(TooManyRequests, match=f"in {seconds:,} s") as refused:
            await server.take("a", 1)
        store.now += int(dict(refused.value.headers)[b"retry-after"])
    assert await admitted(server, 1) == 1


async def test_a_limit_of_nothing_admits_nothing_and_no_limit_everything() -> None:
    assert await admitted(Store(Rate(0, 60)).server(), 3) == 0
    store = Store()
    assert await admitted(store.server(), 3) == 3
    assert store.asked == []


async def test_a_store_that_is_away_is_no_reason_to_let_anybody_in_or_to_keep_them_out() -> None:
    store = Store(Rate(5, 60))
    server = store.server()
    store.away = True
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await server.take("a", 1)
    store.away = False
    assert await admitted(server, 10) == 5


async def test_clients_are_forgotten_beyond_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.core.limits.CLIENTS", 3)
    store = Store(Rate(5, 60))
    server = store.server()
    for n in range(10):
        await server.take(str(n), 1)
    assert list(server._clients) == ["7", "8", "9"]


# -- over HTTP -------------------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.mark.parametrize("limits", [{"per_minute": 10}, {"per_hour": 10}])
async def test_servers_together_admit_no_more(
    servers: Servers, tmp_path: Path, limits: dict[str, int], kind: str
) -> None:
    config = ServerConfig(maintenance=False, admission=Admission(**limits))
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(opened(kind, servers, tmp_path))
        doors: list[Api] = [await stack.enter_async_context(serving(world, config)) for _ in "abc"]

        async def knock(api: Api) -> int:
            body = {"task_type": "work", "parameters": {}}
            answers = [(await api.ask("POST", "/api/v1/tasks", body)).status for _ in range(8)]
            assert set(answers) <= {201, 429}
            return answers.count(201)

        assert 8 <= sum(await asyncio.gather(*map(knock, doors))) <= 10
        assert await world.depth() <= 10
