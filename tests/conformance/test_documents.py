"""Documents: written all or none, if nobody was quicker; in order, and gone when they expire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.documents import Document, Documents, Order, Place, Written
from fairlane.core.flow import Flow, Mode, Op
from tests.fixtures.stores import World

pytestmark = pytest.mark.local

T = TypeVar("T")

KIND, OTHER = "kind", "other"
AT = 1_772_366_400_000_000


def new(id: str, at: int = AT, **options: object) -> Document:
    return Document(id, b"\x00\xff" + id.encode(), at, **options)  # type: ignore[arg-type]


async def do(backend: Backend, mode: Mode, flow: Callable[[Documents], Flow[T]]) -> T:
    """One call of the seam, as an operation."""
    ops = cast(Documents, backend.ops)
    return await backend.run(Op("documents", mode, lambda: flow(ops)))


async def read(store: World, *ids: str, kind: str = KIND) -> list[Document | None]:
    now, found = await do(store.backend, Mode.READ, lambda ops: ops.read_documents(kind, ids))
    assert now > AT
    return found


async def write(
    store: World,
    *puts: Document,
    drops: Sequence[Document] = (),
    most: int | None = None,
    kind: str = KIND,
) -> Written:
    return await do(
        store.backend, Mode.WRITE, lambda ops: ops.write_documents(kind, puts, drops, most)
    )


async def listed(
    store: World,
    limit: int = 100,
    after: Place | None = None,
    order: Order = Order.OLDEST,
    skip: int = 0,
) -> list[str]:
    _, found = await do(
        store.backend,
        Mode.READ,
        lambda ops: ops.list_documents(KIND, order, limit, after, skip),
    )
    return [document.id for document in found]


async def find(store: World, alias: str) -> str | None:
    found = await do(store.backend, Mode.READ, lambda ops: ops.find_document(KIND, alias))
    return None if found is None else found[1].id


async def expire(store: World, limit: int = 100) -> int:
    return await do(store.backend, Mode.WRITE, lambda ops: ops.expire_documents(KIND, limit))


async def test_a_document_is_read_as_it_was_written(store: World) -> None:
    plain, full = new("é b"), new("x", -5, expires_at=AT + 1, alias="second name")
    assert await write(store, plain, full) is Written.DONE
    assert await read(store, "x", "none", "é b") == [
        replace(full, version=1),
        None,
        replace(plain, version=1),
    ]
    assert await read(store, "x", kind=OTHER) == [None]
    changed = replace(full, value=b"", at=AT, expires_at=None, alias=None, version=1)
    assert await write(store, changed) is Written.DONE
    assert await read(store, "x") == [replace(changed, version=2)]
    assert await expire(store) == 0


async def test_a_write_that_was_overtaken_changes_nothing(store: World) -> None:
    await write(store, new("a"), new("b"))
    a, b = await read(store, "a", "b")
    assert a is not None
    assert b is not None
    newer = replace(a, value=b"newer")
    assert await write(store, newer) is Written.DONE
    for puts, drops in (
        ([a], []),
        ([b, a], []),
        ([b, new("c")], [a]),
        ([new("b"), new("c")], []),
        ([replace(new("c"), version=1)], []),
    ):
        assert await write(store, *puts, drops=drops) is Written.OVERTAKEN
    assert await read(store, "a", "b", "c") == [replace(newer, version=2), b, None]
    await write(store, new("b"), kind=OTHER)
    assert await write(store, replace(newer, version=2), new("c"), drops=[b]) is Written.DONE
    assert await listed(store) == ["a", "c"]
    assert await read(store, "b", kind=OTHER) != [None]


async def test_of_many_writers_one_is_the_quickest(store: World) -> None:
    await write(store, new("a"))
    (before,) = await read(store, "a")
    assert before is not None
    backends = store.processes(4)
    for version in range(1, 6):
        changes = [replace(before, value=bytes([n]), version=version) for n in range(4)]
        written = await asyncio.gather(
            *(
                do(backend, Mode.WRITE, lambda ops, put=change: ops.write_documents(KIND, [put]))  # type: ignore[misc]
                for backend, change in zip(backends, changes, strict=True)
            )
        )
        assert sorted(written) == ["done", *["overtaken"] * 3]
        (now,) = await read(store, "a")
        assert now == replace(changes[written.index(Written.DONE)], version=version + 1)


async def test_an_alias_belongs_to_one(store: World) -> None:
    await write(store, new("a", alias="x"), new("b"))
    await write(store, new("c", alias="x"), kind=OTHER)
    _, b = await read(store, "a", "b")
    assert b is not None
    assert await find(store, "x") == "a"
    assert await write(store, new("c", alias="x")) is Written.TAKEN
    assert await write(store, new("d"), replace(b, alias="x")) is Written.TAKEN
    assert await read(store, "c", "d") == [None, None]
    (a,) = await read(store, "a")
    assert a is not None
    assert await write(store, replace(a, value=b"")) is Written.DONE
    assert await write(store, drops=[replace(a, version=2)]) is Written.DONE
    assert await find(store, "x") is None
    assert await write(store, new("c", alias="x")) is Written.DONE
    assert await find(store, "x") == "c"


async def test_no_more_than_there_may_be(store: World) -> None:
    assert await write(store, new("a"), new("b"), new("c"), most=2) is Written.FULL
    assert await listed(store) == []
    assert await write(store, new("a"), most=2) is Written.DONE
    assert await write(store, new("b"), new("c"), most=2) is Written.FULL
    assert await write(store, new("b"), most=2) is Written.DONE
    assert await write(store, new("b"), most=2, kind=OTHER) is Written.DONE
    a, b = await read(store, "a", "b")
    assert a is not None
    assert b is not None
    assert await write(store, a, b, most=1) is Written.DONE, "it adds none"


async def test_the_last_place_is_given_once(store: World) -> None:
    await write(store, new("a"))
    backends = store.processes(4)
    written = await asyncio.gather(
        *(
            do(
                backend,
                Mode.WRITE,
                lambda ops, id=str(n): ops.write_documents(KIND, [new(id)], (), 2),  # type: ignore[misc]
            )
            for n, backend in enumerate(backends)
        )
    )
    assert sorted(written) == ["done", *["full"] * 3]
    assert len(await listed(store)) == 2


async def test_lists_are_in_order_from_any_place(store: World) -> None:
    places = [(at, f"{name}{at}") for at in (-1, 5, AT) for name in "abc"]
    await write(store, *(new(id, at) for at, id in reversed(places)))
    ids = [id for _, id in places]
    assert await listed(store) == ids
    assert await listed(store, order=Order.NEWEST) == ids[::-1]
    for limit in (1, 2, 4, 9):
        for order in Order:
            sought = places[::-1] if order is Order.NEWEST else places
            for number, place in enumerate(sought):
                expected = [id for _, id in sought[number + 1 :]]
                assert await listed(store, limit, place, order) == expected[:limit]
                assert await listed(store, limit, place, order, 2) == expected[2:][:limit]
            rest = [id for _, id in sought[limit:]]
            assert await listed(store, 3, order=order, skip=limit) == rest[:3]
    assert await listed(store, 2, (5, "")) == ids[3:5]
    assert await listed(store, 2, (5, "bb")) == ids[5:7]
    assert await listed(store, 2, (5, "bb"), Order.NEWEST) == ids[4:2:-1]
    assert await listed(store, 2, (6, "")) == ids[6:8]


async def test_what_has_expired_goes_a_few_at_a_time(store: World) -> None:
    soon = AT * 2
    empty = await store.leftovers()
    await write(store, *(new(f"{n}", expires_at=AT + n, alias=f"x{n}") for n in range(5)))
    await write(store, new("late", expires_at=soon), new("never"))
    await write(store, new("else", expires_at=AT), kind=OTHER)
    assert await expire(store, 2) == 2
    assert len(await listed(store)) == 5
    assert await expire(store) == 3
    assert await expire(store) == 0
    assert await listed(store) == ["late", "never"]
    assert await find(store, "x1") is None
    assert await read(store, "else", kind=OTHER) != [None]
    late, never = await read(store, "late", "never")
    assert late is not None
    assert never is not None
    await write(store, drops=[late, never])
    (other,) = await read(store, "else", kind=OTHER)
    assert other is not None
    await write(store, drops=[other], kind=OTHER)
    assert await store.leftovers() == empty


async def test_many_at_once(store: World) -> None:
    many = [new(f"{n:05}", n, expires_at=AT * 2, alias=f"{n}") for n in range(9_000)]
    assert await write(store, *many) is Written.DONE
    stored = [replace(each, version=1, expires_at=None) for each in many]
    assert await write(store, *stored) is Written.DONE
    assert await listed(store, limits.PAGE) == [each.id for each in many[: limits.PAGE]]
    assert await write(store, drops=[replace(each, version=2) for each in many]) is Written.DONE
    assert await listed(store) == []
