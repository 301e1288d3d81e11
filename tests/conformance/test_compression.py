"""Results above a size are stored compressed, and read plain."""

from __future__ import annotations

import random

import msgspec
import pytest

from fairlane.core.backend import Backend
from fairlane.core.compression import check_expanded, is_compressed, stored_form
from fairlane.core.errors import DriverMissing, ResultDamaged
from fairlane.core.filters import EVERYTHING
from fairlane.core.outcomes import Completed
from fairlane.core.sealing import Key
from fairlane.engines.compression import results
from fairlane.engines.compression.driver import compress
from fairlane.engines.compression.operations import compressing_operations
from fairlane.engines.sealing.operations import sealing_operations
from tests.fixtures.raw import written
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

SENTENCE = b"the cat sat on the mat; "
LARGE = msgspec.json.encode({"said": SENTENCE.decode() * 1_000})
ABOVE = 1_000


def compressing(store: World, *keys: Key) -> World:
    """The same store as a process sees it that compresses results."""
    ops = sealing_operations(store.ops, keys) if keys else store.ops
    return World(Backend(compressing_operations(ops, ABOVE), store.backend.driver), store.url, {})


async def completed(world: World, result: bytes) -> str:
    """The id of a task with this result."""
    await world.submit()
    task = await world.claim_one(await world.worker())
    await world.settle(task, Completed(result))
    return task.task_id


async def test_it_is_stored_small_and_read_plain(store: World) -> None:
    task_id = await completed(compressing(store), LARGE)
    raw = await written(store.backend, store.url)
    assert SENTENCE * 2 not in raw
    assert b"$zstd" in raw
    # By whoever reads, whether that one compresses or not.
    for world in (store, compressing(store)):
        assert (await world.task(task_id)).result == LARGE
        (listed,) = (await world.run(world.ops.page(EVERYTHING, 10))).tasks
        assert listed.result == LARGE


async def test_what_is_small_or_grows_stays_as_it_is(store: World) -> None:
    letters = "".join(map(chr, range(0x20, 0x7F)))
    noise = "".join(random.Random(1).choices(letters, k=2_000))
    for result in (b'"small"', b"null", b'"%b"' % (b"x" * (ABOVE - 2)), msgspec.json.encode(noise)):
        task_id = await completed(compressing(store), result)
        assert (await store.task(task_id)).result == result
    assert b"$zstd" not in await written(store.backend, store.url)


async def test_it_is_compressed_and_then_sealed(store: World) -> None:
    key = Key("k1", b"1" * 32)
    task_id = await completed(compressing(store, key), LARGE)
    raw = await written(store.backend, store.url)
    assert b"$sealed" in raw
    assert b"$zstd" not in raw
    assert len((await store.task(task_id)).result or b"") < len(LARGE) / 10
    sealed = World(
        Backend(sealing_operations(store.ops, [key]), store.backend.driver), store.url, {}
    )
    assert (await sealed.task(task_id)).result == LARGE


@pytest.mark.parametrize(
    "stored",
    [
        stored_form(compress(LARGE)[:-3]),
        stored_form(b"not zstd"),
        stored_form(compress(b" " * 2_000_000)),
        b'{"$zstd":"==="}',
        b'{"$zstd":"AAAA","more":1}',
    ],
)
async def test_one_that_is_damaged_is_refused_and_nothing_else(store: World, stored: bytes) -> None:
    task_id = await completed(store, stored)
    other = await completed(compressing(store), LARGE)
    found = (await store.task(task_id)).result
    assert found is not None
    assert msgspec.json.decode(found)["$broken"] is True
    with pytest.raises(ResultDamaged):
        check_expanded(found)
    tasks = (await store.run(store.ops.page(EVERYTHING, 10))).tasks
    assert {task.task_id: task.result for task in tasks}[other] == LARGE
    assert stored in await written(store.backend, store.url)  # for whoever can repair it


async def test_without_the_library_it_is_shown_as_it_is_stored(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await completed(compressing(store), LARGE)
    monkeypatch.setattr(results, "_decompress", lambda: None)
    found = (await store.task(task_id)).result
    assert found is not None
    assert is_compressed(found)
    with pytest.raises(DriverMissing, match=r"fairlane\[compression\]"):
        check_expanded(found)
