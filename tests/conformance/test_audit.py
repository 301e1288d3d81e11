"""The audit log: newest first, each entry once, and no more of them than are kept."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.audit import Action, Audit, NewAudit
from fairlane.core.errors import BatchTooLarge, InvalidCursor, InvalidInput, InvalidLimit
from fairlane.core.ids import new_id
from tests.fixtures.stores import World


def entry(subject: str = "queue mail") -> NewAudit:
    return NewAudit.of("ci", Action.PAUSE, subject, {"n": 1}, address="10.0.0.1")


async def record(store: World, *entries: NewAudit) -> None:
    """A server writes its log itself."""
    await store.behind.run(store.behind.ops.record(entries))


async def everything(store: World, limit: int = 1_000) -> list[Audit]:
    """All of it, page by page."""
    found: list[Audit] = []
    cursor: str | None = None
    while True:
        page = await store.run(store.ops.audit(limit, cursor))
        found += page.entries
        assert len(page.entries) <= limit
        cursor = page.next_cursor
        if cursor is None:
            return found
        assert len(page.entries) == limit


async def test_what_was_done_is_told(store: World) -> None:
    assert (await store.run(store.ops.audit(10))).entries == []
    told = NewAudit.of("Größe\x00", Action.LIMIT, "type \ud800", {"rate": 2.5}, address="::1")
    await record(store, told)
    (found,) = await everything(store)
    assert (found.actor, found.action, found.subject) == ("Größe\x00", "flow.limit", "type \\ud800")
    assert (found.detail, found.address, found.entry_id) == ('{"rate":2.5}', "::1", told.entry_id)
    await store.advance(10)
    await record(store, entry())
    newer, older = await everything(store)
    assert older == found
    assert (newer.at - older.at).total_seconds() >= 10
    await record(store)
    assert len(await everything(store)) == 2


async def test_the_newest_come_first_in_pages_of_any_size(store: World) -> None:
    for number in range(0, 9, 3):
        await record(store, *[entry(f"{n}") for n in range(number, number + 3)])
    expected = [str(n) for n in reversed(range(9))]
    for limit in (1, 2, 3, 4, 8, 9, 10, 1_000):
        assert [each.subject for each in await everything(store, limit)] == expected
    page = await store.run(store.ops.audit(4))
    await record(store, entry("news"))
    rest = await store.run(store.ops.audit(100, page.next_cursor))
    assert [each.subject for each in (*page.entries, *rest.entries)] == expected


async def test_recording_again_changes_nothing(store: World) -> None:
    first = entry("first")
    await record(store, first)
    await store.advance(10)
    await record(store, entry("second"))
    before = await everything(store)
    await record(store, first, first)
    assert await everything(store) == before


@pytest.mark.local
async def test_everyone_is_heard(store: World) -> None:
    backends = store.processes(3)
    await asyncio.gather(
        *(
            backend.run(backend.ops.record([entry(f"{number}:{n}")]))
            for number, backend in enumerate(backends)
            for n in range(10)
        )
    )
    subjects = [each.subject for each in await everything(store, 7)]
    assert sorted(subjects) == sorted(f"{number}:{n}" for number in range(3) for n in range(10))


@pytest.mark.local
async def test_only_the_newest_are_kept(store: World) -> None:
    batch = limits.BATCH
    for start in range(0, limits.AUDIT_ENTRIES, batch):
        await store.run(store.ops.record([entry(str(n)) for n in range(start, start + batch)]))
    oldest = limits.AUDIT_ENTRIES - 1
    page = await store.run(store.ops.audit(1))
    for _ in range(oldest // limits.PAGE):
        page = await store.run(store.ops.audit(limits.PAGE, page.next_cursor))
    last = await store.run(store.ops.audit(limits.PAGE, page.next_cursor))
    assert (last.entries[-1].subject, last.next_cursor) == ("0", None)
    await store.run(store.ops.record([entry("a"), entry("b")]))
    subjects = [each.subject for each in await everything(store)]
    assert len(subjects) == limits.AUDIT_ENTRIES
    assert (subjects[:3], subjects[-1]) == (["b", "a", str(oldest)], "2")
    assert max((await store.leftovers()).values()) == limits.AUDIT_ENTRIES
    # What followed an entry that has gone has gone before it.
    await store.run(store.ops.record([entry(str(n)) for n in range(batch)]))
    gone = await store.run(store.ops.audit(10, "a" + last.entries[-3].entry_id.replace("-", "")))
    assert (gone.entries, gone.next_cursor) == ([], None)


async def test_what_cannot_be_asked(store: World) -> None:
    for cursor in ("", "nonsense", "t" + new_id().replace("-", "")):
        with pytest.raises(InvalidCursor):
            await store.run(store.ops.audit(10, cursor))
    for limit in (0, -1, limits.PAGE + 1):
        with pytest.raises(InvalidLimit):
            await store.run(store.ops.audit(limit))
    with pytest.raises(BatchTooLarge):
        await record(store, *[entry()] * (limits.BATCH + 1))
    with pytest.raises(InvalidInput):
        await record(store, entry(), replace(entry(), entry_id="x"))
    assert await everything(store) == []
