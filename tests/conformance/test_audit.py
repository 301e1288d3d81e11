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


def by(actor: str, subject: str = "queue mail") -> NewAudit:
    return NewAudit.of(actor, Action.CANCEL, subject)


async def subjects(store: World, actor: str) -> list[str]:
    return [each.subject for each in await everything(store, 3) if each.actor == actor]


@pytest.mark.local
async def test_an_actor_pushes_out_only_its_own_entries(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUDIT_ACTOR_ENTRIES", 5)
    await record(store, by("admin", "first"), by("noisy", "first"))
    for n in range(12):
        await record(store, by("noisy", str(n)))
        await store.advance(1)
    await record(store, by("noisy", "a"), by("admin", "last"), by("noisy", "b"))
    assert await subjects(store, "admin") == ["last", "first"]
    assert await subjects(store, "noisy") == ["b", "a", "11", "10", "9"]
    await record(store, *[by("noisy", str(n)) for n in range(20, 30)])
    assert await subjects(store, "noisy") == ["29", "28", "27", "26", "25"]
    assert await subjects(store, "admin") == ["last", "first"]


@pytest.mark.local
async def test_processes_share_the_places_of_an_actor(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUDIT_ACTOR_ENTRIES", 5)
    await record(store, by("admin"))
    backends = store.processes(3)
    await asyncio.gather(
        *(backend.run(backend.ops.record([by("noisy")])) for backend in backends for _ in range(8))
    )
    assert len(await subjects(store, "noisy")) == 5
    assert len(await subjects(store, "admin")) == 1


@pytest.mark.local
async def test_an_actor_that_was_forgotten_keeps_its_places(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUDIT_ACTOR_ENTRIES", 3)
    monkeypatch.setattr(limits, "AUDIT_ACTORS", 2)
    for n in range(4):
        await record(store, by("a", str(n)))
        await store.advance(1)
    for actor in ("b", "c", "d"):
        await record(store, by(actor))
        await store.advance(1)
    for n in range(4, 9):
        await record(store, by("a", str(n)))
        await store.advance(1)
    assert await subjects(store, "a") == ["8", "7", "6"]


@pytest.mark.local
async def test_old_entries_go(store: World) -> None:
    await record(store, by("a", "old"), by("b", "old"))
    await store.advance(limits.AUDIT_SECONDS - 10)
    await record(store, by("a", "new"))
    assert await store.run(store.ops.trim_audit()) == 0
    await store.advance(11)
    assert await store.run(store.ops.trim_audit()) == 2
    assert [each.subject for each in await everything(store)] == ["new"]
    assert await store.run(store.ops.trim_audit()) == 0


@pytest.mark.local
async def test_beyond_the_bound_the_largest_actor_loses_its_oldest(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUDIT_ENTRIES", 6)
    await record(store, by("admin", "first"))
    for n in range(4):
        await store.advance(1)
        await record(store, by("noisy", str(n)), by("loud", str(n)))
    assert await store.run(store.ops.trim_audit()) == 3
    assert await store.run(store.ops.trim_audit()) == 0
    assert await subjects(store, "admin") == ["first"]
    assert sorted([len(await subjects(store, each)) for each in ("noisy", "loud")]) == [2, 3]
    assert (await subjects(store, "noisy"))[0] == "3"


@pytest.mark.local
async def test_a_page_goes_on_after_an_entry_that_has_gone(
    store: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUDIT_ACTOR_ENTRIES", 1)
    await record(store, by("admin", "first"))
    await store.advance(1)
    await record(store, by("noisy", "gone"))
    await store.advance(1)
    await record(store, by("other", "last"))
    page = await store.run(store.ops.audit(2))
    assert [each.subject for each in page.entries] == ["last", "gone"]
    await record(store, by("noisy", "newer"))
    rest = await store.run(store.ops.audit(2, page.next_cursor))
    assert [each.subject for each in rest.entries] == ["first"]


@pytest.mark.local
async def test_maintenance_trims_the_log(store: World) -> None:
    await record(store, by("a", "old"))
    keeper = store.keeper()
    for seconds in (0.0, limits.AUDIT_SECONDS + 1, 100.0):
        await store.advance(seconds)
        await keeper.round()
        await keeper.round()  # after a step of the clock, the first one spares
    assert await everything(store) == []


async def test_what_cannot_be_asked(store: World) -> None:
    digits = new_id().replace("-", "")
    for cursor in ("", "nonsense", "t" + digits, "a" + digits, "a" + digits + "x" * 15):
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
