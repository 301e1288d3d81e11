"""Limits of clients: counted once for all processes."""

from __future__ import annotations

import asyncio

import pytest

from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.client_limits import Rate, Share, Want
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

RATES = [Rate(20, 60), Rate(50, 3600)]


async def reserve(backend: Backend, *wants: Want) -> list[Share]:
    return await backend.run(backend.ops.reserve(RATES, wants))


async def granted(backend: Backend, client: str, amount: int, share: int = 0) -> int:
    return (await reserve(backend, Want(client, amount, share)))[0].granted


async def test_processes_together_never_get_more_than_the_limit(store: World) -> None:
    processes = store.processes(3)

    async def insist(backend: Backend, amount: int, share: int) -> int:
        got = 0
        for _ in range(20):
            got += await granted(backend, "a", amount, share)
        return got

    asked = [insist(processes[n % 3], 1 + n % 2, 3 * (n % 3)) for n in range(6)]
    assert sum(await asyncio.gather(*asked)) == 20
    assert await granted(store.backend, "b", 20) == 20


async def test_the_windows_slide(store: World) -> None:
    for _ in range(2):
        assert await granted(store.backend, "a", 20) == 20
        (refused,) = await reserve(store.backend, Want("a", 1))
        assert refused.refused_by == RATES[0]
        assert 60 <= refused.wait <= 65
        await store.advance(refused.wait + 0.1)
    (refused,) = await reserve(store.backend, Want("a", 11))
    assert refused.refused_by == RATES[1]
    assert 3600 <= refused.wait + 2 * 65.1 <= 3900.5
    assert await granted(store.backend, "a", 10) == 10
    await store.advance(4000)
    assert await granted(store.backend, "a", 20) == 20


async def test_what_was_counted_counts_for_the_whole_window(store: World) -> None:
    assert await granted(store.backend, "a", 20) == 20
    for passed in (11, 22, 33, 44, 55):
        await store.advance(11)
        (refused,) = await reserve(store.backend, Want("a", 1))
        assert refused.refused_by == RATES[0]
        assert 0 < refused.wait <= 65 - passed
    await store.advance(10.1)
    assert await granted(store.backend, "a", 20) == 20


async def test_a_share_is_given_back(store: World) -> None:
    (share,) = await reserve(store.backend, Want("a", 1, 100))
    assert share.granted == 20 // 8
    assert 0 < share.until - share.at <= 5_000_000
    assert await granted(store.backend, "a", 19) == 0
    back = Want("a", 19, 0, 1, share.at)
    assert (await reserve(store.backend, back))[0].granted == 19


async def test_many_clients_at_once(store: World) -> None:
    wants = [Want(f"client {n}", 1) for n in range(limits.BATCH)]
    shares = await reserve(store.backend, *wants, *wants[:3])
    assert [share.granted for share in shares] == [1] * (limits.BATCH + 3)
    again = await reserve(store.backend, *(Want(want.client, 19) for want in wants))
    assert [share.granted for share in again] == [0] * 3 + [19] * (limits.BATCH - 3)


async def test_clients_are_forgotten_beyond_a_number(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLIENTS", 5)
    for n in range(8):
        assert await granted(store.backend, f"client {n}", 20) == 20
        await store.advance(0.001)
    assert await granted(store.backend, "client 7", 1) == 0
    assert await granted(store.backend, "client 0", 1) == 1
