"""What a server remembers of tokens, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fairlane.core.errors import StoreUnavailable
from fairlane.core.tokens import Token
from fairlane.server.auth import CACHED_TOKENS, TokenCache
from fairlane.server.cached import Cached


class Looks:
    """Something to look at, which can be slow or fail."""

    def __init__(self) -> None:
        self.now = 0.0
        self.count = 0
        self.value = "a"
        self.fails = False
        self.free = asyncio.Event()
        self.free.set()
        self.begun = asyncio.Event()

    def clock(self) -> float:
        return self.now

    async def look(self) -> str:
        self.count += 1
        self.begun.set()
        value = self.value
        await self.free.wait()
        if self.fails:
            raise StoreUnavailable
        return value

    def fresh(self) -> Cached[str]:
        return Cached(self.look, 2.0, self.clock)


async def test_a_look_lasts() -> None:
    looks = Looks()
    fresh = looks.fresh()
    assert await fresh.get() == "a"
    looks.value, looks.now = "b", 1.9
    assert await fresh.get() == "a"
    looks.now = 2.0
    assert await fresh.get() == "b"
    assert looks.count == 2


async def test_those_who_ask_at_once_share_a_look() -> None:
    looks = Looks()
    looks.free.clear()
    fresh = looks.fresh()
    asking = [asyncio.create_task(fresh.get()) for _ in range(100)]
    await asyncio.sleep(0)
    asking[0].cancel()
    await asyncio.sleep(0)
    looks.free.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1:] == ["a"] * 99
    assert looks.count == 1


async def test_a_slow_look_is_as_old_as_its_beginning() -> None:
    looks = Looks()
    looks.free.clear()
    fresh = looks.fresh()
    asking = asyncio.create_task(fresh.get())
    await looks.begun.wait()
    looks.now = 5.0
    looks.free.set()
    assert await asking == "a"
    looks.value = "b"
    assert await fresh.get() == "b"


async def test_a_failure_is_not_remembered() -> None:
    looks = Looks()
    looks.fails = True
    fresh = looks.fresh()
    with pytest.raises(StoreUnavailable):
        await fresh.get()
    looks.fails = False
    assert await fresh.get() == "a"


async def test_a_failure_that_nobody_waits_for_is_not_complained_about() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    looks = Looks()
    looks.fails = True
    looks.free.clear()
    asking = asyncio.create_task(looks.fresh().get())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    looks.free.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert complaints == []


def keys(exist: Callable[[], bool], looks: list[bytes], *, required: bool = False) -> TokenCache:
    async def existing() -> bool:
        return exist()

    def find(digest: bytes) -> Cached[Token | None]:
        async def look() -> None:
            looks.append(digest)

        return Cached(look, 2.0)

    return TokenCache(Cached(existing, 0.0), find, required=required)


def nothing(_: bytes) -> Cached[Token | None]:
    raise AssertionError


async def test_once_required_always_required() -> None:
    answers = iter([False, True, False])
    found = keys(lambda: next(answers), [])
    assert [await found.required() for _ in range(5)] == [False, True, True, True, True]


async def test_once_required_always_required_also_where_nobody_waits_for_the_answer() -> None:
    now = [0.0]

    async def existing() -> bool:
        return True

    exist = Cached(existing, 2.0, lambda: now[0])
    found = TokenCache(exist, nothing, required=False)
    assert [found.required_now] == [None]
    await exist.get()
    assert [found.required_now] == [True]
    now[0] = 3.0
    assert exist.current is None
    assert [found.required_now] == [True]


async def test_no_token_is_required_until_the_next_look() -> None:
    now = [0.0]

    async def existing() -> bool:
        return False

    found = TokenCache(Cached(existing, 2.0, lambda: now[0]), nothing, required=False)
    assert not await found.required()
    assert [found.required_now] == [False]
    now[0] = 3.0
    assert [found.required_now] == [None]


async def test_required_from_the_beginning() -> None:
    def never() -> bool:
        raise AssertionError

    assert await keys(never, [], required=True).required()


async def test_wrong_secrets_are_remembered_but_not_without_end() -> None:
    looks: list[bytes] = []
    found = keys(lambda: True, looks)
    for _ in range(3):
        assert await found.token("guess") is None
    assert len(looks) == 1
    for number in range(CACHED_TOKENS + 5):
        await found.token(str(number))
    assert len(found._known) == CACHED_TOKENS
    looks.clear()
    await found.token("guess")
    assert len(looks) == 1
    found.forget("guess")
    found.forget("never seen")
    await found.token("guess")
    assert len(looks) == 2
