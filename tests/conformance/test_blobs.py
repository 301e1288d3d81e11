"""Blobs in the store: whole or not there, kept while they are young, and gone without a trace."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.errors import PayloadTooLarge
from fairlane.core.flow import Flow, Op
from tests.fixtures.raw import written
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

CHUNK = limits.BLOB_CHUNK_BYTES
SMALL = b"a small one"
LARGE = b"begin" + b"\x00\xff" * CHUNK + b"end"  # three chunks
DAY = limits.BLOB_GRACE_SECONDS


class Cut(Exception):
    """The process died here."""


def cut(op: Op[Any], after: int) -> Op[Any]:
    """An operation that ends for no reason after so many calls."""

    def start() -> Flow[Any]:
        flow = op.flow()
        request = next(flow)
        for _ in range(after):
            reply = yield request
            try:
                request = flow.send(reply)
            except StopIteration as stop:
                return stop.value
        raise Cut

    return Op(op.name, op.mode, start)


async def keys(store: World, older_than: float = 0.0) -> list[str]:
    return (await store.run(store.ops.old_blobs(older_than, 100))).keys


async def emptied(store: World) -> dict[str, int]:
    """What there is in a store whose clock was shifted, which is a record of its own."""
    await store.advance(1)
    return await store.leftovers()


@pytest.mark.parametrize("content", [b"", SMALL, b"x" * CHUNK, LARGE], ids=len)
async def test_a_blob_is_read_as_it_was_written(store: World, content: bytes) -> None:
    await store.run(store.ops.put_blob("one", content))
    await store.run(store.ops.put_blob("two", b"another"))
    for backend in (store.backend, store.reopened() if store.url != "sqlite://" else store.backend):
        assert await backend.run(backend.ops.blob("one")) == content
        assert await backend.run(backend.ops.blob("three")) is None


async def test_the_same_key_again_replaces_it(store: World) -> None:
    await store.run(store.ops.put_blob("one", LARGE))
    await store.run(store.ops.put_blob("one", SMALL))
    assert await store.run(store.ops.blob("one")) == SMALL


async def test_one_that_is_too_large_is_refused(store: World) -> None:
    before = await emptied(store)
    with pytest.raises(PayloadTooLarge, match="at most 25,165,824"):
        await store.run(store.ops.put_blob("one", b"x" * (limits.STORED_BLOB_BYTES + 1)))
    assert await store.leftovers() == before


async def test_old_ones_are_listed_page_by_page(store: World) -> None:
    for key in ("a", "b", "c"):
        await store.run(store.ops.put_blob(key, SMALL))
    await store.advance(60)
    await store.run(store.ops.put_blob("d", SMALL))
    assert await keys(store, 30) == ["a", "b", "c"]
    assert await keys(store, 90) == []
    first = await store.run(store.ops.old_blobs(30, 2))
    assert first.keys == ["a", "b"]
    second = await store.run(store.ops.old_blobs(30, 2, first.after))
    assert (second.keys, second.after) == (["c"], None)


async def test_what_is_dropped_leaves_nothing_behind(store: World) -> None:
    before = await emptied(store)
    await store.run(store.ops.put_blob("one", LARGE))
    await store.run(store.ops.put_blob("one", LARGE))
    await store.run(store.ops.drop_blob("one", DAY))
    assert await store.run(store.ops.blob("one")) == LARGE, "it is young"
    await store.advance(DAY + 1)
    await store.run(store.ops.drop_blob("one", DAY))
    assert await store.run(store.ops.blob("one")) is None
    assert await store.leftovers() == before
    await store.run(store.ops.drop_blob("one", DAY))


async def test_written_again_it_is_young_again(store: World) -> None:
    await store.run(store.ops.put_blob("one", SMALL))
    await store.advance(DAY + 1)
    await store.run(store.ops.put_blob("one", SMALL))
    assert await keys(store, DAY) == []
    await store.run(store.ops.drop_blob("one", DAY))
    assert await store.run(store.ops.blob("one")) == SMALL


async def test_a_crash_while_it_is_written_is_forgotten_in_time(store: World) -> None:
    before = await emptied(store)
    for steps in range(100):
        try:
            await store.run(cut(store.ops.put_blob("one", LARGE), steps))
        except Cut:
            assert await store.run(store.ops.blob("one")) is None
        else:
            break
    assert await store.run(store.ops.blob("one")) == LARGE
    assert steps > 3
    await store.advance(DAY + 1)
    await store.run(store.ops.drop_blob("one", DAY))
    assert await store.leftovers() == before


async def test_a_crash_while_it_is_replaced_leaves_the_one_before(store: World) -> None:
    await store.run(store.ops.put_blob("one", SMALL))
    for steps in range(1, 100):
        try:
            await store.run(cut(store.ops.put_blob("one", LARGE), steps))
        except Cut:
            assert await store.run(store.ops.blob("one")) == SMALL
        else:
            break
    assert await store.run(store.ops.blob("one")) == LARGE


async def test_a_crash_while_it_is_dropped_is_made_up_for(store: World) -> None:
    before = await emptied(store)
    await store.run(store.ops.put_blob("one", LARGE))
    await store.advance(DAY + 1)
    for steps in range(100):
        try:
            await store.run(cut(store.ops.drop_blob("one", DAY), steps))
        except Cut:
            assert await keys(store) == ["one"], "a sweep finds it again"
        else:
            break
    assert await store.leftovers() == before


async def test_the_owner_stays_the_same(store: World) -> None:
    owner = await store.run(store.ops.blob_owner())
    for backend in store.processes(3):
        assert await backend.run(backend.ops.blob_owner()) == owner


async def test_tasks_are_none_of_its_business(store: World) -> None:
    """Blobs are neither listed, counted nor claimed."""
    await store.run(store.ops.put_blob("one", LARGE))
    assert await store.claim(await store.worker()) == []
    assert await store.depth() == 0
    assert b"begin" in await written(store.backend, store.url)
