"""Definitions of types: workers publish them, and every submitter finds the newest one."""

from __future__ import annotations

import asyncio

import pytest

from fairlane.core import limits
from fairlane.core.definitions import Definition, Published
from fairlane.core.errors import (
    BatchTooLarge,
    InvalidCursor,
    InvalidDefinition,
    InvalidQueue,
    InvalidRetries,
    InvalidUnique,
)
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from fairlane.core.uniqueness import Mode, Unique
from tests.fixtures.stores import World

DAY = 86_400.0
EVERYTHING = Definition(
    type="mail.send",
    queue="mail",
    priority=8,
    required_capabilities=("smtp", "tls"),
    max_retries=7,
    timeout_seconds=None,
    retry_policy=RetryPolicy(2.0, 3.0, 60.0, 0.5),
    delay_seconds=1.5,
    unique=Unique(("to",), frozenset({State.QUEUED}), 60.0, Mode.REPLACE),
    tags={"team": "shop", "ü": "<b>"},
    parameters={"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    description="Send a mail.\n\nOne at a time.",
    source="shop.mail.send, line 12",
)
LITTLE = Definition(type="little")


async def publish(store: World, *definitions: Definition) -> None:
    await store.run(store.ops.publish(definitions))


async def published(store: World) -> list[Published]:
    return await store.run(store.ops.definitions())


async def test_what_is_published_is_found_by_everybody(store: World) -> None:
    assert await published(store) == []
    assert await store.run(store.ops.definition("mail.send")) is None
    await publish(store, EVERYTHING, LITTLE)
    for backend in store.processes(2):
        found = await backend.run(backend.ops.definitions())
        assert [each.definition for each in found] == [LITTLE, EVERYTHING]
        assert [each.version for each in found] == [1, 1]
        assert await backend.run(backend.ops.definition("mail.send")) == found[1]
        assert await backend.run(backend.ops.definition("another")) is None


async def test_many_are_read_in_pages(store: World) -> None:
    many = [Definition(type=f"t{number:03}") for number in range(limits.DEFINITION_PAGE + 5)]
    await publish(store, *many)
    assert [each.definition for each in await published(store)] == many
    first = await store.run(store.ops.definition_page(limit=3))
    assert len(first.definitions) == 3
    rest = await store.run(store.ops.definition_page(first.next_cursor))
    last = await store.run(store.ops.definition_page(rest.next_cursor))
    found = [*first.definitions, *rest.definitions, *last.definitions]
    assert sorted(each.definition.type for each in found) == [each.type for each in many]
    assert last.next_cursor is None


@pytest.mark.parametrize("cursor", ["", "x", "1:", "1:no name", "-1:t", "1" * 20 + ":t"])
async def test_a_cursor_that_is_none(store: World, cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        await store.run(store.ops.definition_page(cursor))


async def test_the_same_again_changes_nothing(store: World) -> None:
    await publish(store, EVERYTHING, LITTLE)
    before = await published(store)
    await store.advance(60)
    await publish(store, LITTLE, EVERYTHING)
    assert await published(store) == before


async def test_a_changed_definition_has_a_new_version(store: World) -> None:
    await publish(store, LITTLE)
    (first,) = await published(store)
    await store.advance(60)
    changed = Definition(type="little", queue="q")
    await publish(store, changed)
    (second,) = await published(store)
    assert (second.definition, second.version) == (changed, 2)
    assert second.published_at > first.published_at


async def test_publishing_tells_what_has_changed(store: World) -> None:
    async def change(*definitions: Definition) -> list[str]:
        return await store.run(store.ops.publish(definitions))

    assert await change(LITTLE, EVERYTHING) == ["little", "mail.send"]
    assert await change(LITTLE, EVERYTHING) == []
    await store.advance(limits.DEFINITION_SECONDS * 0.6)
    assert await change(LITTLE) == [], "it only lives for longer"
    assert await change(EVERYTHING, Definition(type="little", queue="q")) == ["little"]


async def test_a_definition_is_dropped_until_it_is_published_again(store: World) -> None:
    await publish(store, LITTLE, EVERYTHING)
    assert await store.run(store.ops.drop_definition("little"))
    assert [each.definition for each in await published(store)] == [EVERYTHING]
    for type in ("little", "no such name", "unknown"):
        assert not await store.run(store.ops.drop_definition(type))
    await publish(store, LITTLE)
    assert len(await published(store)) == 2


async def test_what_no_worker_publishes_goes_away(store: World) -> None:
    await publish(store, LITTLE, EVERYTHING)
    await store.advance(limits.DEFINITION_SECONDS * 0.6)
    await publish(store, LITTLE)
    await store.advance(limits.DEFINITION_SECONDS * 0.6)
    assert [each.definition for each in await published(store)] == [LITTLE]
    assert await store.run(store.ops.definition("mail.send")) is None
    await publish(store, EVERYTHING)
    assert len(await published(store)) == 2


async def test_workers_that_start_together_all_publish(store: World) -> None:
    backends = store.processes(4)
    batches = [
        [Definition(type=f"t{number}", queue=f"q{worker}") for number in range(20)]
        for worker in range(4)
    ]
    await asyncio.gather(
        *(
            backend.run(backend.ops.publish(batch))
            for backend, batch in zip(backends, batches, strict=True)
        )
    )
    found = await published(store)
    assert len(found) == 20
    # One of them was the last, with all of its definitions.
    assert [each.definition for each in found] in [
        sorted(batch, key=lambda each: each.type) for batch in batches
    ]


async def test_a_definition_that_no_task_could_have_is_refused(store: World) -> None:
    for wrong, error in (
        (Definition(type="wrong", queue="no such name"), InvalidQueue),
        (Definition(type="wrong", max_retries=-1), InvalidRetries),
        (Definition(type="no such name"), InvalidDefinition),
        (Definition(type="wrong", unique=Unique(period=-1.0)), InvalidUnique),
    ):
        with pytest.raises(error):
            await publish(store, LITTLE, wrong)
    assert await published(store) == []
    with pytest.raises(BatchTooLarge):
        await publish(store, *(Definition(type=f"t{n}") for n in range(limits.BATCH + 1)))


async def test_texts_are_cut_and_a_huge_schema_is_left_out(store: World) -> None:
    schema = {"description": "x" * limits.SCHEMA_BYTES}
    huge = Definition(type="huge", parameters=schema, description="d" * 10_000, source="s" * 10_000)
    await publish(store, huge)
    (found,) = await published(store)
    assert found.definition.parameters is None
    assert len(found.definition.description) == limits.DESCRIPTION_CHARACTERS
    assert len(found.definition.source) == limits.SOURCE_CHARACTERS
