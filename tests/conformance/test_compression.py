"""Results above a size are stored compressed, and read plain."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.compression import check_expanded, is_compressed, stored_form
from fairlane.core.errors import DriverMissing, ResultDamaged
from fairlane.core.filters import EVERYTHING
from fairlane.core.ids import new_id
from fairlane.core.model import Verdict
from fairlane.core.outcomes import Completed, Outcome
from fairlane.core.sealing import Key
from fairlane.engines.compression import results
from fairlane.engines.compression.driver import compress
from fairlane.engines.compression.operations import compressing_operations
from fairlane.engines.sealing.operations import sealing_operations
from fairlane.runtime.execution import returned
from fairlane.runtime.tasks import value_of
from fairlane.wire.worker_protocol import RunResult
from tests.fixtures.raw import written
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

SENTENCE = b"the cat sat on the mat; "
LARGE = msgspec.json.encode({"said": SENTENCE.decode() * 1_000})
ABOVE = 1_000
KEY = Key("k1", b"1" * 32)
FORGED = [
    b'1,"owner":"somebody"',
    b'{"a":',
    b"NaN",
    b"1e999",
    b'"\xff"',
    b"[" * 101 + b"]" * 101,
    b"",
]
"""What readers must never put into their own JSON."""
LOOKALIKES = [
    {"$zstd": "abc"},
    {"$zstd": stored_form(compress(b'"other"')).decode()[10:-2]},
    {"$zstd": "", "$broken": True},
    {"$zstd": "again and " * 1_000},
    {"$sealed": "k1.AAAAAAAA.AAAA"},
    {"$sealed": f"k1.AAAAAAAA.{'A' * 400}"},
]
"""Results of handlers that look as Fairlane's own."""


def compressing(store: World, *keys: Key) -> World:
    """The same store as a process sees it that compresses results."""
    ops = sealing_operations(store.ops, keys) if keys else store.ops
    return World(Backend(compressing_operations(ops, ABOVE), store.backend.driver), store.url, {})


def sealing(store: World, key: Key) -> World:
    """The same store as a process sees it that has a key."""
    return World(Backend(sealing_operations(store.ops, [key]), store.backend.driver), store.url, {})


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
    task_id = await completed(compressing(store, KEY), LARGE)
    raw = await written(store.backend, store.url)
    assert b"$sealed" in raw
    assert b"$zstd" not in raw
    assert len((await store.task(task_id)).result or b"") < len(LARGE) / 10
    assert (await sealing(store, KEY).task(task_id)).result == LARGE


@pytest.mark.parametrize("keys", [(), (KEY,)], ids=["plain", "sealed"])
async def test_a_report_is_repeated_through_a_process_that_compresses_or_does_not(
    store: World, keys: tuple[Key, ...]
) -> None:
    worlds = [compressing(store, *keys), sealing(store, KEY) if keys else store]
    for first in worlds:
        await store.submit()
        task = await store.claim_one(await store.worker())
        assert await first.settle(task, Completed(LARGE)) is Verdict.APPLIED
        for again in worlds:
            assert await again.settle(task, Completed(LARGE + b" ")) is Verdict.APPLIED
            for other in (LARGE.replace(b"cat", b"dog"), b"null"):
                assert await again.settle(task, Completed(other)) is Verdict.STALE


async def test_a_page_ends_where_its_plain_results_fill_it(store: World) -> None:
    """They have a thousandth of their size until they are opened."""
    mebibyte = b'"%b"' % (b"x" * (limits.RESULT_BYTES - 2))
    ids = [await completed(compressing(store, KEY), mebibyte) for _ in range(10)]
    found: list[str] = []
    cursor: str | None = None
    for size in (7, 3):
        page = await store.run(sealing(store, KEY).ops.page(EVERYTHING, 100, cursor))
        assert len(page.tasks) == size
        found += [task.task_id for task in page.tasks]
        cursor = page.next_cursor
    assert (sorted(found), cursor) == (sorted(ids), None)


@pytest.mark.parametrize(
    "stored",
    [
        stored_form(compress(LARGE)[:-3]),
        stored_form(b"not zstd"),
        stored_form(compress(b" " * 2_000_000)),
        b'{"$zstd":"==="}',
        b'{"$zstd":"AAAA","more":1}',
        *map(stored_form, map(compress, FORGED)),
    ],
)
async def test_one_that_is_damaged_is_refused_and_nothing_else(store: World, stored: bytes) -> None:
    task_id = await completed(store, stored)
    other = await completed(compressing(store), LARGE)
    found = (await store.task(task_id)).result
    assert found is not None
    assert found.endswith(b'"$broken":true}')
    assert msgspec.json.decode(found).keys() == {"$zstd", "$broken"}
    with pytest.raises(ResultDamaged):
        check_expanded(found)
    tasks = (await store.run(store.ops.page(EVERYTHING, 10))).tasks
    assert {task.task_id: task.result for task in tasks}[other] == LARGE
    assert stored in await written(store.backend, store.url)  # for whoever can repair it


@pytest.mark.parametrize("value", LOOKALIKES, ids=range(len(LOOKALIKES)))
async def test_a_result_that_only_looks_like_ours_is_read_as_it_is(
    store: World, value: dict[str, object]
) -> None:
    for reader, writer in (
        (store, store),
        (store, compressing(store)),
        (sealing(store, KEY), sealing(store, KEY)),
        (sealing(store, KEY), compressing(store, KEY)),
    ):
        for outcome in (returned(value), reported(value)):
            assert isinstance(outcome, Completed)
            found = (await reader.task(await completed(writer, outcome.result))).result
            assert found is not None
            assert value_of(found, Any, {}) == value


def reported(value: object) -> Outcome:
    """The outcome that a worker over HTTP reports."""
    body = {"task_id": new_id(), "status": "completed", "result": value}
    return msgspec.json.decode(msgspec.json.encode(body), type=RunResult).outcome()


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
